"""Command groups that import a command only when it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from typer.core import TyperGroup

from perfmodel.cli.plainoptions import built


def lazy_group(
    commands: Mapping[str, tuple[str, str]], under: Mapping[str, Iterable[str]] | None = None
) -> type[TyperGroup]:
    """A group of `name: ("module:attribute", one-line help)`; each attribute is a Typer app.

    `under` has the names of the commands by the heading they stand under in the help.
    """

    class Lazy(TyperGroup):
        headings = under

        def summaries(self) -> dict[str, str]:
            return {name: text for name, (_, text) in commands.items()}

        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in commands:
                return None
            module, attribute = commands[cmd_name][0].split(":")
            command = built(getattr(import_module(module), attribute))
            command.name = cmd_name
            return command

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] not in commands:
                from perfmodel.errors import UnknownName

                raise UnknownName(
                    "command", args[0], commands, f"(see '{ctx.command_path} --help')"
                )
            return super().resolve_command(ctx, args)

    return Lazy
