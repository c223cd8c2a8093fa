"""Options that describe tables: --map, --set, --unit, --flops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from perfmodel.cli import completing
from perfmodel.cli.known import named as known_name
from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted
from perfmodel.validation.kinds import KINDS, load

if TYPE_CHECKING:
    from perfmodel.evidence.tables.reading import Hints
    from perfmodel.render import Report

Mapping = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="THEIRS=OURS",
        help="Read the column THEIRS as OURS, with commas or repeated: Runtime=measured_us.",
    ),
]
Stated = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="COLUMN=VALUE",
        help="Value for rows whose cell is empty, with commas or repeated: device=h100-sxm.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="Unit of the measured times: s, ms, us or ns."),
]
Flops = Annotated[
    str,
    typer.Option(
        "--flops",
        metavar="HOW",
        help="How given FLOP/s count a causal mask: causal (visible pairs only) or full (all"
        " pairs).",
    ),
]
Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="NAME",
        help="Print an empty table to fill in, and stop: for an operator, training, "
        "collective or serving.",
        autocompletion=completing.templates,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="KIND",
        help=f"Print what each column of a kind of table means, and stop: {', '.join(KINDS)}.",
        autocompletion=completing.of_list(lambda: KINDS),
    ),
]


def hints(
    mapping: list[str] | None, stated: list[str] | None, unit: str | None, flops: str
) -> Hints:
    """The options as hints. Raises `ProblemError` or `UnknownName` for invalid ones."""
    from perfmodel.evidence.tables.reading import FLOPS, Hints
    from perfmodel.evidence.tables.vocabulary import vocabulary

    return Hints(
        _pairs("--map", mapping, "Runtime=measured_us"),
        _pairs("--set", stated, "device=h100-sxm"),
        vocabulary().time(unit).name if unit is not None else "",
        known_name("way of counting", flops.strip(), FLOPS),
    )


def _pairs(option: str, texts: Iterable[str] | None, example: str) -> dict[str, str]:
    """Pairs of a=b, c=d. Raises `ProblemError` for another form, or a name given twice."""
    pairs: dict[str, str] = {}
    for pair in (pair for text in texts or () for pair in text.split(",")):
        name, _, value = (part.strip() for part in pair.rpartition("="))
        if not (name and value):
            raise ProblemError(f"{option} {quoted(pair)} is not of the form A=B; write {example}")
        if pairs.setdefault(name, value) != value:
            raise ProblemError(f"{option} gives {name} as {pairs[name]} and as {value}; choose one")
    return pairs


def named(tables: list[str] | None) -> list[str]:
    """The tables. Raises `ProblemError` where none is named."""
    if not tables:
        raise ProblemError(
            "no table named; give a file or - for stdin (perfmodel compare --template gemm "
            "prints one to fill in)"
        )
    return tables


def print_template(name: str) -> None:
    """Print an empty table of an operator or of another kind. Raises `UnknownName`."""
    from perfmodel.cli.output import to_stdout
    from perfmodel.evidence.records.template import template

    name = name.strip()
    has_own = name in KINDS and load(name).example
    to_stdout(iter([load(name).template if has_own else template(name)]))


def reference(kind: str) -> Report:
    """The columns of a kind of table as a report. Raises `UnknownName`."""
    from perfmodel.evidence.tables.reference import columns
    from perfmodel.render import tablecolumns

    kind = kind.strip()
    meanings = columns(load(kind).layout, kind)
    return tablecolumns.report(
        kind, [{**asdict(column), "names": list(column.names)} for column in meanings]
    )
