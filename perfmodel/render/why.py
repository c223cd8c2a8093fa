"""Why a prediction takes its time, in words: the notes under a table of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfmodel.analysis.why import Why
from perfmodel.hardware.levels import LINKS
from perfmodel.render.report import Row, micros

ONE_BY_ONE = 4
"""Up to this many cases have sentences of their own; of more, cases of one kernel share one."""

GROUPS = 6  # limit on kernels and devices that are described where cases share a sentence

TERMS: Mapping[str, str] = {
    "matrix": "matrix products",
    "special": "special functions",
    "vector": "vector operations",
    "shared": "shared memory",
    "transpose": "transposing 8-bit values",
    "latency": "memory latency",
    "power": "power",
    "blocks": "starting and draining blocks",
    "gap": "gaps between kernels",
    "launch": "the launch",
    "included": "what else the harness times",
}
"""Names of terms in sentences; memory levels have the device's own names."""

_LESS = ("latency", "floor")  # numbers of which less is better


def sentences(row: Row, why: Why) -> str:
    """Two sentences: limiter and runner-up with their shares; the lower bound, and what would
    help."""
    times, limiter, second = row["terms_us"], row["limiter"], row["runner_up"]
    sentence = (
        f"Limited by {_term_name(row, limiter)}: {micros(times[limiter])} of the "
        f"{micros(row['time_us'])}{_share(why, limiter)}"
    )
    if times[second] > 0:
        sentence += (
            f"; next comes {_term_name(row, second)} with {micros(times[second])}, "
            f"{_shortfall(times[second] / times[limiter])}{_share(why, second)}"
        )
    advice = "; ".join([*_floor(row, why), *_help(why)])
    return f"{sentence}. {advice[:1].upper()}{advice[1:]}." if advice else f"{sentence}."


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The limiters of the cases of each kernel on each device."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row['device']} {kernel(row)}", []).append(row)
    for name, group in list(groups.items())[:GROUPS]:
        yield f"{name}: {_limits(group)}"
    if len(groups) > GROUPS:
        yield f"{len(groups) - GROUPS} more kernels are in the table"


def kernel(row: Row) -> str:
    """The library's kernel, or the schedule where none is known."""
    return str(row.get("implementation") or row["schedule"])


def _limits(rows: Sequence[Row]) -> str:
    """What limits the cases of one kernel, and how close the next term is."""
    by_limiter: dict[str, list[Row]] = {}
    for row in rows:
        by_limiter.setdefault(row["limiter"], []).append(row)
    parts = []
    for limiter, part in sorted(by_limiter.items(), key=lambda item: -len(item[1])):
        count = f"all {len(rows)}" if len(part) == len(rows) > 1 else f"{len(part)} of {len(rows)}"
        parts.append(f"{count} limited by {_term_name(part[0], limiter)} ({_nearest(part)})")
    return ", ".join(parts)


def _nearest(rows: Sequence[Row]) -> str:
    """The runner-up of cases that share a limiter."""
    nexts = {row["runner_up"] for row in rows}
    shares = [row["terms_us"][row["runner_up"]] / row["terms_us"][row["limiter"]] for row in rows]
    least, most = f"{min(shares):.0%}", f"{max(shares):.0%}"
    span = least if least == most else f"{least} to {most}"
    name = _term_name(rows[0], rows[0]["runner_up"]) if len(nexts) == 1 else "the next term"
    return f"{name} {span} as long"


def _term_name(row: Row, term: str) -> str:
    if term in LINKS:
        return f"the {term} link"
    return TERMS.get(term) or str(row["levels"].get(term, term))


def _shortfall(share: float) -> str:
    """How much shorter the runner-up is; it takes `share` of the limiter's time."""
    gap = f"{1 - share:.0%}"
    return "as long" if gap in ("0%", "-0%") else f"{gap} shorter"


def _share(why: Why, term: str) -> str:
    share = why.roofs.get(term)
    return "" if share is None else f", at {share:.0%} of peak"


def _floor(row: Row, why: Why) -> Iterator[str]:
    if not why.floor_by:
        return
    what = {
        "operations": "its operations at the peak rate",
        "bytes": f"inputs and outputs once through {row['levels'].get('hbm', 'memory')} at peak",
    }[why.floor_by]
    times = row["time_us"] * 1e-6 / why.floor_seconds
    yield (
        f"the time is {times:.{2 if times < 10 else 0}f}x the floor of "
        f"{micros(why.floor_seconds * 1e6)} ({what})"
    )


def _help(why: Why) -> Iterator[str]:
    """The saving by 10 % more of the most helpful hardware numbers."""
    gains = [
        f"10% {'less' if item.number.endswith(_LESS) else 'more'} {item.number} would save "
        f"{item.saves:.1%}{f' by a step ({item.step})' if item.step else ''}"
        for item in why.helps[:2]
    ]
    if gains:
        yield ", ".join(gains)


def told(rows: Sequence[Row], labels: Sequence[str], whys: Sequence[Why]) -> list[str]:
    """The notes: one for each case if there are few, with the reasons in `whys`; else by kernel."""
    if len(rows) > ONE_BY_ONE:
        return [f"why: {line}" for line in summary(rows)]
    several = len(rows) > 1
    return [
        f"why{f' {label}' if several else ''}: {sentences(row, why)}"
        for row, label, why in zip(rows, labels, whys, strict=True)
    ]
