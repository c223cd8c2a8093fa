"""Profiles compared with the model, and predicted traces of modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfmodel.render.html.columns import columns
from perfmodel.render.html.kinds.registry import Document, flat, kind
from perfmodel.render.html.sections import Bar, Bars, Rows, Section
from perfmodel.units import seconds

Row = Mapping[str, Any]

_DRAWN = 15  # number of lines with bars
_KNOWN = {
    "shape": "predicted from recorded shapes",
    "order": "predicted by the order of a graph",
    "name": "known by name alone",
    "unknown": "not known",
}
"""How a kernel of a profile was identified, in words."""


@kind("kernels", keys=("known_by", "measured_us", "lost_us"))
def profile(documents: Sequence[Document]) -> Iterator[Section]:
    """The identified share of the time, where time is lost, and the table."""
    for document in documents:
        rows = [flat(row) for row in document.rows]
        head = document.head
        name = f"{head['tool']} on {head['device']}" if "tool" in head else document.source
        parts: list[Bars | Rows] = [_coverage(rows, name)]
        losses = [row for row in rows if row.get("predicted_us") and row.get("lost_us", 0) > 0]
        if losses:
            losses.sort(key=lambda row: -row["lost_us"])
            bars = [_loss(row) for row in losses[:_DRAWN]]
            suffix = f" (the largest {_DRAWN} of {len(losses)})" if len(losses) > _DRAWN else ""
            title = f"Time lost against the model's{suffix}"
            parts.append(Bars(title, "time", {"": bars}, ranked=False))
        yield Section(
            f"Profile: {name}",
            rows,
            columns(rows, ("operator", "problem", "kernel")),
            [*parts, Rows("Kernels")],
            [*_sentences(rows, head, name), *_worst(losses)],
        )


def _coverage(rows: Sequence[Row], name: str) -> Bars:
    lengths: dict[str, float] = {}
    for key, label in _KNOWN.items():
        lengths[label] = sum(row["measured_us"] for row in rows if row["known_by"] == key)
    return Bars("Coverage: how the time is known", "time", {"": [Bar(name, lengths)]}, ranked=False)


def _loss(row: Row) -> Bar:
    lengths = {"predicted": row["predicted_us"], "lost": row["lost_us"]}
    calls = f"{row['calls']} calls" if row["calls"] != 1 else "1 call"
    return Bar(f"{row['operator']} {row['problem']}, {calls}", lengths, note=f"×{row['ratio']:.2f}")


def _sentences(rows: Sequence[Row], head: Row, name: str) -> Iterator[str]:
    total = head.get("total_us") or sum(row["measured_us"] for row in rows)
    predicted = sum(row["measured_us"] for row in rows if row.get("predicted_us"))
    yield (
        f"{name}: {seconds(total / 1e6)} of kernels, of which {predicted / total:.0%} are "
        "predicted."
    )
    if head.get("idle_us"):
        yield f"The device is idle for {seconds(head['idle_us'] / 1e6)} between launches."
    yield from map(str, head.get("notes", ()))


def _worst(losses: Sequence[Row]) -> Iterator[str]:
    for row in losses[:3]:
        advice = f": {row['advice']}" if row.get("advice") else ""
        yield (f"{row['operator']} {row['problem']} loses {seconds(row['lost_us'] / 1e6)}{advice}.")


@kind("trace", keys=("line", "aten", "time_us", "share"))
def traced(documents: Sequence[Document]) -> Iterator[Section]:
    """Lines of predicted modules as bars, and the table."""
    rows: list[dict[str, Any]] = []
    bars = []
    for document in documents:
        name = str(document.head.get("module", document.source))
        for device in dict.fromkeys(row["device"] for row in document.rows):
            group = [row for row in document.rows if row["device"] == device]
            lengths = {row["line"]: row["time_us"] for row in group if row["line"] != "all"}
            bars.append(Bar(f"{name} on {device}", lengths))
            rows += [{"module": name, **flat(row)} for row in group]
    yield Section(
        "Traced modules: where the time goes",
        rows,
        columns(rows),
        [Bars("Time", "time", {"": bars}), Rows("Lines")],
        [f"{bar.label} takes {seconds(sum(bar.lengths.values()) / 1e6)}." for bar in bars],
    )
