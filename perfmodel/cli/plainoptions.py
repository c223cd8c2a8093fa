"""Options without a pydantic validator each.

Typer builds a validator for every option of a command, given or not, which takes longer than a
prediction. Texts need none, nor do options that are not given. Other options get Typer's validator
when it is needed. Releases of Typer without such validators are left unchanged.
"""

from __future__ import annotations

from typing import Any

import typer

from perfmodel.cli import helppages, spellings

_TYPES = ("TYPE", "TYPES", "FORMATS")
"""What stands for types in a help text; formats of weights are spelt as types are."""


def _our_spelling(_context: Any, _option: Any, text: str | None) -> str | None:
    return text and spellings.types(text)


class _Unvalidated:
    """Placeholder for the validator of an option."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        if _is_text(param):
            return list(value) if many else value
        param._runtime_param = None  # Typer builds its own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def built(app: typer.Typer) -> Any:
    """The command of an app and its subcommands: options without validators, shaped help pages."""
    command = typer.main.get_command(app)
    _prepare(command)
    return command


def _prepare(command: Any) -> None:
    helppages.shape(command)
    params = command.get_params  # --help is one of them, and is created on demand

    def get_params(ctx: Any) -> list[Any]:
        options: list[Any] = params(ctx)
        for param in options:
            if getattr(param, "_runtime_param", param) is None:
                param._runtime_param = _Unvalidated()
            if param.metavar in _TYPES and param.callback is None:
                param.callback = _our_spelling
        return options

    command.get_params = get_params
    for subcommand in getattr(command, "commands", {}).values():
        _prepare(subcommand)


def _is_text(param: Any) -> bool:
    kind = param.type_descriptor
    plain = kind.annotation in (str, list[str]) and kind.parameter_info.parser is None
    return plain and param.nargs in (1, -1)
