"""The report of predictions: varying fields in columns, common ones in the title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perfmodel.hardware.levels import OWN, together
from perfmodel.prediction import counted_work
from perfmodel.render.basis import basis
from perfmodel.render.problem import equals, shared
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    span,
    text,
)
from perfmodel.units import si

_GENERIC = {"hbm": "main memory", "l2": "L2", "llc": "LLC"}
_UNITS = ("matrix", "vector", "special")


def report(
    rows: Iterable[Row],
    examples: Sequence[Row],
    varying: Sequence[str],
    follows: Mapping[str, str],
    why: Sequence[str] = (),
    tile: Sequence[str] = (),
) -> Report:
    """One line for each prediction; `varying` are the problem's fields that differ.

    `follows` maps a field to another one that it always equals. `examples` are rows that together
    have every key. `why` are sentences that come first below the table. `tile` are the dimensions
    of a tile that the user has set.
    """
    row = examples[0]
    dimensions = [Column(f"tile {name}", f"tile.{name}", "{:.0f}") for name in tile]
    return Report(
        "predictions",
        rows,
        [*_identity(examples, varying), *dimensions, *_summary(examples)],
        title=f"{row['algorithm']}: {equals(shared(row['problem'], varying, follows))}",
        notes=[*why, *basis(examples)],
        examples=examples,
    )


def terms(
    rows: Iterable[Row], examples: Sequence[Row], varying: Sequence[str], why: Sequence[str] = ()
) -> Report:
    """Every term of every prediction, to follow their `report`."""
    from perfmodel.render import terms as all_terms

    many = {
        "device": len({row["device"] for row in examples}) > 1,
        "kernel": len({(row["schedule"], row.get("implementation")) for row in examples}) > 1,
    }
    columns = [column for column in _identity(examples, varying) if many.get(column.header, True)]
    return all_terms.report(rows, columns, [*why, *basis(examples)])


def labels(rows: Sequence[Row], varying: Sequence[str]) -> list[str]:
    """Labels that distinguish predictions: device, kernel (or schedule), varying fields, else the
    tile."""

    def label(row: Row, kernel: str) -> str:
        problem = row["problem"]
        sizes = (f"{n}={problem[n]}" if n in problem else f"no {n}" for n in varying)
        return " ".join([row["device"], kernel, *sizes])

    names = [label(row, row.get("implementation") or row["schedule"]) for row in rows]
    if len({*names}) == len(names):
        return names
    names = [label(row, row["schedule"]) for row in rows]
    if len({*names}) == len(names):
        return names
    tiles = (" ".join(f"{k}={v:.0f}" for k, v in row["tile"].items()) for row in rows)
    return [f"{name} {tile}" for name, tile in zip(names, tiles, strict=True)]


def _identity(examples: Sequence[Row], varying: Sequence[str]) -> list[Column]:
    return [text("device", "device"), _kernel(), *map(of_problem, varying)]


def of_problem(name: str) -> Column:
    """The column of a size or kind of a problem."""
    return Column(name, f"problem.{name}", str)


def _kernel() -> Column:
    """The library's kernel and its schedule."""

    def full_name(row: Row) -> str:
        kernel, schedule = row.get("implementation"), row["schedule"]
        return f"{kernel} ({schedule})" if kernel else str(schedule)

    return Column("kernel", full_name, number=False, fold=24)


def _rate(row: Row) -> str:
    """Operations a second; bytes of the device's memory a second where nothing is computed."""
    work = counted_work(row["useful_flops"], row["flops"])
    amount, unit = (work, "FLOP/s") if work else (row["bytes"]["hbm"], "B/s")
    return si(amount / row["time_us"] * 1e6, unit)


def _memory(row: Row) -> str:
    """Bytes in the device's own memory, and bytes elsewhere."""
    others = (
        f" + {binary(size)} {name}" for name, size in row["footprints"].items() if name != "hbm"
    )
    return binary(row["footprint_bytes"]) + "".join(others) + ("" if row["fits"] else "*")


def _runner_up(row: Row) -> str:
    """The term next to the limiter, and its share of it."""
    second, times = row["runner_up"], row["terms_us"]
    return f"{row['levels'].get(second, second)} {times[second] / times[row['limiter']]:.0%}"


def _limiter_colour(row: Row) -> str:
    """Green for compute units, cyan for memory, yellow for overhead."""
    limiter = row["limiter"]
    if limiter in _UNITS:
        return "green"
    return "cyan" if limiter in (*row["levels"], "shared") else "yellow"


def _summary(examples: Sequence[Row]) -> list[Column]:
    names = together((item for row in examples for item in row["levels"].items()), _GENERIC)
    levels = ["hbm", *(name for name in names if name not in OWN)]
    return [
        Column("time", "time_us", style=lambda row: "bold"),
        Column("range", span, rank=1),
        Column(
            "limiter",
            lambda row: row["levels"].get(row["limiter"], row["limiter"]),
            number=False,
            style=_limiter_colour,
        ),
        Column("runner-up", _runner_up, number=False, rank=2),
        Column("rate", _rate, rank=1),
        *(
            Column(names.get(name, name), f"bytes.{name}", "bytes", rank=2 if name == "hbm" else 1)
            for name in levels
        ),
        Column("FLOP/B", "arithmetic_intensity.hbm", "number", rank=4),
        Column("memory", _memory, rank=3, style=lambda row: "" if row["fits"] else "red"),
    ]
