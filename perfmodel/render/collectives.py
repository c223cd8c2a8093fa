"""Tables of collectives and of roofs of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.render.report import (
    Column,
    Report,
    Row,
    assumed,
    binary,
    keyed,
    micros,
    quantity,
    ranged,
    ratio,
    text,
    whole,
)


def report(rows: Sequence[Row], *, terms: bool = False) -> Report:
    """One line for each collective; with `terms` a column for each of its terms."""
    example: dict[str, Any] = dict(rows[0])  # with every key that any row has
    for key in ("terms_us", "problem"):
        example[key] = {name: value for row in rows for name, value in row[key].items()}
    columns = [
        text("system", "system"),
        Column("ranks", lambda row: row["problem"]["ranks"], str),
        Column("size", lambda row: row["problem"]["bytes"], binary),
        text("algorithm", "algorithm"),
        text("protocol", "protocol"),
        keyed("time", "time_us", micros),
        ranged("range", number=True),
        Column("bus", lambda row: row["bus_gb_per_s"] * 1e9, quantity("B/s")),
        text("limiter", "limiter"),
    ]
    if terms:
        columns += [_term(name) for name in example["terms_us"]]
        columns.append(keyed("sent", "sent_bytes", quantity("B")))
    first = rows[0]
    facts = dict.fromkeys(
        ", ".join(f"{fact} {level}" for fact, level in row["known"].items()) for row in rows
    )
    notes = [f"known: {fact}" for fact in facts] + assumed(row["assumptions"] for row in rows)
    title = f"{first['collective']} of {first['library']}, {first['problem']['dtype']}"
    return Report("collectives", rows, columns, title, notes=notes, examples=[example])


def _term(name: str) -> Column:
    return Column(name, lambda row: row["terms_us"].get(name), micros)


def wall(rows: Sequence[Row], title: str) -> Report:
    """One line for each parallelism and link."""
    columns = [
        text("system", "system"),
        text("link", "link"),
        keyed("ridge FLOP/B", "ridge_flop_per_byte", ratio),
        text("parallelism", "parallelism"),
        text("covered with", "bound"),
        keyed("", "threshold", whole),
        text("", "quantity"),
    ]
    return Report("ridges", rows, columns, title=title)
