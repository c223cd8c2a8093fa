"""Charts of served networks: throughput against latency, and time between tokens by operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import name_points
from perfmodel.render.page import Page, styled
from perfmodel.render.report import Row
from perfmodel.render.serving import KINDS, size_name
from perfmodel.serving.served import Served

_APART = (
    ("weights", "weights"), ("cache", "cache"), ("tensor", "tp"), ("pipeline", "pp"),
    ("expert", "ep"), ("data", "dp"),
)  # fmt: skip


def pareto_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Tokens/s of a device against the tokens/s that each request sees; a line for each device and
    engine, a point for each load."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = f"{loads[0].of.network.name}: throughput against pace, by {size_name(loads)}"
    rows: list[Row] = []
    with styled(page) as palette:
        figure = Figure(
            figsize=page.size(5.2 + (1.8 if len(_groups(loads)) > 1 else 0.0), 3.6),
            layout="constrained",
        )
        axes = figure.add_subplot()
        groups = _groups(loads)
        labels = []
        for i, (label, group) in enumerate(groups.items()):
            colour, marker = palette.look(i)
            speed = [1e3 / load.metric("tpot_ms").value for load in group]
            rates = [load.metric("output_tokens_per_s").value / load.of.devices for load in group]
            axes.plot(
                speed,
                rates,
                marker=marker,
                markersize=3.5 * palette.scale,
                color=colour,
                label=label,
            )
            for load, x, y in zip(group, speed, rates, strict=True):
                labels.append((x, y, f"{load.size:g}"))
                rows.append({
                    "device": load.of.device.slug, "engine": load.of.engine.name, "size": load.size,
                    "tokens_per_s_of_a_request": x, "tokens_per_s_of_a_device": y,
                })  # fmt: skip
        axes.set_xlabel("tokens/s that a request sees")
        axes.set_ylabel("tokens/s of a device")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        if len(groups) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        dress(figure, page, palette, title)
        name_points(axes, labels, palette.small, palette.ink)
    sentence = f"{len(loads)} loads; further right and further up is better."
    return Chart(figure, title, sentence, rows, page=page)


def operator_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Time between tokens by class of operation: a panel for each device and engine, a bar for each
    load."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = f"{loads[0].of.network.name}: time between tokens"
    groups = _groups(loads)
    classes = {label: [*map(_classes, group)] for label, group in groups.items()}
    kinds = [kind for kind in KINDS if any(kind in c for group in classes.values() for c in group)]
    with styled(page) as palette:
        figure = Figure(figsize=page.size(2.6 + 2.2 * len(groups), 3.4), layout="constrained")
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for axes, (label, group) in zip(panels, groups.items(), strict=True):
            places, base = np.arange(len(group)), np.zeros(len(group))
            for kind, colour in zip(kinds, cycle(palette.cycle)):
                heights = np.array([c.get(kind, 0.0) * 1e3 for c in classes[label]])
                axes.bar(places, heights, bottom=base, color=colour, label=kind, width=0.8)
                base += heights
            axes.set_xticks(places, [f"{load.size:g}" for load in group], fontsize=palette.small)
            axes.tick_params(axis="x", rotation=90 if len(group) > 6 else 0)
            axes.set_title(label, fontsize=palette.small)
            axes.set_xlabel(size_name(loads))
        panels[0].set_ylabel("ms between tokens")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        dress(figure, page, palette, title)
    rows: list[Row] = [
        {"deployment": label, "size": load.size, "class": kind, "seconds": times.get(kind, 0.0)}
        for label, group in groups.items()
        for load, times in zip(group, classes[label], strict=True)
        for kind in kinds
    ]
    sentence = f"{len(loads)} loads; each bar is a time between tokens, by class of operation."
    return Chart(figure, title, sentence, rows, page=page)


def _classes(load: Served) -> dict[str, float]:
    """Seconds of a time between tokens, by class; classes below a hundredth are omitted."""
    times = load.load.token.by_kind(load.place)
    return {kind: time for kind, time in times.items() if time >= 0.01 * sum(times.values())}


def _groups(loads: Sequence[Served]) -> dict[str, list[Served]]:
    """Loads by what sets their deployments apart, device and engine in any case."""
    rows = [load.as_dict() for load in loads]
    varying = [(key, name) for key, name in _APART if len({row[key] for row in rows}) > 1]
    groups: dict[str, list[Served]] = {}
    for load, row in zip(loads, rows, strict=True):
        parts = (f"{name} {row[key]}" for key, name in varying)
        label = ", ".join([load.of.device.slug, load.of.engine.name, *parts])
        groups.setdefault(label, []).append(load)
    return groups
