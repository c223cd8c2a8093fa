"""Reports of collectives and of roofs of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    micros,
    quantity,
    ratio,
    text,
)


def report(rows: Sequence[Row], *, terms: bool = False) -> Report:
    """One line for each collective; with `terms` a column for each of its terms."""
    columns = [
        text("system", "system"),
        Column("ranks", lambda row: row["problem"]["ranks"], str),
        Column("size", lambda row: row["problem"]["bytes"], binary),
        text("algorithm", "algorithm"),
        text("protocol", "protocol"),
        Column("time", lambda row: row["time_us"], micros),
        Column("range", lambda row: f"{micros(row['low_us'])} to {micros(row['high_us'])}", str),
        Column("bus", lambda row: row["bus_gb_per_s"] * 1e9, quantity("B/s")),
        text("limiter", "limiter"),
    ]
    if terms:
        names = dict.fromkeys(name for row in rows for name in row["terms_us"])
        columns += [_term(name) for name in names]
        columns.append(Column("sent", lambda row: row["sent_bytes"], quantity("B")))
    first = rows[0]
    return Report(
        "collectives",
        rows,
        columns,
        title=f"{first['collective']} of {first['library']}, {first['problem']['dtype']}",
        notes=_notes(rows),
        examples=[_example(rows)],
    )


def wall(rows: Sequence[Row], title: str) -> Report:
    """One line for each parallelism and link."""
    columns = [
        text("system", "system"),
        text("link", "link"),
        Column("ridge FLOP/B", lambda row: row["ridge_flop_per_byte"], ratio),
        text("parallelism", "parallelism"),
        text("covered with", "bound"),
        _count("", "threshold"),
        text("", "quantity"),
    ]
    return Report("ridges", rows, columns, title=title)


def _count(header: str, key: str) -> Column:
    """A column of counts: whole numbers with thousands separators."""
    return Column(header, lambda row: row[key], lambda value: f"{round(value):,}")


def _term(name: str) -> Column:
    return Column(name, lambda row: row["terms_us"].get(name), micros)


def _example(rows: Sequence[Row]) -> Row:
    """A row with every key that any row has."""
    example: dict[str, Any] = dict(rows[0])
    for key in ("terms_us", "problem"):
        example[key] = {name: value for row in rows for name, value in row[key].items()}
    return example


def _notes(rows: Sequence[Row]) -> list[str]:
    facts = dict.fromkeys(
        ", ".join(f"{what} {level}" for what, level in row["known"].items()) for row in rows
    )
    guesses = dict.fromkeys(item for row in rows for item in row["assumptions"])
    return [*(f"known: {item}" for item in facts), *(f"assumed: {item}" for item in guesses)]


__all__ = ["report", "wall"]
