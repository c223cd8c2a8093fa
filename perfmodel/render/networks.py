"""The report of predicted networks: one line for each class, layer or operator, and a total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.networks.prediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    assumed,
    micros,
    percent,
    quantity,
    ratio,
    text,
)
from perfmodel.render.roofs import Kernel

BY = ("class", "layer", "operator", "kernel")
"""What a line is for."""

_HOST = "host"


def data(found: Sequence[NetworkPrediction]) -> Report:
    """All data, one document for each network and device."""
    rows = [p.as_dict() for p in found]
    return Report("networks", rows, [], examples=rows)


def report(found: Sequence[NetworkPrediction], by: str = "class", way: str = "") -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`."""
    rows = [row for p in found for row in _rows(p, by)]
    several = len({p.device for p in found}) > 1
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
        notes=[*map(_sentence, found), *assumed(p.assumptions for p in found)],
        examples=rows,
    )


def _title(predictions: Sequence[NetworkPrediction], several: bool, way: str) -> str:
    first = predictions[0]
    setting = first.setting
    suffix = "" if several else f" on {first.device}"
    past = f" past={setting.past}" if setting.past else ""
    way = way or ("train" if setting.training else "forward")
    return (
        f"{first.network.name}{suffix}: batch={setting.batch} seq={setting.seq}{past} pass={way} "
        f"dtype={setting.dtype} stack={setting.stack.name}"
    )


def _label(by: str, part: PassTime, kernel: KernelTime) -> str:
    if by == "class":
        return kernel.kind
    if by == "operator":
        return kernel.prediction.algorithm
    if by == "layer":
        return f"{part.segment}, {part.way}" + (f" x {part.repeat}" if part.repeat > 1 else "")
    return f"{part.segment}, {kernel.name}"


def _rows(network: NetworkPrediction, by: str) -> Iterator[Row]:
    """The lines of one network; the last is their sum."""
    groups: dict[str, list[tuple[PassTime, KernelTime]]] = {}
    for part in network.passes:
        for kernel in part.kernels:
            groups.setdefault(_label(by, part, kernel), []).append((part, kernel))
    names = list(groups)
    if by in ("class", "operator"):
        names.sort(key=lambda name: -_seconds(groups[name]))
    for name in names:
        yield _row(network, by, name, groups[name])
    pairs = [pair for group in groups.values() for pair in group]
    host = network.seconds - _seconds(pairs)
    yield {**_row(network, by, _HOST, []), "time_us": host * 1e6, "share": host / network.seconds}
    total = _row(network, by, "all", pairs)
    yield {**total, "time_us": network.seconds * 1e6, "share": 1.0, "limiter": ""}


def _seconds(group: Sequence[tuple[PassTime, KernelTime]]) -> float:
    return sum(part.repeat * kernel.seconds for part, kernel in group)


def _row(
    network: NetworkPrediction, by: str, name: str, group: Sequence[tuple[PassTime, KernelTime]]
) -> Row:
    runs = [(part.repeat * kernel.launches, kernel.prediction) for part, kernel in group]
    flops = sum(times * run.work for times, run in runs if run.flops["matrix"])
    traffic = sum(times * run.bytes["hbm"] for times, run in runs)
    limiters: dict[str, float] = {}
    for part, kernel in group:
        limiters[kernel.limiter] = limiters.get(kernel.limiter, 0.0) + part.repeat * kernel.seconds
    seconds = _seconds(group)
    return {
        "network": network.network.name,
        "device": network.device,
        by: name,
        "kernels": sum(part.repeat * kernel.launches for part, kernel in group) or None,
        "time_us": seconds * 1e6,
        "share": seconds / network.seconds,
        "flops": flops,
        "hbm_bytes": traffic or None,
        "intensity": flops / traffic if flops and traffic else None,
        "limiter": max(limiters, key=limiters.__getitem__) if limiters else "",
    }


def _sentence(network: NetworkPrediction) -> str:
    """The range, the split between the passes, and the main limiter."""
    ends = f"{micros(network.low_seconds * 1e6)} to {micros(network.high_seconds * 1e6)}"
    first, *_ = network.limiters.items()
    sentence = f"{network.device}: {micros(network.seconds * 1e6)} ({ends})"
    if network.setting.training:
        sentence += (
            f", forward {micros(network.forward_seconds * 1e6)}, "
            f"backward {micros(network.backward_seconds * 1e6)}"
        )
    return f"{sentence}; {first[1] / network.seconds:.0%} of it is limited by {first[0]}"


def points(found: NetworkPrediction) -> list[Kernel]:
    """A roofline point for each class that has arithmetic: its rate, and its FLOP per byte."""
    groups: dict[str, list[tuple[PassTime, KernelTime]]] = {}
    for part in found.passes:
        for kernel in part.kernels:
            groups.setdefault(kernel.kind, []).append((part, kernel))
    kernels = []
    for kind, group in groups.items():
        runs = [(part.repeat * kernel.launches, kernel.prediction) for part, kernel in group]
        matrix = any(run.flops["matrix"] for _, run in runs)
        work = sum(times * run.work for times, run in runs if run.flops["matrix"] or not matrix)
        traffic = {
            level: sum(times * run.bytes[level] for times, run in runs)
            for level in runs[0][1].bytes
        }
        if work:
            kernels.append(
                Kernel(
                    kind,
                    found.device,
                    work / _seconds(group),
                    {level: work / size for level, size in traffic.items() if size},
                    matrix=matrix,
                )
            )
    return kernels


__all__ = ["BY", "data", "points", "report"]
