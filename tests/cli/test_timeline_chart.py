"""The pipeline chart by its artists: every task drawn where it ran, numbers inside their bars."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from perfmodel.errors import ProblemError
from perfmodel.render.chart import save
from perfmodel.render.page import Page
from perfmodel.render.svg import document
from perfmodel.render.timeline import timeline_chart
from perfmodel.training.pipeline import StageTimes, schedule, simulate


def ran(kind, stages=4, micro=8, chunks=None, **times):
    plan = schedule(kind, stages, micro, chunks)
    return simulate(plan, StageTimes.even(plan, 1e-3, 1e-3, 1e-3, **times))


def rectangles(figure, bubble):
    """(left, low, right, high) of every bar, or of every strip behind them."""
    if bubble:
        strips = [path for each in figure.axes[0].collections for path in each.get_paths()]
        return np.array([path.get_extents().extents for path in strips])
    return np.array([bar.get_bbox().extents for bar in figure.axes[0].patches])


@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "interleaved", "zb-v", "dualpipe"])
def test_bars_are_the_tasks_and_cover_what_is_not_bubble(kind):
    found = ran(kind)
    figure = timeline_chart(found).figure
    bars, strips = rectangles(figure, bubble=False), rectangles(figure, bubble=True)
    assert len(bars) == sum(len(stage) for stage in found.schedule.tasks)
    assert len(strips) == found.schedule.stages
    for stage in range(found.schedule.stages):
        here = bars[np.abs((bars[:, 1] + bars[:, 3]) / 2 - stage) < 0.5]
        area = ((here[:, 2] - here[:, 0]) * (here[:, 3] - here[:, 1])).sum()
        assert area == pytest.approx(0.8 * found.busy_seconds[stage])
    assert strips[:, 2].max() == pytest.approx(found.barrier_seconds)


def test_numbers_stand_inside_their_bars_and_only_where_they_fit():
    figure = timeline_chart(ran("1f1b")).figure
    axes = figure.axes[0]
    assert sorted(int(t.get_text()) for t in axes.texts) == sorted(4 * 2 * list(range(8)))
    bars = rectangles(figure, bubble=False)
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in axes.texts:
        box = text.get_window_extent(renderer).transformed(axes.transData.inverted())
        x, y = text.get_position()
        (bar,) = bars[(bars[:, 0] < x) & (x < bars[:, 2]) & (bars[:, 1] < y) & (y < bars[:, 3])]
        assert bar[0] <= box.x0 <= box.x1 <= bar[2]
    assert not timeline_chart(ran("1f1b", micro=300)).figure.axes[0].texts


def test_the_title_says_what_it_was_and_the_key_what_the_colours_are():
    figure = timeline_chart(ran("zb-v")).figure
    assert figure.get_suptitle().startswith("zb-v: 4 stages of 2 chunks, 8 micro-batches, 48")
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == [
        "forward", "backward: input", "backward: weights", "bubble", "darker: later chunk",
    ]  # fmt: skip
    plain = timeline_chart(ran("1f1b"), Page(title="Mine")).figure
    assert plain.get_suptitle() == "Mine"
    said = [text.get_text() for text in plain.legends[0].get_texts()]
    assert said == ["forward", "backward", "bubble"]


def test_every_task_has_its_numbers_in_the_picture():
    chart = timeline_chart(ran("1f1b"))
    assert len(chart.rows) == 4 * 16
    assert sorted(i for rows in chart.marks.values() for i in rows) == list(range(len(chart.rows)))
    text = document(chart)
    assert text.count("<title>stage: ") == len(chart.rows)
    assert "task: F7" in text


def test_the_same_pipeline_gives_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        save(timeline_chart(ran("dualpipe", pair=2.6e-3)), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_what_cannot_be_drawn_is_refused():
    plan = schedule("1f1b", 2, 2)
    with pytest.raises(ProblemError, match="nothing takes any time"):
        timeline_chart(simulate(plan, StageTimes.even(plan, 0, 0, 0)))
