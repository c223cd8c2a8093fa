"""Commands from nouns and actions: the parameters of a function are the options of its command.

A parameter of an action is one of three:

* an option, annotated with a `FieldOption`: `seq: Annotated[str, FieldOption(help="Tokens.")]`;
* a noun, a dataclass: each field is an option, and the action receives an instance;
  `Annotated[Noun, {"field": "Help."}]` has other words for some fields;
* `values: Values` below `asking_for`: the fields of a noun as lists, which make a grid.

A field has its option's name, type and default; its docstring is the help. Texts of a `Literal`
are the only ones that it takes. An action that returns
reports has them shown: its command has `--format` and `--output` too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from operator import attrgetter
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from perfmodel.cli import ranges, spellings
from perfmodel.cli.helppages import Argument, Headed, HeadedGroup, Option, folded
from perfmodel.entries import bare, optional
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.frozen import dataclass
from perfmodel.units import UnitError

Action = Callable[..., Any]
Values = Callable[[], dict[str, list[Any]]]
"""Reads the values of each field, in the order of the options. Raises `PerfmodelError`."""

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a command that reads further options itself, from `context.args`."""
_TYPES = ("TYPE", "TYPES", "FORMATS")
"""What stands for types in a help text; formats of weights are spelt as types are."""
_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Declared:
    """An option before it is built: a parameter of an action, or a field of a noun."""

    name: str
    """Name of the parameter or field."""
    kind: Any
    """Type of the value, without None."""
    default: Any
    """The value that is taken if none is given; `inspect.Parameter.empty`: one must be given."""
    option: FieldOption
    """What is declared beside the type."""
    noun: Any = None
    """The dataclass whose docstrings are the help."""
    brief: bool = False
    """Whether the help is the first sentence of the docstring."""
    finish: Callable[[str], str] = str
    """What is done to the help when it is shown."""

    @property
    def flags(self) -> tuple[str, ...]:
        """The spellings, the one in messages first."""
        name = self.name.rstrip("_").replace("_", "-")
        return self.option.spellings or (f"--{name}",)

    @property
    def repeats(self) -> bool:
        """Whether the option repeats."""
        return self.option.repeats or get_origin(self.kind) in (list, tuple, Mapping)

    def help(self) -> str:
        """The help, with known names."""
        option, text = self.option, self.option.help
        if not text and self.noun is not None:
            from perfmodel.entryschema import about

            text = about(self.noun)[self.name].meaning
            text = f"{text.partition('. ')[0].removesuffix('.')}." if self.brief else text
        if isinstance(option.names, tuple) and option.names:
            several = "" if option.single else ", with commas"
            text = f"{text.removesuffix('.')}{several}: {', '.join(option.names)}."
        return self.finish(text)

    def built(self) -> click.Parameter:
        """The parameter of a command."""
        option, required = self.option, self.default is _REQUIRED
        settings: dict[str, Any] = {
            "metavar": None if self.kind is bool else option.metavar,
            "required": required,
            "callback": _our_spelling if option.metavar in _TYPES else None,
            "shell_complete": _completion(option.names),
        }
        if not required:
            types = str if option.read is not None else str | int | float
            plain = isinstance(self.default, types) and not self.repeats
            settings["default"] = self.default if plain and self.default != "" else None
        if self._is_size and self.default is not None and not required:
            default = self.default
            settings["default"] = ranges.short(default) if self.kind is int else str(default)
        if self.kind in (int, float) and option.read is None and not self._is_size:
            ranged = click.IntRange if self.kind is int else click.FloatRange
            bounds = option.least, option.most
            settings["type"] = self.kind if bounds == (None, None) else ranged(*bounds)
        if option.argument:
            nargs = -1 if self.repeats else 1
            return Argument([self.name], help=self.help, nargs=nargs, **settings)
        settings |= {"is_flag": True} if self.kind is bool else {"multiple": self.repeats}
        return Option([self.name, *self.flags], help=self.help, panel=option.panel, **settings)

    def value(self, given: Any) -> Any:
        """The value of a parameter or field. Raises what `FieldOption.read` raises."""
        if self.repeats:
            texts: Any = list(given)
            if get_origin(self.kind) is Mapping:
                form, example = str(self.option.metavar), self.option.example
                texts = spellings.pairs(self.flags[0], texts, form, example)
            if self.option.read is not None:
                return self.option.read(texts)
            return texts if texts or self.default is _REQUIRED else self.default
        if given is None:
            return None if self.default is _REQUIRED else self.default
        if self._is_size:
            read = ranges.one if self.kind is int else ranges.read
            return read(given, self.flags[0], self.option.least or 0)
        if self.option.single and isinstance(given, str):
            given = spellings.one(self.flags[0], given)
        if self.option.read is not None:
            try:
                return self.option.read(given)
            except UnitError as error:
                raise UnitError(f"{self.flags[0]}: {error}") from None
        if isinstance(self.option.names, tuple) and self.option.names:
            return spellings.chosen(self.flags[0], given, self.option.names)
        return given

    def as_text(self) -> Declared:
        """The same option with a text for `values`, where numbers and names take lists."""
        if not self._is_list:
            return self
        default = getattr(self.default, "name", self.default)
        return replace(self, kind=str, default=str(default) if self.kind is int else default)

    def values(self, given: Any) -> list[Any]:
        """The values of a list or range, or the one that click has read."""
        option, least = self.option, self.option.least or 0
        if not self._is_list:
            return [given]
        if self.kind is int and option.single:
            return [ranges.one(given, self.flags[0], least)]
        if self.kind is int:
            return [int(value) for value in ranges.parse(given, self.flags[0], least)]
        if given is None or (self.kind is str and given == self.default and not option.single):
            return [self.default if given is None else given]
        texts = (given,) if option.single else spellings.names(given)
        entries = [option.read(text) if option.read else text for text in texts]
        return [getattr(entry, "name", entry) if self.kind is str else entry for entry in entries]

    @property
    def _is_size(self) -> bool:
        """Whether it is one size, or sizes, as users write them: 4k, 1:8."""
        return (self.kind is int and self.option.single) or self.kind is ranges.Values

    @property
    def _is_list(self) -> bool:
        """Whether a grid has several values of it."""
        named = self.kind in (int, str) or self.option.read is not None
        return named and self.default is not None


def _completion(names: Any) -> Callable[[Any, Any, str], list[str]] | None:
    """The shell's completion of the last name of a list with commas."""
    if not names:
        return None

    def complete(_context: Any, _option: Any, text: str) -> list[str]:
        head, comma, last = text.rpartition(",")
        texts = (name for name in listed(names) if name.startswith(last))
        return [f"{head}{comma}{name}" for name in texts if name not in head.split(",")]

    return complete


def listed(names: Any) -> Iterable[str]:
    """The names of a `FieldOption`: as they are, of a function, or imported by "module:names"."""
    if isinstance(names, str):
        module, attribute = names.split(":")
        names = getattr(import_module(module), attribute)
    known_names: Iterable[str] = names() if callable(names) else names
    return known_names


def _our_spelling(_context: Any, _option: Any, text: str | None) -> str | None:
    from perfmodel.cli import spellings

    return text and spellings.types(text)


def declared(name: str, hint: Any, default: Any, noun: Any = None) -> Declared:
    """The option of an annotation."""
    outer = optional(hint) or hint
    metadata = getattr(outer, "__metadata__", ())
    option = next((item for item in metadata if isinstance(item, FieldOption)), FieldOption())
    kind = optional(bare(outer)) or bare(outer)
    if get_origin(kind) is Literal:
        metavar = "NAME" if option.metavar == "N" else option.metavar
        option = replace(option, metavar=metavar, names=get_args(kind), single=True)
        kind = str
    return Declared(name, kind, default, option, noun)


def options(noun: Any, without: Collection[str] = ()) -> list[Declared]:
    """The options of the fields of a dataclass, in the order of its `__init__`."""
    hints = get_type_hints(noun, include_extras=True)
    built = []
    for field in sorted(fields(noun), key=attrgetter("kw_only")):
        default: Any = _REQUIRED if field.default is MISSING else field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if field.name not in without:
            built.append(declared(field.name, hints[field.name], default, noun))
    return built


Describe = Callable[[Declared], Declared]
"""An option as one command has it."""


@dataclass(frozen=True)
class Slot:
    """An argument of an action."""

    params: Sequence[click.Parameter]
    """The parameters of the command that it is made from."""
    made: Callable[[Mapping[str, Any]], Any]
    """The argument, from the values of all parameters of the command."""


def asking_for(noun: Any, without: Collection[str] = ()) -> Callable[[Action], Action]:
    """Makes an action ask for the fields of `noun`, except those `without`.

    Their options stand where the action has its parameter `values`, which receives `Values`.
    """

    def mark(action: Action) -> Action:
        action.grid = noun, without  # type: ignore[attr-defined]
        return action

    return mark


def _slot(item: inspect.Parameter, describe: Describe | None, others: Collection[str]) -> Slot:
    """The argument of an action for one of its parameters: a noun or an option.

    Options lose the spellings that `others` have. Raises `ProblemError` for one that has no other.
    """
    kind = bare(item.annotation)
    noun: Any = kind if is_dataclass(kind) else None
    asked = options(noun) if noun else [declared(item.name, item.annotation, item.default)]
    if noun is not item.annotation and noun is not None:
        helps = get_args(item.annotation)[1]
        asked = [
            replace(each, option=replace(each.option, help=helps.get(each.name, each.option.help)))
            for each in asked
        ]
    if describe is not None:
        asked = list(map(describe, asked))
    asked = [_own_spellings(each, others) for each in asked]

    def made(given: Mapping[str, Any]) -> Any:
        values = {each.name: each.value(given[each.name]) for each in asked}
        return noun(**values) if noun else values[item.name]

    return Slot([each.built() for each in asked], made)


def _own_spellings(option: Declared, others: Collection[str]) -> Declared:
    """An option without the spellings of others. Raises `ProblemError` if no long one is left."""
    flags = tuple(flag for flag in option.flags if flag not in others)
    if flags == option.flags or option.option.argument:
        return option
    if not any(flag.startswith("--") for flag in flags):
        flag = option.flags[0]
        raise ProblemError(
            f"parameter {flag.lstrip('-')} is called as the option {flag} of the command; rename "
            "it in the declaration"
        )
    return replace(option, option=replace(option.option, spellings=flags))


def _lists(noun: Any, without: Collection[str]) -> Slot:
    """The argument `values` of an action below `asking_for`."""
    asked = [replace(each, brief=True) for each in options(noun, without)]

    def made(given: Mapping[str, Any]) -> Values:
        return lambda: {each.name: each.values(given[each.name]) for each in asked}

    return Slot([each.as_text().built() for each in asked], made)


def command(
    action: Action,
    name: str | None = None,
    *,
    slots: Mapping[str, Slot] | None = None,
    describe: Describe | None = None,
    help: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> click.Command:
    """The command of an action; its help is the action's docstring, or `help`.

    `slots` has arguments that are made otherwise, `describe` changes options, `settings` are those
    of the context.
    """
    grid = getattr(action, "grid", None)
    arguments = dict(slots or {})

    def add(item: inspect.Parameter) -> None:
        others = {flag for slot in arguments.values() for each in slot.params for flag in each.opts}
        arguments[item.name] = _slot(item, describe, others)

    signature = inspect.signature(action, eval_str=True)
    for item in signature.parameters.values():
        if item.name in arguments:
            continue
        if grid is not None and item.name == "values":
            arguments[item.name] = _lists(*grid)
        elif getattr(item.annotation, "__name__", "") == "Context":
            arguments[item.name] = Slot((), lambda _given: click.get_current_context())
        else:
            add(item)
    if signature.return_annotation is not None and "shown" not in signature.parameters:
        from perfmodel.cli.output import Shown  # --help of all commands needs none

        kind = inspect.Parameter.KEYWORD_ONLY
        add(inspect.Parameter("shown", kind, annotation=Shown))

    @wraps(action)
    def run(**given: Any) -> None:
        values = {name: slot.made(given) for name, slot in arguments.items()}
        output: Any = values.get("shown")
        if "shown" not in signature.parameters:
            values.pop("shown", None)
        result = action(**values)
        if output is not None and result is not None:
            output.emit(*(result if isinstance(result, Sequence) else [result]))

    params = [param for slot in arguments.values() for param in slot.params]
    text = folded(inspect.cleandoc(help or action.__doc__ or ""))
    return Headed(name, dict(settings or {}), run, params, help=text)


def further(options: Sequence[Declared], words: Sequence[str]) -> dict[str, Any]:
    """The values given in the words that a command with `PASS_ON` has left, for options that depend
    on its other arguments: texts, or True."""
    context = click.get_current_context(silent=True)
    path = "perfmodel" if context is None else context.command_path
    own = Headed("further", params=[each.built() for each in options], add_help_option=False)
    given = own.make_context(path, list(words))
    return {name: value for name, value in given.params.items() if value not in (None, False)}


class Group(HeadedGroup):
    """Commands that are imported or built when they are used."""

    commands: dict[str, Any]
    """By name a command, a function that makes it, or "module:attribute"."""

    def command(self, name: str, **settings: Any) -> Callable[[Action], Action]:  # type: ignore[override]
        """Makes an action the command of that name; `settings` as those of `command`."""

        def add(action: Action) -> Action:
            self.commands[name] = command(action, name, **settings)
            return action

        return add

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported or built."""
        entry = self.commands.get(cmd_name)
        if isinstance(entry, str):
            module, attribute = entry.split(":")
            entry = getattr(import_module(module), attribute)
            entry.name = cmd_name
        return entry() if entry is not None and not isinstance(entry, click.Command) else entry

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command named first. Raises `UnknownName`."""
        name = args[0]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        entry = self.get_command(ctx, name)
        if entry is None:
            hint = f"(see '{ctx.command_path} --help')"
            raise UnknownName("command", name, self.list_commands(ctx), hint)
        return name, entry, args[1:]
