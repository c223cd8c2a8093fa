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
        named = []
        for i, (label, group) in enumerate(groups.items()):
            colour, marker = palette.look(i)
            speed = [1e3 / one.metric("tpot_ms").value for one in group]
            made = [one.metric("output_tokens_per_s").value / one.of.devices for one in group]
            axes.plot(
                speed,
                made,
                marker=marker,
                markersize=3.5 * palette.scale,
                color=colour,
                label=label,
            )
            for one, x, y in zip(group, speed, made, strict=True):
                named.append((x, y, f"{one.size:g}"))
                rows.append({
                    "device": one.of.device.slug, "engine": one.of.engine.name, "size": one.size,
                    "tokens_per_s_of_a_request": x, "tokens_per_s_of_a_device": y,
                })  # fmt: skip
        axes.set_xlabel("tokens/s that a request sees")
        axes.set_ylabel("tokens/s of a device")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        if len(groups) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        dress(figure, page, palette, title)
        name_points(axes, named, palette.small, palette.ink)
    said = f"{len(loads)} loads; further right and further up is better."
    return Chart(figure, title, said, rows, page=page)


def operator_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Time between tokens by class of operation: a panel for each device and engine, a bar for each
    load."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = f"{loads[0].of.network.name}: time between tokens"
    groups = _groups(loads)
    found = {label: [_classes(one) for one in group] for label, group in groups.items()}
    kinds = [kind for kind in KINDS if any(kind in one for each in found.values() for one in each)]
    with styled(page) as palette:
        figure = Figure(figsize=page.size(2.6 + 2.2 * len(groups), 3.4), layout="constrained")
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for axes, (label, group) in zip(panels, groups.items(), strict=True):
            places, below = np.arange(len(group)), np.zeros(len(group))
            for kind, colour in zip(kinds, cycle(palette.cycle)):
                heights = np.array([each.get(kind, 0.0) * 1e3 for each in found[label]])
                axes.bar(places, heights, bottom=below, color=colour, label=kind, width=0.8)
                below += heights
            axes.set_xticks(places, [f"{one.size:g}" for one in group], fontsize=palette.small)
            axes.tick_params(axis="x", rotation=90 if len(group) > 6 else 0)
            axes.set_title(label, fontsize=palette.small)
            axes.set_xlabel(size_name(loads))
        panels[0].set_ylabel("ms between tokens")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        dress(figure, page, palette, title)
    rows: list[Row] = [
        {"deployment": label, "size": one.size, "class": kind, "seconds": each.get(kind, 0.0)}
        for label, group in groups.items()
        for one, each in zip(group, found[label], strict=True)
        for kind in kinds
    ]
    said = f"{len(loads)} loads; each bar is a time between tokens, by class of operation."
    return Chart(figure, title, said, rows, page=page)


def _classes(one: Served) -> dict[str, float]:
    """Seconds of a time between tokens, by class; classes below a hundredth are omitted."""
    found = one.load.token.by_kind(one.place)
    return {kind: took for kind, took in found.items() if took >= 0.01 * sum(found.values())}


def _groups(loads: Sequence[Served]) -> dict[str, list[Served]]:
    """Loads by what sets their deployments apart, device and engine in any case."""
    rows = [one.as_dict() for one in loads]
    apart = [(key, name) for key, name in _APART if len({row[key] for row in rows}) > 1]
    found: dict[str, list[Served]] = {}
    for one, row in zip(loads, rows, strict=True):
        said = (f"{name} {row[key]}" for key, name in apart)
        label = ", ".join([one.of.device.slug, one.of.engine.name, *said])
        found.setdefault(label, []).append(one)
    return found
