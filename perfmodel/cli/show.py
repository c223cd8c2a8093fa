"""`perfmodel show KIND NAME`: the facts about a name that an option takes, with their sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Annotated, Any

import click

from perfmodel import operators
from perfmodel.cli import completing
from perfmodel.cli.build import command
from perfmodel.cli.list_ import KINDS as LISTED
from perfmodel.cli.list_ import singular
from perfmodel.cli.output import Shown
from perfmodel.errors import UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Column, Report
from perfmodel.render.facts import shown
from perfmodel.render.report import Row, text
from perfmodel.timing import stated
from perfmodel.timing.libraries import kernel_facts, kernels
from perfmodel.timing.libraries.naming import asked_for
from perfmodel.timing.runs import HARNESSES
from perfmodel.timing.stated import Fact

Head = dict[str, Any]
Found = tuple[Head, Sequence[Fact]]
_COMPLETE = completing.of_list("perfmodel.cli.show:KINDS")
_WIDE = 96  # limit on the characters of a note in a table


def _names_of_kind(ctx: click.Context, incomplete: str) -> list[str]:
    """Shell completion of a name of the given kind."""
    rows = {singular(kind): rows for kind, rows in LISTED.items()}.get(ctx.params.get("kind", ""))
    return completing.of_list(lambda: (row["name"] for row in rows()) if rows else ())(incomplete)


@dataclass(frozen=True)
class Asked:
    """What `show` is asked for."""

    kind: Annotated[str, FieldOption(metavar="KIND", argument=True, complete=_COMPLETE)]
    """implementation, harness, operator, schedule, type, variant, algorithm, graph, network,
    engine, optimiser, precision, level, architecture, device or system."""
    name: Annotated[str, FieldOption(metavar="NAME", argument=True, complete=_names_of_kind)]
    """The name, as listed by perfmodel list KIND."""
    every: Annotated[bool, FieldOption(spellings=("--all",))] = False
    """Also show facts without a source, which have default values."""


def show(asked: Asked, shown: Shown) -> None:
    """Show the facts about a name, with their meanings and sources.

    A table has the facts with a source; JSON and CSV have all facts.

    \b
    perfmodel show implementation flash3
    perfmodel show implementation deepgemm --format json
    perfmodel show harness cuda_graph
    """
    if asked.kind not in KINDS:
        raise UnknownName("kind of names", asked.kind, KINDS, "(perfmodel list has all names)")
    head, facts = KINDS[asked.kind](asked.name)
    shown.emit(_report({"kind": asked.kind, **head}, facts, shown.form, asked.every))


def _report(head: Head, facts: Sequence[Fact], form: str, every: bool) -> Report:
    """The facts in a format. The table has facts with a source, and sources by number."""
    people = form in ("table", "markdown")
    selection = [fact for fact in facts if every or not people or fact.by is not None]
    lines = [f"{head['name']}: {head['source']}"] if "source" in head else []
    lines += [f"{fact.by}: {fact.source}" for fact in selection if fact.source is not None]
    sources = {line: number + 1 for number, line in enumerate(dict.fromkeys(lines))}
    rows = [_row(fact, sources.get(f"{fact.by}: {fact.source}"), form) for fact in selection]
    notes = [f"{number}: {line}" for line, number in sources.items()]
    notes += [f"goes by: {', '.join(head['goes_by'])}"] if head.get("goes_by") else []
    if len(selection) < len(facts):
        notes.append(f"{len(facts) - len(selection)} more have the usual value; --all shows them")
    if form == "table":
        notes = [line for note in notes for line in wrap(note, _WIDE, subsequent_indent="   ")]
    title = ", ".join(
        str(head[key]) for key in ("name", "operator", "library", "about") if head.get(key)
    )
    return Report("facts", rows, _COLUMNS, title, head, notes)


def _row(fact: Fact, number: int | None, form: str) -> Row:
    """A fact as a row: with the source's number in a table, with values in one cell in CSV."""
    row = asdict(fact)
    if form in ("table", "markdown"):
        row["number"] = number
    if form == "csv" and isinstance(fact.value, list | dict):
        row["value"] = json.dumps(fact.value)
    return row


def _implementation(name: str) -> Found:
    kernel = kernel_facts(_kernel(name))
    head = {
        "name": kernel.name,
        "operator": kernel.operator,
        "library": stated.library_of(kernel),
        "source": kernel.source,
        "goes_by": list(stated.goes_by(kernel.name)),
    }
    return head, stated.of_kernel(kernel.name)


def _kernel(name: str) -> str:
    """A kernel's name, from another spelling of it (FlashAttention-2); else the name as it is."""
    names = (asked_for(operator, name) for operator in operators.builtin.BUILT_IN)
    return next((each for each in names if each is not None and each in kernels()), name)


def _harness(name: str) -> Found:
    run = HARNESSES.load(name)
    return {"name": name, "about": run.about}, stated.of_harness(run)


def _operator(name: str) -> Found:
    """The options of an operator and its schedules; also of an operator in a file."""
    operator = operators.load(name)
    facts = [
        Fact(each.flags[-1], getattr(each, "default", None), "", each.help, name, None)
        for each in operator.options
    ]
    return {"name": operator.name, "about": operator.about}, facts


def _optimiser(name: str) -> Found:
    from perfmodel.training import optimisers, stated

    return _described(optimisers.load(name), stated.of_optimiser)


def _precision(name: str) -> Found:
    from perfmodel.training import precision, stated

    return _described(precision.load(name), stated.of_precision)


def _described(entry: Any, facts: Callable[[Any], Sequence[Fact]]) -> Found:
    head = {"name": entry.name, "about": entry.about, "source": entry.source}
    return head, facts(entry)


def _architecture(name: str) -> Found:
    """Its devices, and the kernels that a generic good library runs on the first of them."""
    rows = {row["name"]: row for row in LISTED["architectures"]()}
    if name not in rows:
        raise UnknownName("architecture", name, rows)
    devices = rows[name]["about"].split(", ")
    facts = [Fact("devices", devices, "", "Shipped devices of it.", name, None)]
    facts += [
        Fact(case, kernel, "", f"Kernel where none is named, as on {devices[0]}.", name, None)
        for case, kernel in rows[name]["usual"].items()
    ]
    return {"name": name}, facts


def _lookup(kind: str, rows: str) -> Callable[[str], Found]:
    """A kind whose only facts are its line in the list."""

    def look(name: str) -> Found:
        lines = {row["name"]: row for row in LISTED[rows]()}
        if name not in lines:
            raise UnknownName(kind, name, lines)
        about, takes = lines[name]["about"], lines[name]["operators"]
        facts = [Fact("operators", takes or ["all"], "", "Operators that take it.", name, None)]
        return {"name": name, "about": about}, facts

    return look


KINDS: Mapping[str, Callable[[str], Found]] = {
    **{singular(kind): _lookup(singular(kind), kind) for kind in LISTED},
    "implementation": _implementation,
    "harness": _harness,
    "architecture": _architecture,
    "operator": _operator,
    "optimiser": _optimiser,
    "precision": _precision,
}
"""Kinds that can be shown, each for a single name."""
_COLUMNS = (
    text("fact", "name", wrap=26, fold=12),
    Column("value", lambda row: shown(row["value"], row["unit"]), number=False, wrap=24, fold=12),
    text("meaning", "meaning", wrap=35, fold=20),
    Column("source", lambda row: row["number"]),
)

app = command(show)
