"""`perfmodel --install-completion` and `--show-completion`: the shell's script for completion."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from perfmodel.errors import ProblemError, say

_START = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/perfmodel.fish",
}
"""The file that a shell reads when it starts."""


def _script() -> tuple[str, str]:
    """The user's shell and its script. Raises `ProblemError` for a shell without one."""
    shell = Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if kind is None or shell not in _START:
        raise ProblemError(f"no completion for the shell {shell!r}; use {', '.join(_START)}")
    complete = kind(click.Command("perfmodel"), {}, "perfmodel", "_PERFMODEL_COMPLETE")
    return shell, complete.source_template % complete.source_vars()


def show(context: click.Context, _option: Any, flag: bool) -> None:
    """Print the script, and end."""
    if flag:
        click.echo(_script()[1])
        context.exit()


def install(context: click.Context, _option: Any, flag: bool) -> None:
    """Add the script to the file that the shell reads when it starts, and end."""
    if not flag:
        return
    shell, script = _script()
    path = Path(_START[shell]).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if script not in text:
        path.write_text(f"{text}\n{script}", encoding="utf-8")
    say(f"{shell} completes perfmodel, by {path}; start a new shell")
    context.exit()
