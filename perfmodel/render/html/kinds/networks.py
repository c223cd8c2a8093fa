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
    "class": lambda kernel: kernel["class"],
    "layer": lambda kernel: f"{kernel['segment']}, {kernel['pass']}",
    "kernel": lambda kernel: kernel["kernel"],
    "limiter": lambda kernel: kernel["limiter"],
}
"""The groupings of a network's kernels that bars can show."""
_SETTING = ("stack", "dtype", "pass", "batch", "seq", "past")
_FIRST = ("kernel", *_SETTING, "class", "time_us", "share", "network", "device", "segment")


def _cases(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """A case for each class with arithmetic: its operations and bytes over its time."""
    for document in documents:
        for row in document.rows:
            for name in dict.fromkeys(kernel["class"] for kernel in row["kernels"]):
                kernels = [kernel for kernel in row["kernels"] if kernel["class"] == name]
                if all("bytes" in kernel for kernel in kernels):
                    yield {**_case(row, name, kernels), "source": document.source}


def _case(row: Row, name: str, kernels: Sequence[Row]) -> dict[str, Any]:
    times = [kernel["layers"] * kernel["time_us"] for kernel in kernels]
    flops, traffic = _sums(kernels, "flops"), _sums(kernels, "bytes")
    matrix = [k for k in kernels if k["flops"].get("matrix")]
    work = sum(
        k["layers"] * counted_work(k.get("useful_flops"), k["flops"]) for k in matrix or kernels
    )
    longest = max(zip(times, kernels, strict=True), key=lambda pair: pair[0])[1]
    return {
        "device": str(row["device"]),
        "algorithm": name,
        "label": f"{row['network']}: {name}",
        "part_of": row["network"],
        "problem": {key: row[key] for key in ("dtype", "pass", "batch", "seq", "past", "stack")},
        "time_us": sum(times),
        "limiter": longest["limiter"],
        "flops": flops,
        "useful_flops": work,
        "bytes": traffic,
        "arithmetic_intensity": {level: work / size for level, size in traffic.items() if size},
    }


def _sums(kernels: Sequence[Row], member: str) -> dict[str, float]:
    """A member of the kernels, summed over all layers."""
    sums: dict[str, float] = {}
    for kernel in kernels:
        for key, value in kernel[member].items():
            sums[key] = sums.get(key, 0.0) + kernel["layers"] * value
    return sums


@kind("networks", keys=("by_class_us", "kernels"), cases=_cases)
def sections(documents: Sequence[Document]) -> Iterator[Section]:
    """Bars of the networks side by side, and a table of their kernels."""
    networks = [n for document in documents for n in document.rows]
    names = _names(networks)
    views: dict[str, list[Bar]] = {
        name: [_bar(n, label, key) for n, label in zip(networks, names, strict=True)]
        for name, key in _VIEWS.items()
    }
    if any(n["backward_us"] for n in networks):
        views["pass"] = [_passes(n, label) for n, label in zip(networks, names, strict=True)]
    settings = [key for key in _settings(networks) if key != "pass"]
    rows = [{**{key: n[key] for key in settings}, **row} for n in networks for row in _kernels(n)]
    yield Section(
        "Networks: where the time goes",
        rows,
        columns(rows, _FIRST, headers={"hbm_bytes": "memory traffic"}),
        [Bars("Time", "time", views), Rows("Kernels of all layers")],
        [*map(_sentence, networks, names), *first(_faster(networks, names), "networks")],
        assumptions=assumptions(documents),
    )


def _settings(networks: Sequence[Row]) -> list[str]:
    """Settings that differ between the networks."""
    return [key for key in _SETTING if len({n[key] for n in networks}) > 1]


def _names(networks: Sequence[Row]) -> list[str]:
    """Name of each network: its device and the settings that differ."""
    settings = _settings(networks)
    return [
        ", ".join([f"{n['network']} on {n['device']}", *(f"{key} {n[key]}" for key in settings)])
        for n in networks
    ]


def _bar(row: Row, label: str, key: Callable[[Row], str]) -> Bar:
    lengths: dict[str, float] = {}
    for kernel in row["kernels"]:
        lengths[key(kernel)] = lengths.get(key(kernel), 0.0) + kernel["layers"] * kernel["time_us"]
    lengths["host"] = max(row["time_us"] - sum(lengths.values()), 0.0)
    return Bar(label, lengths, row["low_us"], row["high_us"])


def _passes(row: Row, label: str) -> Bar:
    lengths = {"forward": row["forward_us"], "backward": row["backward_us"]}
    return Bar(label, lengths, row["low_us"], row["high_us"])


def _kernels(row: Row) -> Iterator[dict[str, Any]]:
    for kernel in row["kernels"]:
        layers = kernel["layers"]
        yield {
            "network": row["network"],
            "device": row["device"],
            **{key: kernel[key] for key in ("segment", "pass", "layers", "kernel", "class")},
            "time_us": layers * kernel["time_us"],
            "share": layers * kernel["time_us"] / row["time_us"],
            "low_us": layers * kernel["low_us"],
            "high_us": layers * kernel["high_us"],
            "limiter": kernel["limiter"],
            "operator": kernel["operator"],
            **({"matrix_flops": layers * kernel["flops"].get("matrix", 0.0)}
               if "flops" in kernel else {}),
            **({"hbm_bytes": layers * kernel["bytes"].get("hbm", 0.0)}
               if "bytes" in kernel else {}),
        }  # fmt: skip


def _sentence(row: Row, label: str) -> str:
    total = row["time_us"]
    longest = sorted(row["by_class_us"].items(), key=lambda item: -item[1])[:3]
    classes = ", ".join(f"{name} {value / total:.0%}" for name, value in longest)
    limiter, limited = max(row["limiters_us"].items(), key=lambda item: item[1])
    split = (
        f"; forward {seconds(row['forward_us'] / 1e6)}, backward "
        f"{seconds(row['backward_us'] / 1e6)}"
        if row["backward_us"]
        else ""
    )
    return (
        f"{label} ({row['pass']} pass, batch {row['batch']}, {row['seq']:,} tokens) takes "
        f"{seconds(total / 1e6)}, {seconds(row['low_us'] / 1e6)} to "
        f"{seconds(row['high_us'] / 1e6)}{split}. Most of it is {classes}; {limiter} limits "
        f"{limited / total:.0%} of it."
    )


def _faster(networks: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Time of the others relative to the fastest, for equal work."""
    problems = {(n["network"], n["pass"], n["batch"], n["seq"]) for n in networks}
    if len(networks) < 2 or len(problems) > 1:
        return
    order = sorted(range(len(networks)), key=lambda i: networks[i]["time_us"])
    for i in order[1:]:
        ratio = networks[i]["time_us"] / networks[order[0]]["time_us"]
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
            group = [r for r in document.rows if (r["network"], r["device"]) == (network, device)]
            lengths = {str(row[by]): row["time_us"] for row in group if row[by] != "all"}
            bars.append(Bar(f"{network} on {device}, by {by}", lengths))
            rows += group
    yield Section(
        "Networks: where the time goes",
        rows,
        columns(rows),
        [Bars("Time", "time", {"": bars}), Rows("Lines")],
        [f"{bar.label}: {seconds(sum(bar.lengths.values()) / 1e6)}." for bar in bars],
    )
