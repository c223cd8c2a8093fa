"""Help pages: examples folded to 80 columns, options and commands under headings, whole summaries.

Typer without rich markup shows an option's `rich_help_panel` nowhere, writes examples as they are
and cuts the summaries of commands. Each function here takes a command that Typer built.
"""

from __future__ import annotations

import re
from dataclasses import fields
from functools import partial
from typing import Any

COLUMNS = 80
_MARGIN = 2  # columns that a help page is indented by
_EXAMPLE = re.compile(r"^ *perfmodel ", re.MULTILINE)
_SPLIT = re.compile(r' (?=--?[A-Za-z][\w-]*(?: (?!-)(?:"[^"]*"|[^ ]+))?)')


def shape(command: Any) -> None:
    """Fold the examples of a command, and show its options and commands under headings."""
    if command.help:
        command.help = "\n".join(map(_fold, command.help.split("\n")))
    command.format_options = partial(_format_options, command)


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


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments, then options under the heading of their panel, then the commands of a group."""
    sections: dict[str, list[tuple[str, str]]] = {}
    params = command.get_params(ctx)
    nouns = _nouns({param.name for param in params})
    for param in params:
        record = param.get_help_record(ctx)
        if record is not None:
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            heading = getattr(param, "rich_help_panel", None) or nouns.get(
                param.name.rstrip("_"), default
            )
            sections.setdefault(heading, []).append(record)
    for heading in sorted(sections, key=lambda name: name == "Output"):
        with formatter.section(heading):
            formatter.write_dl(sections[heading])
    if hasattr(command, "list_commands"):
        _format_commands(command, ctx, formatter)


def _nouns(names: set[str]) -> dict[str, str]:
    """The heading of each option that fills a field of a noun which its command asks for."""
    from perfmodel.cli.sweep import Question
    from perfmodel.evidence.tables.reading import Hints
    from perfmodel.networks.setting import Setting
    from perfmodel.operators.operator import Request

    nouns = (
        ("Kernel", Request, "device"),
        ("Pass", Setting, "network"),
        ("Columns", Hints, "tables"),
        ("Question", Question, "pareto"),
    )
    headings = {"chart": "Chart"} if "style" in names else {}
    return headings | {
        field.name: heading
        for heading, noun, needed in nouns
        if needed in names
        for field in fields(noun)
    }


def _format_commands(group: Any, ctx: Any, formatter: Any) -> None:
    """The commands of a group with whole summaries, under the headings that the group names."""
    getter = getattr(group, "summaries", None)
    texts = getter() if getter else {name: _summary(item) for name, item in group.commands.items()}
    headings = getattr(group, "headings", None) or {"Commands": tuple(texts)}
    for heading, names in headings.items():
        with formatter.section(heading):
            formatter.write_dl([(name, texts[name]) for name in names])


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    return " ".join((command.help or "").split("\n\n")[0].split())
