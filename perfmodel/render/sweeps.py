"""The report of a sweep's answer: columns that distinguish rows, queried quantities, time,
limiter."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.analysis.sweep.answers import Answer, full_name
from perfmodel.columns import SOME
from perfmodel.render.report import Column, Report, span, text

_SHOWN = ("time_us", "low_us", "high_us", "limiter", "device")


def report(answer: Answer, identity: Sequence[str], asked: Sequence[str]) -> Report:
    """One line for each row; `identity` distinguishes rows, `asked` are the queried quantities."""
    names = (full_name(name.strip()) for name in asked)
    example = answer.rows[0] if answer.rows else {}
    columns = [
        *map(_field, identity),
        *(Column(name, name) for name in names
          if name not in (*_SHOWN, *identity) and name in example),
        Column("time", "time_us"),
        Column("range", span, rank=1),
        text("limiter", "limiter", rank=2),
        text("reason", "reason", when=SOME),
    ]  # fmt: skip
    matched = answer.matched
    count = "1 row" if len(answer.rows) == 1 else f"{len(answer.rows):,} rows"
    note = f"{count}; {matched:,} of {answer.seen:,} met the condition"
    return Report(
        "rows",
        answer.rows,
        columns,
        title=answer.operator,
        head=answer.as_dict(),
        notes=[note],
        examples=answer.rows,
    )


def _field(name: str) -> Column:
    number = name not in ("device", "schedule", "dtype", "kv_dtype", "direction", "variant")
    return Column(name, name, str, number=number)
