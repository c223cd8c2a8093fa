"""Help pages: examples folded to 80 columns, options and commands under headings, whole summaries.

Click shows options in one list, writes examples as they are and cuts the summaries of commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from typing import Any

import click

COLUMNS = 80
_MARGIN = 2  # columns that a help page is indented by
_EXAMPLE = re.compile(r"^ *perfmodel ", re.MULTILINE)
_SPLIT = re.compile(r' (?=--?[A-Za-z][\w-]*(?: (?!-)(?:"[^"]*"|[^ ]+))?)')


class Option(click.Option):
    """An option with a heading and a help that is asked for when it is shown."""

    def __init__(
        self,
        flags: list[str],
        help: Callable[[], str],
        panel: str | None = None,
        **settings: Any,
    ) -> None:
        self.panel, self._text = panel, help
        super().__init__(flags, show_default=True, **settings)

    @property
    def help(self) -> str | None:
        """The help."""
        return self._text()

    @help.setter
    def help(self, text: str | None) -> None:
        """Click sets its own."""


class Argument(click.Argument):
    """An argument with a help that is asked for when it is shown."""

    def __init__(self, names: list[str], help: Callable[[], str], **settings: Any) -> None:
        super().__init__(names, **settings)
        self._text = help

    def make_metavar(self, ctx: click.Context) -> str:
        """What stands for the argument, in brackets where it may be left out."""
        text = super().make_metavar(ctx)
        return text if self.required or text.startswith("[") else f"[{text}]"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The argument and its help."""
        return self.make_metavar(ctx), self._text() + "  [required]" * self.required


class Headed(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, then options under the heading of their panel, outputs last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        params = self.get_params(ctx)
        for param in params:
            record = param.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if isinstance(param, Argument) else "Options"
                sections.setdefault(getattr(param, "panel", None) or default, []).append(record)
        for heading in sorted(sections, key=lambda name: name == "Output"):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


class HeadedGroup(Headed, click.Group):
    """Commands with whole summaries, under headings."""

    def __init__(
        self,
        summaries: Callable[[], Mapping[str, str]] | None = None,
        headings: Mapping[str, Iterable[str]] | None = None,
        help: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(no_args_is_help=True, help=folded(cleandoc(help)), **settings)
        self.summaries, self.headings = summaries or self._summaries, headings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        texts = self.summaries()
        for heading, names in (self.headings or {"Commands": tuple(texts)}).items():
            with formatter.section(heading):
                formatter.write_dl([(name, texts[name]) for name in names])

    def _summaries(self) -> dict[str, str]:
        """The first paragraph of each command's help."""
        return {
            name: " ".join((command.help or "").split("\n\n")[0].split())
            for name, command in self.commands.items()
        }


def folded(text: str) -> str:
    """A help text whose examples are folded."""
    return "\n".join(map(_fold, text.split("\n")))


def _fold(line: str) -> str:
    """An example that is too long as several lines, each but the last ended by a backslash."""
    if len(line) + _MARGIN <= COLUMNS or not _EXAMPLE.match(line):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    lines = [""]
    for part in _SPLIT.split(line):
        longer = f"{lines[-1]} {part}" if lines[-1] else part
        if len(longer) + len(" \\") + _MARGIN <= COLUMNS or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(indent + part)
    return " \\\n".join(lines)
