"""Tables of collectives and of roofs of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.collectives.collectiveprediction import CollectivePrediction
from perfmodel.collectives.wall import Ridge
from perfmodel.columns import columns_of
from perfmodel.render.report import Column, Report, Row, assumed, text


def report(rows: Sequence[Row], *, terms: bool = False) -> Report:
    """One line for each collective; with `terms` a column for each of its terms."""
    example: dict[str, Any] = dict(rows[0])  # with every key that any row has
    for key in ("terms_us", "problem"):
        example[key] = {name: value for row in rows for name, value in row[key].items()}
    columns = list(columns_of(CollectivePrediction))
    if terms:
        columns += [Column(name, f"terms_us.{name}", "time") for name in example["terms_us"]]
        columns.append(Column("sent", "sent_bytes"))
    first = rows[0]
    facts = dict.fromkeys(
        ", ".join(f"{fact} {level}" for fact, level in row["known"].items()) for row in rows
    )
    notes = [f"known: {fact}" for fact in facts] + assumed(row["assumptions"] for row in rows)
    title = f"{first['collective']} of {first['library']}, {first['problem']['dtype']}"
    return Report("collectives", rows, columns, title, notes=notes, examples=[example])


def wall(rows: Sequence[Row], title: str) -> Report:
    """One line for each parallelism and link."""
    return Report("ridges", rows, [text("system", "system"), *columns_of(Ridge)], title)
