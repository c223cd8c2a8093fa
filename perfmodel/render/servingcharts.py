"""Served networks as charts: throughput against latency, and time between tokens by operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, styled
from perfmodel.render.report import Row
from perfmodel.render.serving import KINDS, size_name
from perfmodel.serving.served import Served


def pareto_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Tokens/s of a device against tokens/s that each request sees; a line a device and engine, a
    point a load."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = f"{loads[0].of.network.name}: throughput against pace, by {size_name(loads)}"
    rows: list[Row] = []
    with styled(page) as palette:
        figure = Figure(figsize=page.size(5.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for (label, group), colour in zip(_groups(loads).items(), cycle(palette.cycle)):
            speed = [1e3 / one.metric("tpot_ms").value for one in group]
            made = [one.metric("output_tokens_per_s").value / one.of.devices for one in group]
            axes.plot(speed, made, marker="o", markersize=3, color=colour, label=label)
            for one, x, y in zip(group, speed, made, strict=True):
                axes.annotate(
                    f"{one.size:g}",
                    (x, y),
                    fontsize=palette.small,
                    xytext=(2, 2),
                    textcoords="offset points",
                )
                rows.append({
                    "device": one.of.device.slug, "engine": one.of.engine.name, "size": one.size,
                    "tokens_per_s_of_a_request": x, "tokens_per_s_of_a_device": y,
                })  # fmt: skip
        axes.set_xlabel("tokens/s that a request sees")
        axes.set_ylabel("tokens/s of a device")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.legend()
        dress(figure, page, palette, title)
    said = f"{len(loads)} loads; further right and further up is better."
    return Chart(figure, title, said, rows, page=page)


def operator_chart(loads: Sequence[Served], page: Page | None = None) -> Chart:
    """Time between tokens by class of operation, a bar a load."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = f"{loads[0].of.network.name} on {loads[0].of.device.slug}: time between tokens"
    found = [one.load.token.by_kind(one.place) for one in loads]
    kinds = [kind for kind in KINDS if any(kind in each for each in found)]
    places = np.arange(len(loads))
    with styled(page) as palette:
        figure = Figure(figsize=page.size(5.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        below = np.zeros(len(loads))
        for kind, colour in zip(kinds, cycle(palette.cycle)):
            heights = np.array([each.get(kind, 0.0) * 1e3 for each in found])
            axes.bar(places, heights, bottom=below, color=colour, label=kind, width=0.8)
            below += heights
        axes.set_xticks(places, [f"{one.size:g}" for one in loads])
        axes.set_xlabel(size_name(loads))
        axes.set_ylabel("ms between tokens")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        dress(figure, page, palette, title)
    rows: list[Row] = [
        {"size": one.size, "class": kind, "seconds": each.get(kind, 0.0)}
        for one, each in zip(loads, found, strict=True)
        for kind in kinds
    ]
    said = f"{len(loads)} loads; each bar is a time between tokens, by class of operation."
    return Chart(figure, title, said, rows, page=page)


def _groups(loads: Sequence[Served]) -> dict[str, list[Served]]:
    found: dict[str, list[Served]] = {}
    for one in loads:
        found.setdefault(f"{one.of.device.slug}, {one.of.engine.name}", []).append(one)
    return found
