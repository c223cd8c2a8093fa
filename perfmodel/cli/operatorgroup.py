"""Command groups with a command for each operator: predict, roofline, sweep, whatif.

`operator_group` joins the options of an operator with those of an action on its cases, so that an
operator's options are declared once, in `perfmodel.operators`. A user's declaration is a command
too: `perfmodel predict mine.yaml`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from perfmodel import operators
from perfmodel.cli import cases, completing, spellings
from perfmodel.cli.plainoptions import built
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.operators import Choice, Flag, Operator, Option, Size
from perfmodel.render.report import listed
from perfmodel.timing.libraries import implementations

Action = Callable[..., None]


def operator_group(
    action: Action,
    examples: Callable[[Operator], str],
    more: Mapping[str, tuple[typer.Typer, str]] | None = None,
) -> type[TyperGroup]:
    """A group with a command for each operator, created on demand.

    `action` receives the cases first. `examples` are shown at the end of a command's help. `more`
    are further commands with their one-line help.
    """
    extras = more or {}

    class Operators(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [*operators.names(), *extras]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name in extras:
                subcommand = built(extras[cmd_name][0])
            else:
                app = typer.Typer(rich_markup_mode=None, add_completion=False)
                operator = _operator(cmd_name)
                app.command(cmd_name)(command(operator, action, examples(operator)))
                subcommand = built(app)
            subcommand.name = cmd_name
            return subcommand

        def summaries(self) -> dict[str, str]:
            texts = {item.name: item.about for item in operators.every()}
            return texts | {name: text for name, (_, text) in extras.items()}

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            try:
                return super().resolve_command(ctx, args)
            except UnknownName as error:
                raise UnknownName(
                    "command",
                    args[0],
                    self.list_commands(ctx),
                    f"(see '{ctx.command_path} --help')",
                ) from error

    return Operators


def _operator(name: str) -> Operator:
    """The operator of that name, or of another spelling of it such as sdpa."""
    try:
        return operators.load(name)
    except UnknownName:
        spelling = spellings.operator(name, operators.names())
        if spelling == name:
            raise
        return operators.load(spelling)


def command(operator: Operator, action: Action, examples: str) -> Action:
    """A command with the options of `operator` and of `action`, which receives the cases first."""
    rest = list(inspect.signature(action, eval_str=True).parameters.values())[1:]
    # A parameter of a declaration may have any name; a Python argument may not.
    places = {f"option_{i}": item for i, item in enumerate(operator.options)}

    def run(**options: Any) -> None:
        values = {item.name: options.pop(place) for place, item in places.items()}
        action(cases.read(operator, values), **options)

    head = [_parameter(place, item) for place, item in places.items()]
    rest = [_fill_help(_drop_clashes(operator, item), operator) for item in rest]
    parameters = [*head, *(item.replace(kind=item.KEYWORD_ONLY) for item in rest)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__name__ = "run"
    run.__doc__ = f"{operator.about}\n\n{examples.rstrip()}"
    return run


def _parameter(place: str, item: Option) -> inspect.Parameter:
    """The Python parameter for an option."""
    default: Any = False if isinstance(item, Flag) else item.default
    kind: Any = bool if isinstance(item, Flag) else str if default is not None else str | None
    metavar = (
        None if isinstance(item, Flag) else "SIZES" if isinstance(item, Size) else item.metavar
    )
    option = typer.Option(
        *item.flags,
        metavar=metavar,
        help=item.help,
        autocompletion=_completion(item),
        rich_help_panel="Problem",
    )
    return inspect.Parameter(
        place, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _fill_help(item: inspect.Parameter, operator: Operator) -> inspect.Parameter:
    """A parameter of the action, with the operator's names filled into its help."""
    (option,) = (meta for meta in item.annotation.__metadata__ if hasattr(meta, "help"))
    if "{" not in (option.help or ""):
        return item
    kernels = implementations(operator.library) if operator.library else ()
    names = sorted(kernels, key=lambda name: (len(name), name))  # variants have longer names
    clone = copy(option)
    clone.help = option.help.format(
        schedules=", ".join(operator.schedules), implementations=listed(names, 60) or "none"
    )
    annotation: Any = Annotated[item.annotation.__origin__, clone]
    return item.replace(annotation=annotation)


def _completion(item: Option) -> completing.Completion | None:
    """The shell completion of an option's values."""
    if isinstance(item, Choice) and item.known is not None:
        return completing.of_list(lambda: item.known or ())
    return completing.types if "dtype" in item.name else None


def _drop_clashes(operator: Operator, item: inspect.Parameter) -> inspect.Parameter:
    """A parameter of the command, without spellings that the operator's own options use.

    Raises `ProblemError` if none is left.
    """
    flags = _flags(item)
    owners = {flag: option.name for option in operator.options for flag in option.flags}
    rest = tuple(flag for flag in flags if flag not in owners)
    if rest == flags:
        return item
    if not any(flag.startswith("--") for flag in rest):
        flag = next(flag for flag in flags if flag in owners)
        raise ProblemError(
            f"parameter {owners[flag]} of {operator.name} is called as the option {flag} of "
            "the command; rename it in the declaration"
        )
    (option,) = (copy(meta) for meta in item.annotation.__metadata__ if _is_option(meta))
    option.default, option.param_decls = rest[0], rest[1:]
    return item.replace(annotation=Annotated[item.annotation.__origin__, option])


def _is_option(meta: Any) -> bool:
    return hasattr(meta, "param_decls")


def _flags(item: inspect.Parameter) -> tuple[str, ...]:
    """The spellings of an option; under Annotated, Typer stores the first one as the default."""
    (option,) = filter(_is_option, item.annotation.__metadata__)
    texts = (option.default, *(option.param_decls or ()))
    flags = tuple(text for text in texts if isinstance(text, str) and text.startswith("-"))
    return flags or (f"--{item.name.replace('_', '-')}",)
