"""Every term of predictions as a table: units, memory levels, start, each with its work.

One line for each term that is not zero, so that each column has one kind of quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from perfmodel.render.report import Column, Report, Row, quantity, ratio, text

PARTS: Mapping[str, Mapping[str, str]] = {
    "units": {
        "matrix": "matrix products",
        "special": "exponentials",
        "vector": "other arithmetic",
    },
    "start": {
        "blocks": "fill and drain",
        "gap": "between kernels",
        "launch": "start of a call",
        "included": "also timed by the harness",
    },
    "memory": {
        "shared": "traffic on chip",
        "transpose": "of 8-bit values",
        "latency": "waits for loads",
    },
    "chip": {"power": "units at the power limit"},
}
"""The parts of a kernel's time and their terms; any other term is a memory level."""

_PART = {term: part for part, terms in PARTS.items() for term in terms}
ABOUT = {term: about for terms in PARTS.values() for term, about in terms.items()}
"""What each term is, in a few words; any other term is the traffic of a memory level."""
_ORDER = ("grid", "units", "memory", "chip", "start")
_LEVEL = "traffic"


def report(rows: Iterable[Row], who: Sequence[Column], notes: Sequence[str]) -> Report:
    """The terms of each prediction in `rows`; the columns `who` distinguish predictions."""
    return Report("terms", _lines(rows), [*map(_case_column, who), *_COLUMNS], notes=notes)


def _case_column(column: Column) -> Column:
    """A column of a prediction, for one of its lines."""
    return replace(column, get=lambda line: column.cell(line["case"]), show=str)


def _lines(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        lines = [*_grid(row), *_terms(row)]
        yield from sorted(lines, key=lambda line: _ORDER.index(line["part"]))


def _grid(row: Row) -> Iterator[Row]:
    """How the work is divided into blocks."""
    if row["tile"]:
        tile = " ".join(f"{axis}={_count(size)}" for axis, size in row["tile"].items())
        yield {"case": row, "part": "grid", "resource": "tile", "about": tile}
    waves = f"{ratio(row['waves'])}; blocks on a unit at a time: {ratio(row['occupancy'])}"
    yield {"case": row, "part": "grid", "resource": "waves", "about": waves}


def _terms(row: Row) -> Iterator[Row]:
    names = dict.fromkeys([*row["terms_us"], *row["flops"], *row["bytes"]])
    for name in names:
        amounts = {
            "operations": row["flops"].get(name) or None,
            "bytes": row["bytes"].get(name) or None,
            "time_us": row["terms_us"].get(name) or None,
        }
        if not any(amounts.values()):
            continue
        level = row["levels"].get(name, name)
        slack = name == "power" and row["limiter"] != "power"
        yield {
            "case": row,
            "part": _PART.get(name, "memory"),
            "resource": "shared" if name == "shared" else level,
            **amounts,
            "intensity": row["arithmetic_intensity"].get(name) or None,
            "share": (amounts["time_us"] or 0.0) / row["time_us"] or None,
            "limits": name == row["limiter"],
            "about": ABOUT.get(name, _LEVEL) + (", slack" if slack else ""),
        }


def _count(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _limiting(line: Row) -> str:
    return "yellow" if line.get("limits") else ""


_COLUMNS = (
    text("part", "part"),
    text("resource", "resource", style=_limiting),
    Column("time", "time_us", style=_limiting),
    Column("of all", "share", _percent, rank=1),
    Column("work", "operations", quantity("OP"), rank=1),
    Column("bytes", "bytes", rank=1),
    Column("FLOP/B", "intensity", rank=3),
    text("what it is", "about", wrap=46, fold=16, rank=2),
)
