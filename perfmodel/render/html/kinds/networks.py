"""Predicted networks: time by class, layer, kernel and pass; classes as points of the roofline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from perfmodel.prediction import counted_work
from perfmodel.render.html.columns import columns
from perfmodel.render.html.kinds.registry import Document, assumptions, first, kind
from perfmodel.render.html.sections import Bar, Bars, Rows, Section
from perfmodel.units import seconds

Row = Mapping[str, Any]

_VIEWS: dict[str, Callable[[Row], str]] = {
    "class": lambda one: one["class"],
    "layer": lambda one: f"{one['segment']}, {one['pass']}",
    "kernel": lambda one: one["kernel"],
    "limiter": lambda one: one["limiter"],
}
"""The groupings of a network's kernels that bars can show."""
_SETTING = ("stack", "dtype", "pass", "batch", "seq", "past")
_FIRST = ("kernel", *_SETTING, "class", "time_us", "share", "network", "device", "segment")


def _cases(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """A case for each class with arithmetic: its operations and bytes over its time."""
    for document in documents:
        for one in document.rows:
            for name in dict.fromkeys(kernel["class"] for kernel in one["kernels"]):
                kernels = [kernel for kernel in one["kernels"] if kernel["class"] == name]
                if all("bytes" in kernel for kernel in kernels):
                    yield {**_case(one, name, kernels), "source": document.source}


def _case(one: Row, name: str, kernels: Sequence[Row]) -> dict[str, Any]:
    times = [kernel["layers"] * kernel["time_us"] for kernel in kernels]
    flops, moved = _summed(kernels, "flops"), _summed(kernels, "bytes")
    matrix = [one for one in kernels if one["flops"].get("matrix")]
    work = sum(
        one["layers"] * counted_work(one.get("useful_flops"), one["flops"])
        for one in matrix or kernels
    )
    longest = max(zip(times, kernels, strict=True), key=lambda pair: pair[0])[1]
    return {
        "device": str(one["device"]),
        "algorithm": name,
        "label": f"{one['network']}: {name}",
        "part_of": one["network"],
        "problem": {key: one[key] for key in ("dtype", "pass", "batch", "seq", "past", "stack")},
        "time_us": sum(times),
        "limiter": longest["limiter"],
        "flops": flops,
        "useful_flops": work,
        "bytes": moved,
        "arithmetic_intensity": {level: work / size for level, size in moved.items() if size},
    }


def _summed(kernels: Sequence[Row], member: str) -> dict[str, float]:
    """A member of the kernels, summed over all layers."""
    found: dict[str, float] = {}
    for kernel in kernels:
        for key, value in kernel[member].items():
            found[key] = found.get(key, 0.0) + kernel["layers"] * value
    return found


@kind("networks", keys=("by_class_us", "kernels"), cases=_cases)
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Bars of the networks side by side, and a table of their kernels."""
    every = [one for document in documents for one in document.rows]
    names = _names(every)
    views: dict[str, list[Bar]] = {
        name: [_bar(one, called, key) for one, called in zip(every, names, strict=True)]
        for name, key in _VIEWS.items()
    }
    if any(one["backward_us"] for one in every):
        views["pass"] = [_passes(one, called) for one, called in zip(every, names, strict=True)]
    varied = [key for key in _varied(every) if key != "pass"]
    rows = [{**{key: one[key] for key in varied}, **row} for one in every for row in _kernels(one)]
    yield Section(
        "Networks: where the time goes",
        rows,
        columns(rows, _FIRST, headers={"hbm_bytes": "memory traffic"}),
        [Bars("Time", "time", views), Rows("Kernels of all layers")],
        [*map(_sentence, every, names), *first(_faster(every, names), "networks")],
        assumptions=assumptions(documents),
    )


def _varied(every: Sequence[Row]) -> list[str]:
    """Settings that differ between the networks."""
    return [key for key in _SETTING if len({one[key] for one in every}) > 1]


def _names(every: Sequence[Row]) -> list[str]:
    """Name of each network: its device and the settings that differ."""
    varied = _varied(every)
    return [
        ", ".join(
            [f"{one['network']} on {one['device']}", *(f"{key} {one[key]}" for key in varied)]
        )
        for one in every
    ]


def _bar(one: Row, label: str, key: Callable[[Row], str]) -> Bar:
    lengths: dict[str, float] = {}
    for kernel in one["kernels"]:
        lengths[key(kernel)] = lengths.get(key(kernel), 0.0) + kernel["layers"] * kernel["time_us"]
    lengths["host"] = max(one["time_us"] - sum(lengths.values()), 0.0)
    return Bar(label, lengths, one["low_us"], one["high_us"])


def _passes(one: Row, label: str) -> Bar:
    lengths = {"forward": one["forward_us"], "backward": one["backward_us"]}
    return Bar(label, lengths, one["low_us"], one["high_us"])


def _kernels(one: Row) -> Iterator[dict[str, Any]]:
    for kernel in one["kernels"]:
        layers = kernel["layers"]
        yield {
            "network": one["network"],
            "device": one["device"],
            **{key: kernel[key] for key in ("segment", "pass", "layers", "kernel", "class")},
            "time_us": layers * kernel["time_us"],
            "share": layers * kernel["time_us"] / one["time_us"],
            "low_us": layers * kernel["low_us"],
            "high_us": layers * kernel["high_us"],
            "limiter": kernel["limiter"],
            "operator": kernel["operator"],
            **({"matrix_flops": layers * kernel["flops"].get("matrix", 0.0)}
               if "flops" in kernel else {}),
            **({"hbm_bytes": layers * kernel["bytes"].get("hbm", 0.0)}
               if "bytes" in kernel else {}),
        }  # fmt: skip


def _sentence(one: Row, called: str) -> str:
    total = one["time_us"]
    longest = sorted(one["by_class_us"].items(), key=lambda item: -item[1])[:3]
    classes = ", ".join(f"{name} {value / total:.0%}" for name, value in longest)
    limiter, limited = max(one["limiters_us"].items(), key=lambda item: item[1])
    split = (
        f"; forward {seconds(one['forward_us'] / 1e6)}, backward "
        f"{seconds(one['backward_us'] / 1e6)}"
        if one["backward_us"]
        else ""
    )
    return (
        f"{called} ({one['pass']} pass, batch {one['batch']}, {one['seq']:,} tokens) takes "
        f"{seconds(total / 1e6)}, {seconds(one['low_us'] / 1e6)} to "
        f"{seconds(one['high_us'] / 1e6)}{split}. Most of it is {classes}; {limiter} limits "
        f"{limited / total:.0%} of it."
    )


def _faster(every: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Time of the others relative to the fastest, for equal work."""
    same = {(one["network"], one["pass"], one["batch"], one["seq"]) for one in every}
    if len(every) < 2 or len(same) > 1:
        return
    order = sorted(range(len(every)), key=lambda i: every[i]["time_us"])
    for i in order[1:]:
        ratio = every[i]["time_us"] / every[order[0]]["time_us"]
        yield f"{names[i]} takes {ratio:.2f} times as long as {names[order[0]]}."


@kind("network lines", keys=("network", "time_us", "share", "hbm_bytes", "intensity"))
def lines(documents: Sequence[Document]) -> Iterator[Section]:
    """The CSV of `perfmodel network`: by class, layer, operator or kernel."""
    bars = []
    rows: list[Row] = []
    for document in documents:
        ways = ("class", "layer", "operator", "kernel")
        by = next((key for key in ways if key in document.rows[0]), "class")
        for network, device in dict.fromkeys((r["network"], r["device"]) for r in document.rows):
            mine = [r for r in document.rows if (r["network"], r["device"]) == (network, device)]
            lengths = {str(row[by]): row["time_us"] for row in mine if row[by] != "all"}
            bars.append(Bar(f"{network} on {device}, by {by}", lengths))
            rows += mine
    yield Section(
        "Networks: where the time goes",
        rows,
        columns(rows),
        [Bars("Time", "time", {"": bars}), Rows("Lines")],
        [f"{bar.label}: {seconds(sum(bar.lengths.values()) / 1e6)}." for bar in bars],
    )
