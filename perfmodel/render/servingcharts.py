"""Charts of served networks: throughput against latency, and time between tokens by operation."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.render.bars import Bar, Bars, bars_chart
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page
from perfmodel.render.serving import size_name
from perfmodel.serving.served import Served

_APART = (
    ("weights", "weights"), ("cache", "cache"), ("tensor", "tp"), ("pipeline", "pp"),
    ("expert", "ep"), ("data", "dp"),
)  # fmt: skip


def pareto_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Tokens/s of a device against the tokens/s that each request sees; a line for each device and
    engine, a point for each load."""
    names = _names(loads)
    rows = [
        {
            "deployment": name,
            "device": load.of.device.slug,
            "engine": load.of.engine.name,
            "size": load.size,
            "tokens_per_s_of_a_request": 1e3 / load.metric("tpot_ms").value,
            "tokens_per_s_of_a_device": load.metric("output_tokens_per_s").value / load.of.devices,
        }
        for load, name in zip(loads, names, strict=True)
    ]
    dots = Dots(
        f"{loads[0].of.network.name}: throughput against pace, by {size_name(loads)}",
        ["tokens_per_s_of_a_request"],
        ["tokens_per_s_of_a_device"],
        log="y",
        by=["deployment"],
        joined=["deployment"],
        labelled="size",
        headers={"tokens_per_s_of_a_request": "tokens/s that a request sees",
                 "tokens_per_s_of_a_device": "tokens/s of a device"},
    )  # fmt: skip
    sentence = f"{len(loads)} loads; further right and further up is better."
    return dots_chart(rows, dots, sentence=sentence, page=page)


def operator_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Time between tokens by class of operation: a bar for each load."""
    names = _names(loads)
    several = len(set(names)) > 1
    bars = [
        Bar(
            ", ".join([*([name] if several else []), f"{size_name(loads)} {load.size:g}"]),
            {kind: time * 1e3 for kind, time in load.load.token.by_kind(load.place).items()},
        )
        for load, name in zip(loads, names, strict=True)
    ]
    title = f"{loads[0].of.network.name}: time between tokens"
    title += "" if several else f" on {names[0]}"
    sentence = f"{len(loads)} loads; each bar is a time between tokens, by class of operation."
    return bars_chart(Bars(title, "ms", {"": bars}), sentence=sentence, page=page)


def _names(loads: Sequence[Served]) -> list[str]:
    """The deployment of each load: device, engine, and the settings that set some apart."""
    rows = [load.as_dict() for load in loads]
    varying = [(key, name) for key, name in _APART if len({row[key] for row in rows}) > 1]
    return [
        ", ".join([load.of.device.slug, load.of.engine.name,
                   *(f"{name} {row[key]}" for key, name in varying)])
        for load, row in zip(loads, rows, strict=True)
    ]  # fmt: skip
