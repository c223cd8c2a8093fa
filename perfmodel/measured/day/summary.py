"""The results of a measuring run as a table: bundled kernels against the best rival and the
model."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from perfmodel.measured.measure import FAILED
from perfmodel.measured.measure import KEY as CASE_KEY

Row = Mapping[str, str]


def lines(path: Path) -> list[str]:
    """One line for each kind of case, with the median of (best rival's time / ours) and the share
    of our times in the predicted range; none where there are no rows."""
    kinds: dict[str, list[Row]] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                words = (row[name] for name in ("op", "variant", "phase", "dtype", "direction"))
                kinds.setdefault(" ".join(word for word in words if word), []).append(row)
    head = f"{'case':36} {'rows':>5} {'failed':>6} {'best rival / ours':>18} {'in range':>9}"
    return [head, *(_line(kind, rows) for kind, rows in kinds.items())] if kinds else []


def _line(kind: str, rows: Sequence[Row]) -> str:
    valid = [row for row in rows if row["flag"] != FAILED]
    bundled = [row for row in valid if row["implementation"].startswith("triton-")]
    best = _fastest(row for row in valid if not row["implementation"].startswith("triton-"))
    times = _fastest(bundled)
    shares = [best[case] / times[case] for case in times if case in best]
    hits = [
        float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"])
        for row in bundled
        if row["low_us"] and row["high_us"]
    ]
    share = f"{median(shares):.2f}" if shares else ""
    ranged = f"{sum(hits) / len(hits):.0%}" if hits else ""
    return f"{kind:36} {len(rows):5} {len(rows) - len(valid):6} {share:>18} {ranged:>9}"


def _fastest(rows: Iterable[Row]) -> dict[tuple[str, ...], float]:
    """The shortest time of each case."""
    times: dict[tuple[str, ...], float] = {}
    for row in rows:
        case = tuple(row[name] for name in CASE_KEY if name != "implementation")
        times[case] = min(times.get(case, math.inf), float(row["measured_us"]))
    return times
