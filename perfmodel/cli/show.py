"""`perfmodel show KIND NAME`: the facts about a name that an option takes, with their sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from textwrap import wrap
from typing import Annotated, Any

import click

from perfmodel import glossary, operators
from perfmodel.cli import list_
from perfmodel.cli.build import Declared, Group, command
from perfmodel.cli.list_ import KINDS, singular
from perfmodel.cli.output import Shown
from perfmodel.errors import UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Column, Report
from perfmodel.render.facts import shown as told
from perfmodel.render.report import text
from perfmodel.timing import stated
from perfmodel.timing.libraries import kernel_facts, kernels
from perfmodel.timing.libraries.naming import asked_for
from perfmodel.timing.runs import HARNESSES
from perfmodel.timing.stated import Fact

_WIDE = 96  # limit on the characters of a note in a table


def show(
    kind: str,
    name: Annotated[str, FieldOption(metavar="NAME", argument=True)],
    every: Annotated[
        bool,
        FieldOption(
            spellings=("--all",),
            help="Also show facts without a source, which have default values.",
        ),
    ] = False,
    *,
    shown: Shown,
) -> Report:
    """Show the facts of a kind of name. The table has facts with a source, and sources by
    number."""
    head, facts = facts_of(kind, name)
    form, head = shown.form, {"kind": singular(kind), **head}
    people = form in ("table", "markdown")
    selection = [fact for fact in facts if every or not people or fact.by is not None]
    lines = [f"{head['name']}: {head['source']}"] if "source" in head else []
    lines += [f"{fact.by}: {fact.source}" for fact in selection if fact.source is not None]
    sources = {line: number + 1 for number, line in enumerate(dict.fromkeys(lines))}
    rows = [asdict(fact) for fact in selection]
    for row in rows:
        if people:
            row["number"] = sources.get(f"{row['by']}: {row['source']}")
        if form == "csv" and isinstance(row["value"], list | dict):
            row["value"] = json.dumps(row["value"])
    notes = [str(head["about"])] if head.get("library") and head["about"] else []
    notes += [f"{number}: {line}" for line, number in sources.items()]
    notes += [f"goes by: {', '.join(head['goes_by'])}"] if head.get("goes_by") else []
    if len(selection) < len(facts):
        notes.append(f"{len(facts) - len(selection)} more have the usual value; --all shows them")
    if form == "table":
        notes = [line for note in notes for line in wrap(note, _WIDE, subsequent_indent="   ")]
    words = ("name", "operator", "library") if "library" in head else ("name", "about")
    title = ", ".join(str(head[key]) for key in words if head.get(key))
    return Report("facts", rows, _COLUMNS, title, head, notes)


def facts_of(kind: str, name: str) -> tuple[dict[str, Any], Sequence[Fact]]:
    """What identifies a name, and its facts. Raises `UnknownName`."""
    if kind == "implementations":
        spelled = (asked_for(operator, name) for operator in operators.builtin.BUILT_IN)
        kernel = kernel_facts(next((s for s in spelled if s is not None and s in kernels()), name))
        head = {
            "name": kernel.name,
            "operator": kernel.operator,
            "library": stated.library_of(kernel),
            "about": kernel.about,
            "source": kernel.source,
            "goes_by": list(stated.goes_by(kernel.name)),
        }
        return head, stated.of_kernel(kernel.name)
    if kind == "operators":  # also one in a file
        operator = operators.load(name)
        facts = [
            Fact(each.flags[-1], getattr(each, "default", None), "", each.help, name, None)
            for each in operator.options
        ]
        return {"name": operator.name, "about": operator.about}, facts
    if kind in ("optimisers", "precisions"):
        from perfmodel.training import optimisers, precision
        from perfmodel.training import stated as training

        entry: Any = optimisers.load(name) if kind == "optimisers" else precision.load(name)
        stated_of = training.of_optimiser if kind == "optimisers" else training.of_precision
        return {"name": entry.name, "about": entry.about, "source": entry.source}, stated_of(entry)
    if kind == "words":
        word = glossary.load(name)
        meanings = (("other names", [*word.aliases], "Names of the same thing."),
                ("page", word.page, "Where the documents tell more, in docs/."))  # fmt: skip
        facts = [
            Fact(key, value, "", doc, word.name, None) for key, value, doc in meanings if value
        ]
        return {"name": word.name, "about": word.about}, facts
    rows = {row["name"]: row for row in list_.names_of(kind)}
    if name not in rows:
        raise UnknownName(singular(kind), name, rows)
    row = rows[name]
    if kind == "harnesses":
        return {"name": name, "about": row["about"]}, stated.of_harness(HARNESSES[name])
    if kind == "architectures":
        devices = row["about"].split(", ")
        facts = [Fact("devices", devices, "", "Shipped devices of it.", name, None)]
        facts += [
            Fact(case, kernel, "", f"Kernel where none is named, as on {devices[0]}.", name, None)
            for case, kernel in row["usual"].items()
        ]
        return {"name": name}, facts
    takers = row["operators"] or ["all"]
    fact = Fact("operators", takers, "", "Operators that take it.", name, None)
    return {"name": name, "about": row["about"]}, [fact]


_COLUMNS = (
    text("fact", "name", wrap=26, fold=12),
    Column("value", lambda row: told(row["value"], row["unit"]), number=False, wrap=24, fold=12),
    text("meaning", "meaning", wrap=35, fold=20),
    Column("source", "number"),
)


def _command(kind: str) -> click.Command:
    """The command of a kind of names."""

    def describe(option: Declared) -> Declared:
        if option.name != "name":
            return option
        names = lambda: (row["name"] for row in list_.names_of(kind))  # noqa: E731
        help_ = f"The name, as listed by perfmodel list {kind}."
        return Declared("name", str, option.default, FieldOption(
            metavar="NAME", argument=True, names=names, help=help_))  # fmt: skip

    about = f"Show the facts about one of the {kind}, with their meanings and sources."
    return command(partial(show, kind), singular(kind), describe=describe, help=about)


_HELP = """Show the facts about a name, with their meanings and sources.

A table has the facts with a source; JSON and CSV have all facts.

\b
perfmodel show implementation flash3
perfmodel show implementation deepgemm --format json
perfmodel show harness cuda_graph
"""
app = Group(commands={singular(kind): _command(kind) for kind in KINDS}, help=_HELP)
