"""The results of a measuring run as a table: bundled kernels against the best rival and the
model."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from perfmodel.evidence.measured.measure import FAILED
from perfmodel.evidence.measured.measure import KEY as CASE_KEY

Row = Mapping[str, str]
_SAME = tuple(name for name in CASE_KEY if name != "implementation")


@dataclass(frozen=True)
class Race:
    """The results of one kind of case."""

    kind: str
    """The kind."""
    rows: int
    """Rows that were measured."""
    failed: int
    """Rows that failed."""
    share: float | None
    """Median of (best rival's time / ours): 1 is as fast, above 1 is faster; None without a rival.
    """
    within: float | None
    """Share of our rows whose time is in the predicted range; None without predictions."""


def races(rows: Sequence[Row]) -> list[Race]:
    """Rows by operator, direction and phase."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        words = (row["op"], row["variant"], row["phase"], row["dtype"], row["direction"])
        kinds.setdefault(" ".join(word for word in words if word), []).append(row)
    return [_race(kind, group) for kind, group in kinds.items()]


def _race(kind: str, rows: Sequence[Row]) -> Race:
    valid = [row for row in rows if row["flag"] != FAILED]
    bundled = [row for row in valid if row["implementation"].startswith("triton-")]
    best = _fastest(row for row in valid if not row["implementation"].startswith("triton-"))
    times = _fastest(bundled)
    shares = [best[case] / times[case] for case in times if case in best]
    ranges = [row for row in bundled if row["low_us"] and row["high_us"]]
    hits = [
        float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"]) for row in ranges
    ]
    return Race(
        kind,
        len(rows),
        len(rows) - len(valid),
        median(shares) if shares else None,
        sum(hits) / len(hits) if hits else None,
    )


def _fastest(rows: Iterable[Row]) -> dict[tuple[str, ...], float]:
    times: dict[tuple[str, ...], float] = {}
    for row in rows:
        case = tuple(row[name] for name in _SAME)
        times[case] = min(times.get(case, math.inf), float(row["measured_us"]))
    return times


def lines(path: Path) -> list[str]:
    """The lines of the table; none where there are no rows."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        table = races(list(csv.DictReader(file)))
    if not table:
        return []
    head = f"{'case':36} {'rows':>5} {'failed':>6} {'best rival / ours':>18} {'in range':>9}"
    return [head, *(_line(race) for race in table)]


def _line(race: Race) -> str:
    share = "" if race.share is None else f"{race.share:.2f}"
    hits = "" if race.within is None else f"{race.within:.0%}"
    return f"{race.kind:36} {race.rows:5} {race.failed:6} {share:>18} {hits:>9}"
