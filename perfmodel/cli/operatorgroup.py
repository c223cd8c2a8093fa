"""Command groups with a command for each operator: predict, roofline, sweep, whatif.

`OperatorGroup` joins the options of an operator with those of an action on its cases, so that an
operator's options are declared once, in `perfmodel.operators`. A user's declaration is a command
too: `perfmodel predict mine.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import click

from perfmodel import operators
from perfmodel.cli import cases, completing, spellings
from perfmodel.cli.build import Action, Declared, Group, Slot, command
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.operators import Choice, Flag, Operator, Option, Size
from perfmodel.render.report import listed
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
        """`action` receives `cases`. `examples` end the help of a command: those of its operator,
        of "rows" for the other operators on rows, or of "declared". `about` is the group's help,
        `more` are further commands with their one-line help."""
        self.action, self.examples, self.more = action, examples, more or {}
        super().__init__(self._summaries, help=about)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Operators, and further commands."""
        return [*operators.names(), *self.more]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of an operator. Raises `UnknownName`."""
        if cmd_name in self.more:
            return self.more[cmd_name][0]
        try:
            operator = _operator(cmd_name)
        except UnknownName as error:
            hint = f"(see '{ctx.command_path} --help')"
            raise UnknownName("command", cmd_name, self.list_commands(ctx), hint) from error
        kind = "rows" if "rows" in operator.needed else "declared"
        examples = self.examples.get(operator.name, self.examples[kind])
        return _command(cmd_name, operator, self.action, examples.format(name=operator.name))

    def _summaries(self) -> dict[str, str]:
        texts = {item.name: item.about for item in operators.every()}
        return texts | {name: text for name, (_, text) in self.more.items()}


def _operator(name: str) -> Operator:
    """The operator of that name, or of another spelling of it such as sdpa."""
    try:
        return operators.load(name)
    except UnknownName:
        spelling = spellings.operator(name, operators.names())
        if spelling == name:
            raise
        return operators.load(spelling)


def _command(name: str, operator: Operator, action: Action, examples: str) -> click.Command:
    """The action on an operator: the operator's options, then those of the action."""
    # A parameter of a declaration may have any name; a parameter of a command may not.
    places = {f"option_{i}": item for i, item in enumerate(operator.options)}

    def made(given: Mapping[str, Any]) -> cases.Cases:
        return cases.read(operator, {item.name: given[place] for place, item in places.items()})

    slot = Slot([_declared(place, item).built() for place, item in places.items()], made)
    owners = {flag: item.name for item in operator.options for flag in item.flags}
    return command(
        action,
        name,
        slots={"cases": slot},
        describe=lambda option: _described(option, operator, owners),
        help=f"{operator.about}\n\n{examples.rstrip()}",
    )


def _declared(place: str, item: Option) -> Declared:
    """An operator's option as one of a command."""
    default: Any = False if isinstance(item, Flag) else item.default
    metavar = "SIZES" if isinstance(item, Size) else getattr(item, "metavar", None)
    complete = completing.types if "dtype" in item.name else None
    if isinstance(item, Choice) and item.known is not None:
        complete = completing.of_list(partial(tuple, item.known))
    option = FieldOption("Problem", metavar, item.flags, help=item.help, complete=complete)
    return Declared(place, bool if isinstance(item, Flag) else str, default, option)


def _described(option: Declared, operator: Operator, owners: Mapping[str, str]) -> Declared:
    """An option of the action, without the spellings that the operator's own options use and with
    the operator's names in its help.

    Raises `ProblemError` if no spelling is left.
    """
    flags = tuple(flag for flag in option.flags if flag not in owners)
    if flags != option.flags and not any(flag.startswith("--") for flag in flags):
        flag = next(flag for flag in option.flags if flag in owners)
        raise ProblemError(
            f"parameter {owners[flag]} of {operator.name} is called as the option {flag} of "
            "the command; rename it in the declaration"
        )
    own = replace(option.option, spellings=flags)
    return replace(option, option=own, finish=partial(_named, operator))


def _named(operator: Operator, text: str) -> str:
    """A help with the operator's names."""
    kernels = implementations(operator.library) if operator.library else ()
    names = sorted(kernels, key=lambda name: (len(name), name))  # variants have longer names
    return text.replace("{schedules}", ", ".join(operator.schedules)).replace(
        "{implementations}", listed(names, 60) or "none"
    )
