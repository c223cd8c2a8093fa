"""The report of predicted networks: one line for each class, layer or operator, and a total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.networks.prediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.render.report import Column, Report, Row, micros, percent, quantity, ratio, text
from perfmodel.render.roofs import Kernel

BY = ("class", "layer", "operator", "kernel")
"""What a line is for."""

_HOST = "host"


def data(found: Sequence[NetworkPrediction]) -> Report:
    """All data, one document for each network and device."""
    rows = [one.as_dict() for one in found]
    return Report("networks", rows, [], examples=rows)


def report(found: Sequence[NetworkPrediction], by: str = "class", way: str = "") -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`."""
    rows = [row for one in found for row in _rows(one, by)]
    several = len({one.device for one in found}) > 1
    columns = [
        *([text("device", "device")] if several else []),
        text(by, by),
        Column("kernels", lambda row: row["kernels"], rank=3),
        Column("time", lambda row: row["time_us"], micros),
        percent("share", "share", rank=1),
        Column("operations", lambda row: row["flops"] or None, quantity("FLOP"), rank=2),
        Column("memory", lambda row: row["hbm_bytes"], quantity("B"), rank=2),
        Column("FLOP/B", lambda row: row["intensity"], ratio, rank=4),
        text("limiter", "limiter"),
    ]
    return Report(
        "networks",
        rows,
        columns,
        _title(found, several, way),
        notes=[*map(_sentence, found), *_assumed(found)],
        examples=rows,
    )


def _title(found: Sequence[NetworkPrediction], several: bool, way: str) -> str:
    one = found[0]
    setting = one.setting
    where = "" if several else f" on {one.device}"
    past = f" past={setting.past}" if setting.past else ""
    way = way or ("train" if setting.training else "forward")
    return (
        f"{one.network.name}{where}: batch={setting.batch} seq={setting.seq}{past} pass={way} "
        f"dtype={setting.dtype} stack={setting.stack.name}"
    )


def _label(by: str, each: PassTime, one: KernelTime) -> str:
    if by == "class":
        return one.kind
    if by == "operator":
        return one.prediction.algorithm
    if by == "layer":
        return f"{each.segment}, {each.way}" + (f" x {each.repeat}" if each.repeat > 1 else "")
    return f"{each.segment}, {one.name}"


def _rows(found: NetworkPrediction, by: str) -> Iterator[Row]:
    """The lines of one network; the last is their sum."""
    groups: dict[str, list[tuple[PassTime, KernelTime]]] = {}
    for each in found.passes:
        for one in each.kernels:
            groups.setdefault(_label(by, each, one), []).append((each, one))
    names = list(groups)
    if by in ("class", "operator"):
        names.sort(key=lambda name: -_seconds(groups[name]))
    for name in names:
        yield _row(found, by, name, groups[name])
    every = [pair for group in groups.values() for pair in group]
    host = found.seconds - _seconds(every)
    yield {**_row(found, by, _HOST, []), "time_us": host * 1e6, "share": host / found.seconds}
    whole = _row(found, by, "all", every)
    yield {**whole, "time_us": found.seconds * 1e6, "share": 1.0, "limiter": ""}


def _seconds(group: Sequence[tuple[PassTime, KernelTime]]) -> float:
    return sum(each.repeat * one.seconds for each, one in group)


def _row(
    found: NetworkPrediction, by: str, name: str, group: Sequence[tuple[PassTime, KernelTime]]
) -> Row:
    runs = [(each.repeat * one.launches, one.prediction) for each, one in group]
    flops = sum(times * one.work for times, one in runs if one.flops["matrix"])
    moved = sum(times * one.bytes["hbm"] for times, one in runs)
    by_limiter: dict[str, float] = {}
    for each, one in group:
        by_limiter[one.limiter] = by_limiter.get(one.limiter, 0.0) + each.repeat * one.seconds
    seconds = _seconds(group)
    return {
        "network": found.network.name,
        "device": found.device,
        by: name,
        "kernels": sum(each.repeat * one.launches for each, one in group) or None,
        "time_us": seconds * 1e6,
        "share": seconds / found.seconds,
        "flops": flops,
        "hbm_bytes": moved or None,
        "intensity": flops / moved if flops and moved else None,
        "limiter": max(by_limiter, key=by_limiter.__getitem__) if by_limiter else "",
    }


def _sentence(found: NetworkPrediction) -> str:
    """The range, the split between the passes, and the main limiter."""
    ends = f"{micros(found.low_seconds * 1e6)} to {micros(found.high_seconds * 1e6)}"
    first, *_ = found.limiters.items()
    said = f"{found.device}: {micros(found.seconds * 1e6)} ({ends})"
    if found.setting.training:
        said += (
            f", forward {micros(found.forward_seconds * 1e6)}, "
            f"backward {micros(found.backward_seconds * 1e6)}"
        )
    return f"{said}; {first[1] / found.seconds:.0%} of it is limited by {first[0]}"


def points(found: NetworkPrediction) -> list[Kernel]:
    """A roofline point for each class that has arithmetic: its rate, and its FLOP per byte."""
    groups: dict[str, list[tuple[PassTime, KernelTime]]] = {}
    for each in found.passes:
        for one in each.kernels:
            groups.setdefault(one.kind, []).append((each, one))
    made = []
    for kind, group in groups.items():
        runs = [(each.repeat * one.launches, one.prediction) for each, one in group]
        matrix = any(one.flops["matrix"] for _, one in runs)
        work = sum(times * one.work for times, one in runs if one.flops["matrix"] or not matrix)
        moved = {
            level: sum(times * one.bytes[level] for times, one in runs)
            for level in runs[0][1].bytes
        }
        if work:
            made.append(
                Kernel(
                    kind,
                    found.device,
                    work / _seconds(group),
                    {level: work / size for level, size in moved.items() if size},
                    matrix=matrix,
                )
            )
    return made


def _assumed(found: Sequence[NetworkPrediction]) -> list[str]:
    said = dict.fromkeys(line for one in found for line in one.assumptions)
    return [f"assumed: {line}" for line in said]


__all__ = ["BY", "data", "points", "report"]
