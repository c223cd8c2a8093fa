"""The table of predicted networks: one line for each class, layer or operator, and a total."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perfmodel.columns import Column, row_of
from perfmodel.networks.networkprediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.render.lines import Part, columns_by, lines
from perfmodel.render.report import Report, assumed, micros, on_device
from perfmodel.render.roofs import Kernel


def _layer(part: PassTime, _: KernelTime) -> str:
    return f"{part.segment}, {part.way}" + (f" x {part.repeat}" if part.repeat > 1 else "")


BY: dict[str, Callable[[PassTime, KernelTime], str]] = {
    "class": lambda _, kernel: kernel.kind,
    "layer": _layer,
    "operator": lambda _, kernel: kernel.prediction.algorithm,
    "kernel": lambda part, kernel: f"{part.segment}, {kernel.name}",
}
"""What a line is for."""


def data(predictions: Sequence[NetworkPrediction], way: str) -> Report:
    """All data, one document for each network and device; `way` is the kind of pass."""
    return Report.of("networks", predictions, **_words(predictions, way))


def report(predictions: Sequence[NetworkPrediction], by: str, way: str) -> Report:
    """Lines for people and spreadsheets; `by` is one of `BY`, `way` the kind of pass."""
    columns = (Column(key="network"), *columns_by(by, by, "operator", "aten", "live_bytes"))
    rows = [
        {"network": each.network.name, **row_of(line, columns[1:])}
        for each in predictions
        for line in lines(
            each.device, _parts(each, by), (each.seconds, each.low_seconds, each.high_seconds),
            {"host": each.classes["host"]}, ranked=by in ("class", "operator"),
        )
    ]  # fmt: skip
    return Report("networks", rows, columns, examples=rows, **_words(predictions, way))


def _words(predictions: Sequence[NetworkPrediction], way: str) -> dict[str, Any]:
    """Title and notes."""
    first = predictions[0]
    setting = first.setting
    past = f" past={setting.past}" if setting.past else ""
    title = (
        f"{first.network.name}{on_device(each.device for each in predictions)}: "
        f"batch={setting.batch} seq={setting.seq}{past} pass={way} "
        f"dtype={setting.dtype} stack={setting.stack.name}"
    )
    notes = [*map(_sentence, predictions), *assumed(each.assumptions for each in predictions)]
    return {"title": title, "notes": notes}


def _parts(network: NetworkPrediction, by: str) -> Iterator[Part]:
    for part in network.passes:
        for kernel in part.kernels:
            spread = kernel.spread.times(part.repeat)
            runs, run = part.repeat * kernel.launches, kernel.prediction
            yield Part(
                BY[by](part, kernel), runs, spread.seconds, spread.low_seconds,
                spread.high_seconds, kernel.limiter, run,
                runs * run.work if run.flops["matrix"] else 0.0,
            )  # fmt: skip


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
    groups: dict[str, list[Part]] = {}
    for part in _parts(network, "class"):
        groups.setdefault(part.line, []).append(part)
    for kind, parts in groups.items():
        work = sum(part.work for part in parts)
        matrix = work > 0
        work = work or sum(part.runs * part.run.work for part in parts)
        if not work:
            continue
        traffic = {
            level: sum(part.runs * part.run.bytes[level] for part in parts)
            for level in parts[0].run.bytes
        }
        intensity = {level: work / size for level, size in traffic.items() if size}
        rate = work / sum(part.seconds for part in parts)
        yield Kernel(kind, network.device, rate, intensity, matrix=matrix)
