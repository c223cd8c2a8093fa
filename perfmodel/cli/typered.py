"""Commands that are still declared with Typer, as those of `build`; goes with the last of them."""

from __future__ import annotations

from typing import Any

from perfmodel.fieldoption import FieldOption


def option(meta: Any) -> FieldOption:
    """The `typer.Option` or `typer.Argument` of an annotation."""
    texts = (meta.default, *(meta.param_decls or ()))
    return FieldOption(
        panel=meta.rich_help_panel,
        metavar=meta.metavar,
        spellings=tuple(t for t in texts if isinstance(t, str) and t.startswith("-")),
        least=meta.min,
        most=meta.max,
        help=meta.help or "",
        argument=type(meta).__name__ == "ArgumentInfo",
        complete=meta.autocompletion,
    )


def command(app: Any) -> Any:
    """The command of a Typer app: its only one, or the group of them."""
    from perfmodel.cli.build import Group
    from perfmodel.cli.build import command as built

    commands = {}
    for item in app.registered_commands:
        name = item.name or item.callback.__name__.replace("_", "-")
        commands[name] = built(item.callback, name, settings=item.context_settings)
    if app.registered_callback is None and len(commands) == 1:
        return next(iter(commands.values()))
    kind = app.info.cls if app.info.cls and issubclass(app.info.cls, Group) else Group
    return kind(commands=commands, help=app.registered_callback.callback.__doc__)
