"""Command groups with a command for each operator: predict, roofline, sweep, whatif.

`OperatorGroup` joins the options of an operator with those of an action on a grid of its cases, so
that an operator's options are declared once, in `perfmodel.operators`. A user's declaration is a
command too: `perfmodel predict mine.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from perfmodel import operators
from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import ranges, spellings
from perfmodel.cli.build import Action, Declared, Group, Slot, command
from perfmodel.errors import UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.operators import Choice, Flag, Operator, Option, Size
from perfmodel.operators.grid import Grid
from perfmodel.plaintext import listed
from perfmodel.timing.libraries import implementations


class OperatorGroup(Group):
    """A group with a command for each operator, created on demand."""

    def __init__(
        self,
        action: Action,
        examples: Mapping[str, str],
        about: str,
        more: Mapping[str, tuple[click.Command, str]] | None = None,
    ) -> None:
        """`action` receives `grid`. `examples` end the help of a command: those of its operator, or
        of "". `about` is the group's help, `more` are further commands with their one-line help."""
        self.action, self.examples, self.more = action, examples, more or {}
        super().__init__(self._summaries, help=about)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Operators, and further commands."""
        return [*operators.names(), *self.more]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of an operator, or of another spelling of it such as sdpa. Raises
        `UnknownName`."""
        if cmd_name in self.more:
            return self.more[cmd_name][0]
        try:
            operator = _operator(cmd_name)
        except UnknownName as error:
            hint = f"(see '{ctx.command_path} --help')"
            raise UnknownName("command", cmd_name, self.list_commands(ctx), hint) from error
        sizes = " --rows 4k --cols 1k:16k:x2" if "rows" in operator.needed else ""
        examples = self.examples.get(operator.name, self.examples[""])
        text = examples.format(name=operator.name, sizes=sizes)
        return _command(cmd_name, operator, self.action, text)

    def _summaries(self) -> dict[str, str]:
        texts = {item.name: item.about for item in operators.every()}
        return texts | {name: text for name, (_, text) in self.more.items()}


def _operator(name: str) -> Operator:
    """The operator of that name, or of another spelling of it; names of all are asked for last."""
    try:
        return operators.load(name)
    except UnknownName:
        return operators.load(spellings.operator(name, operators.names()))


def _command(name: str, operator: Operator, action: Action, examples: str) -> click.Command:
    """The action on an operator: the operator's options, then those of the action."""
    # A parameter of a declaration may have any name; a parameter of a command may not.
    places = {f"option_{i}": item for i, item in enumerate(operator.options)}

    def made(given: Mapping[str, Any]) -> Grid:
        texts = {item.name: given[place] for place, item in places.items()}
        instead = "narrow a range, or add --yes" if "yes" in given else "narrow a range"
        return read(operator, texts, None if given.get("yes") else instead)

    def described(option: Declared) -> Declared:
        """An option of the action with the operator's names."""
        own = {"schedule": lambda: operator.schedules, "implementation": lambda: kernels}
        field = replace(option.option, names=own.get(option.name, option.option.names))
        return replace(option, option=field, finish=named)

    def named(text: str) -> str:
        names = sorted(kernels, key=lambda name: (len(name), name))  # variants have longer names
        text = text.replace("{schedules}", ", ".join(operator.schedules))
        return text.replace("{implementations}", listed(names, 60) or "none")

    kernels = tuple(implementations(operator.library)) if operator.library else ()
    slot = Slot([_declared(place, item).built() for place, item in places.items()], made)
    about = f"{operator.about}\n\n{examples.rstrip()}"
    return command(action, name, slots={"grid": slot}, describe=described, help=about)


def _declared(place: str, item: Option) -> Declared:
    """An operator's option as one of a command."""
    default: Any = False if isinstance(item, Flag) else item.default
    metavar = "SIZES" if isinstance(item, Size) else getattr(item, "metavar", None)
    names: Any = "perfmodel.algorithms.matmul:types" if "dtype" in item.name else ()
    choices = getattr(item, "known", None)
    if choices is not None:
        names = lambda: choices  # noqa: E731  (a tuple would stand in the help a second time)
    option = FieldOption("Problem", metavar, item.flags, help=item.help, names=names)
    return Declared(place, bool if isinstance(item, Flag) else str, default, option)


def read(
    operator: Operator, given: Mapping[str, Any], instead: str | None = "narrow a range"
) -> Grid:
    """The cases of an operator, from the texts `given` for its options, by name.

    A size that is not given takes the text of its source (`--seq` for `--seq-q`). The second size
    of one source equals the first, unless one of them is given.

    Raises `ProblemError` for a text that is no size and, with the advice `instead`, for more cases
    than any command takes; `UnknownName` for an unknown name.
    """
    kinds: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in operator.fixed.items()}
    values: dict[str, ranges.Values] = {}
    follows: dict[str, str] = {}
    options = [item for item in operator.options if isinstance(item, Size)]
    texts = {item.name: item for item in options if not item.argument}
    sources = {item.source for item in options if item.source and given[item.name] is not None}
    for item in operator.options:
        text = given[item.name]
        if isinstance(item, Flag):
            kinds |= {item.name: (bool(text),)} if item.always or text else {}
        elif isinstance(item, Choice):
            names = spellings.names(text)
            for name in names if item.known is not None else ():
                spellings.named(item.kind, name, item.known or ())
            kinds[item.name] = names or (None,)
        elif item.argument:
            source, flag = texts.get(item.source or ""), item.flags[0]
            if text is None and item.follows and item.source not in sources:
                follows[item.name] = item.follows
                continue
            if text is None and source is not None:
                text, flag = given[source.name], source.flags[0]
            if text is not None:
                values[item.name] = ranges.read(text, flag, least=item.least)
    if instead is not None:  # before any of them is made
        counts = [*map(len, values.values()), *map(len, kinds.values())]
        check_cases(math.prod(counts), instead=instead)
    sizes = {name: each.array for name, each in values.items()}
    return Grid(operator, sizes, kinds, follows)
