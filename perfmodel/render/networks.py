"""The table of predicted networks: one line for each class, layer or operator, and a total."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perfmodel.networks.networkprediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    assumed,
    keyed,
    micros,
    percent,
    quantity,
    ratio,
    several,
    text,
)
from perfmodel.render.roofs import Kernel

Pairs = Sequence[tuple[PassTime, KernelTime]]
"""Kernels with the passes that they are in."""


def _layer(part: PassTime, _: KernelTime) -> str:
    return f"{part.segment}, {part.way}" + (f" x {part.repeat}" if part.repeat > 1 else "")


BY: dict[str, Callable[[PassTime, KernelTime], str]] = {
    "class": lambda _, kernel: kernel.kind,
    "layer": _layer,
    "operator": lambda _, kernel: kernel.prediction.algorithm,
    "kernel": lambda part, kernel: f"{part.segment}, {kernel.name}",
}
"""What a line is for."""


def data(predictions: Sequence[NetworkPrediction]) -> Report:
    """All data, one document for each network and device."""
    rows = [prediction.as_dict() for prediction in predictions]
    return Report("networks", rows, [], examples=rows)


def report(predictions: Sequence[NetworkPrediction], by: str, way: str) -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`, `way` the kind of pass."""
    rows = [row for prediction in predictions for row in _rows(prediction, by)]
    device = several("device", rows)
    columns = [
        *device,
        text(by, by),
        keyed("kernels", "kernels", rank=3),
        keyed("time", "time_us", micros),
        percent("share", "share", rank=1),
        Column("operations", lambda row: row["flops"] or None, quantity("FLOP"), rank=2),
        keyed("memory", "hbm_bytes", quantity("B"), rank=2),
        keyed("FLOP/B", "intensity", ratio, rank=4),
        text("limiter", "limiter"),
    ]
    first = predictions[0]
    setting = first.setting
    suffix = "" if device else f" on {first.device}"
    past = f" past={setting.past}" if setting.past else ""
    title = (
        f"{first.network.name}{suffix}: batch={setting.batch} seq={setting.seq}{past} pass={way} "
        f"dtype={setting.dtype} stack={setting.stack.name}"
    )
    notes = [*map(_sentence, predictions), *assumed(each.assumptions for each in predictions)]
    return Report("networks", rows, columns, title, notes=notes, examples=rows)


def _groups(network: NetworkPrediction, by: str) -> dict[str, list[tuple[PassTime, KernelTime]]]:
    """The kernels of each line."""
    groups: dict[str, list[tuple[PassTime, KernelTime]]] = {}
    for part in network.passes:
        for kernel in part.kernels:
            groups.setdefault(BY[by](part, kernel), []).append((part, kernel))
    return groups


def _rows(network: NetworkPrediction, by: str) -> Iterator[Row]:
    """The lines of one network; the last is their sum."""
    groups = _groups(network, by)
    rows = [_row(network, by, label, pairs) for label, pairs in groups.items()]
    in_order = by in ("layer", "kernel")
    yield from rows if in_order else sorted(rows, key=lambda row: -row["time_us"])
    pairs = [pair for group in groups.values() for pair in group]
    host = network.seconds - _seconds(pairs)
    time = {"time_us": host * 1e6, "share": host / network.seconds}
    yield {**_row(network, by, "host", []), **time}
    time = {"time_us": network.seconds * 1e6, "share": 1.0}
    yield {**_row(network, by, "all", pairs), **time, "limiter": ""}


def _seconds(pairs: Pairs) -> float:
    return sum(part.repeat * kernel.seconds for part, kernel in pairs)


def _row(network: NetworkPrediction, by: str, label: str, pairs: Pairs) -> Row:
    runs = [(part.repeat * kernel.launches, kernel.prediction) for part, kernel in pairs]
    flops = sum(times * run.work for times, run in runs if run.flops["matrix"])
    traffic = sum(times * run.bytes["hbm"] for times, run in runs)
    limiters: dict[str, float] = {}
    for part, kernel in pairs:
        limiters[kernel.limiter] = limiters.get(kernel.limiter, 0.0) + part.repeat * kernel.seconds
    seconds = _seconds(pairs)
    return {
        "network": network.network.name,
        "device": network.device,
        by: label,
        "kernels": sum(times for times, _ in runs) or None,
        "time_us": seconds * 1e6,
        "share": seconds / network.seconds,
        "flops": flops,
        "hbm_bytes": traffic or None,
        "intensity": flops / traffic if flops and traffic else None,
        "limiter": max(limiters, key=limiters.__getitem__, default=""),
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


def points(network: NetworkPrediction) -> Iterator[Kernel]:
    """A roofline point for each class that has arithmetic: its rate, and its FLOP per byte."""
    for kind, pairs in _groups(network, "class").items():
        runs = [(part.repeat * kernel.launches, kernel.prediction) for part, kernel in pairs]
        matrix = any(run.flops["matrix"] for _, run in runs)
        work = sum(times * run.work for times, run in runs if run.flops["matrix"] or not matrix)
        if not work:
            continue
        traffic = {
            level: sum(times * run.bytes[level] for times, run in runs)
            for level in runs[0][1].bytes
        }
        intensity = {level: work / size for level, size in traffic.items() if size}
        yield Kernel(kind, network.device, work / _seconds(pairs), intensity, matrix=matrix)
