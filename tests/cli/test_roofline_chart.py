"""Rooflines by their artists: roofs and marks in their places, labels that never overlap."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from charting import H100, INTENSITY, chart, kernel, lines, polygons, svg, texts
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.render.dots import WARNING, grid
from perfmodel.render.labels import (
    Box,
    Labels,
    line_box,
    mark_box,
    overlaps,
    text_box,
    text_inches,
)
from perfmodel.render.page import STYLES, Page, styled
from perfmodel.render.roofline import LOOKS, roofline_chart
from perfmodel.render.roofs import Kernel, Roof, Roofs, roofs
from perfmodel.units import si


def test_ceilings_and_diagonals_meet_at_the_ridge():
    figure = chart()
    found = roofs(H100, ["fp16"])
    for level, roof in found.levels.items():
        (line,) = lines(figure, f"level-{level}")
        x, y = line.get_data()
        assert y == pytest.approx(np.array(x) * roof.value)
        assert x[-1] == pytest.approx(found.top.value / roof.value)
        (ridge,) = lines(figure, f"ridge-{level}")
        assert ridge.get_xdata() == pytest.approx([x[-1]] * 2)
    (ceiling,) = lines(figure, "ceiling-fp16 matrix")
    assert ceiling.get_ydata() == pytest.approx([found.top.value] * 2)
    assert min(ceiling.get_xdata()) == pytest.approx(found.top.value / found.levels["shared"].value)


def test_roofs_are_those_of_the_spec():
    found = roofs(H100, ["fp16", "bf16", "fp8"])
    peaks = [H100.matrix_flops(t) for t in ("fp16", "fp8")]
    assert [roof.highest for roof in found.matrix] == peaks
    assert found.matrix[0].name == "fp16/bf16 matrix"
    assert found.levels["hbm"].highest >= H100.hbm_bytes_per_s
    shared = H100.shared_bytes_per_clock * H100.units * H100.boost_hz
    assert found.levels["shared"].value == pytest.approx(shared)
    exponentials = H100.special_per_clock * H100.units * H100.boost_hz
    assert found.special_per_s == pytest.approx(exponentials)


def test_a_measured_rate_is_thick_and_its_peak_thin():
    a100 = load("a100-sxm4-80gb")
    found = roofs(a100, ["fp16"])
    hbm = found.levels["hbm"]
    assert (hbm.value, hbm.datasheet) == (a100.measured_hbm_bytes_per_s, a100.hbm_bytes_per_s)
    drawn = roofline_chart([found])
    (peak,), (solid,) = lines(drawn, "peak-hbm"), lines(drawn, "level-hbm")
    assert peak.get_ydata()[0] / peak.get_xdata()[0] == pytest.approx(a100.hbm_bytes_per_s)
    assert peak.get_linewidth() < solid.get_linewidth()
    assert "Thin lines are published peaks" in " ".join(drawn.caption)


def test_a_kernel_stands_once_per_level_at_one_height():
    figure = chart(kernel(), kernel(rate=3e14, measured=True))
    for kind, rate in (("predicted", 4e14), ("measured", 3e14)):
        for level in INTENSITY:
            (mark,) = lines(figure, f"{kind}-{level}")
            assert mark.get_xdata() == [INTENSITY[level]]
            assert mark.get_ydata() == [rate]
            (i,) = figure.marks[f"{kind}-{level}"]
            assert (figure.rows[i]["name"], figure.rows[i]["level"]) == ("tiled", level)
            assert mark.get_marker() == LOOKS[level].marker
            filled = mark.get_markerfacecolor() == mark.get_markeredgecolor()
            assert filled == (kind == "measured")


def test_labels_tell_kernels_apart_on_every_panel():
    devices = [roofs(load(name), ["fp16"]) for name in ("a100-sxm4-80gb", "h100-sxm")]
    kernels = [
        kernel(label, device=item.device) for item in devices for label in ("standard", "tiled")
    ]
    drawn = roofline_chart(devices, kernels)
    assert [axes.get_title("left") for axes in drawn.figure.axes] == [d.title for d in devices]
    for axes in drawn.figure.axes:
        words = [item.get_text() for item in axes.texts]
        for label in ("standard", "tiled"):
            assert any(said.startswith(label) for said in words)


def test_levels_differ_in_dashes_and_shape_as_well_as_in_colour():
    looks = LOOKS.values()
    for trait in ("colour", "dashes", "marker"):
        assert len({str(getattr(look, trait)) for look in looks}) == len(LOOKS)


def test_a_point_above_its_roof_gets_a_warning():
    above = kernel(rate=H100.matrix_flops("fp16") * 1.1)
    memory = kernel(rate=3e14, hbm=10.0)
    fine = kernel()
    found = roofs(H100, ["fp16"])
    assert [found.above(item) for item in (above, memory, fine)] == [True, True, False]
    signs = [item for item in texts(chart(above, fine)) if item.get_text() == WARNING]
    assert len(signs) == 1
    assert not [item for item in texts(chart(fine)) if item.get_text() == WARNING]


def test_diagonal_labels_lie_along_their_lines():
    figure = chart(page=Page(width=6, height=4.5))
    axes = figure.figure.axes[0]
    figure.figure.draw_without_rendering()
    (label,) = (item for item in axes.texts if item.get_text().startswith("HBM"))
    (line,) = lines(figure, "level-hbm")
    (x0, y0), (x1, y1) = axes.transData.transform(np.transpose(line.get_data()))
    assert label.get_rotation() == pytest.approx(
        math.degrees(math.atan2(y1 - y0, x1 - x0)), abs=0.1
    )


def series(device, label, rate):
    """A trajectory of four sizes."""
    return [
        Kernel(
            label, device, rate * (1 + i / 9), {k: x * 2**i / 4 for k, x in INTENSITY.items()},
            at=str(512 << i), of="seq", low_flops_per_s=rate / 2, high_flops_per_s=rate * 1.3,
            flops_per_special=512.0,
        )
        for i in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "style"),
    [
        *((("h100-sxm",), style) for style in STYLES),
        (("mi300x",), "default"),
        (("b200", "t4", "l4", "rtx4090"), "default"),
    ],
)
def test_no_two_labels_overlap_and_none_leaves_its_panel(devices, style):
    kernels = [
        item
        for name in devices
        for label, rate in (("standard", 3e13), ("tiled", 6e13))
        for item in (*series(name, label, rate), kernel(f"{label} once", rate / 3, device=name))
    ]
    drawn = roofline_chart(
        [roofs(load(name), ["fp16"]) for name in devices],
        kernels,
        title="attention fp16, heads 16, head dim 128",
        page=Page(style),
    )
    named = []
    for axes, found in polygons(drawn):
        named += [words for words, _ in found]
        frame = axes.get_window_extent()
        inches = np.array([[frame.x0, frame.y0], [frame.x1, frame.y1]]) / drawn.figure.dpi
        for i, (words, box) in enumerate(found):
            corners = box.corners()
            assert (corners >= inches[0] - 0.02).all(), words
            assert (corners <= inches[1] + 0.02).all(), words
            others = np.array([other.corners() for _, other in found[:i]]).reshape(-1, 4, 2)
            assert not overlaps(box, others).any(), words
    missing = " ".join(drawn.caption)
    for item in kernels:  # a label, or the caption says that there is none
        there = any(words.startswith((item.label, item.at or item.name)) for words in named)
        assert there or item.name in missing
    assert len(named) > 6


def drawn_lines(axes, dpi):
    """The lines of a panel that labels keep off, as boxes in inches on the page, by id."""
    for line in axes.lines:
        gid = line.get_gid() or ""
        if line.get_linestyle() == "None" or gid.startswith(("ridge-", "leader-")):
            continue
        ends = line.get_transform().transform(line.get_xydata()) / dpi
        for a, b in pairwise(ends):
            if math.dist(a, b) > 0.02:  # an end may stand under a label on another line
                yield gid, line_box(tuple(a + (b - a) * 0.01 / math.dist(a, b)), tuple(b))


@pytest.mark.parametrize("seed", range(4))
def test_no_label_lies_on_a_line(seed):
    """By 2 points, of lines as they are drawn; dotted lines of ridge points are no obstacle."""
    drawn, _ = seeded(seed)
    for axes, found in polygons(drawn):
        obstacles = [box for _, box in drawn_lines(axes, drawn.figure.dpi)]
        corners = np.array([box.corners() for box in obstacles])
        for words, box in found:
            core = replace(box, height=box.height - 4 / 72)
            assert not overlaps(core, corners).any(), words


@pytest.mark.parametrize("seed", range(4))
def test_a_roof_s_label_stands_next_to_its_own_line(seed):
    drawn, devices = seeded(seed)
    for device, (axes, found) in zip(devices, polygons(drawn), strict=True):
        named = dict(roof_labels(device))
        placed = [(words, box) for words, box in found if words in named]
        assert placed
        for words, box in placed:
            middle = box.corners().mean(axis=0)
            distances = {
                gid: abs(across(line, middle))
                for gid, line in drawn_lines(axes, drawn.figure.dpi)
                if gid.startswith(("level-", "peak-", "ceiling-"))
                and abs(line.angle - box.angle) < 0.01
                and overlaps(replace(line, height=2.0), box.corners()[None]).any()
            }
            assert min(distances, key=distances.get) in named[words], words


def across(line, point):
    """Distance of a point from a line, in inches."""
    x, y = np.subtract(point, line.start)
    return y * math.cos(line.angle) - x * math.sin(line.angle)


def roof_labels(device):
    """The labels that the lines of a device may have, with the ids of those that they name."""
    names = [(roof, roof.name, "ceiling") for roof in device.compute]
    names += [(roof, level, "level") for level, roof in device.levels.items()]
    for roof, name, kind in names:
        for rate, line, origin in (
            (roof.value, f"{kind}-{name}", "measured"),
            (roof.datasheet, f"peak-{name}", "published"),
        ):
            value = si(rate, roof.unit) if rate else ""
            yield f"{roof.name} {value} {origin}", (line,)
            yield f"{roof.name} {value}", (line,)
            yield f"{value} {origin}", (line,)
        yield roof.name, (f"{kind}-{name}",)


@lru_cache
def seeded(seed):
    """A chart of drawn devices, kernels, sizes and measured runs, in a drawn style."""
    random = Random(seed)
    known = ("h100-sxm", "a100-sxm4-80gb", "mi300x", "b200", "t4", "l4", "rtx4090")
    devices = [roofs(load(name), ["fp16"]) for name in random.sample(known, random.randint(1, 3))]
    kernels = []
    for device in devices:
        for label in ("standard", "tiled")[: random.randint(1, 2)]:
            for i in range(sizes := random.randint(1, 3)):
                inner, reuse = 10 ** random.uniform(0, 3), random.uniform(1.5, 8)
                intensity = {"shared": inner, "l2": inner * reuse, "hbm": inner * reuse**2}
                at = {"at": str(512 << i), "of": "seq"} if sizes > 1 else {}
                item = Kernel(label, device.device, 1.0, intensity, dtype="fp16", **at)
                rate = device.bound(item)[1] * random.uniform(0.2, 0.95)
                ends = {"low_flops_per_s": rate * 0.6, "high_flops_per_s": rate * 1.2}
                kernels.append(replace(item, flops_per_s=rate, **ends))
                if random.random() < 0.4:
                    kernels.append(kernels[-1].ran(rate * random.uniform(0.7, 1.05), "flash3"))
    page = Page(random.choice(STYLES))
    return roofline_chart(devices, kernels, title="attention fp16", page=page), devices


def test_a_column_of_a_paper_has_room_for_a_roofline(tmp_path):
    drawn = chart(kernel(), title="attention fp16", page=Page("paper"))
    assert tuple(drawn.figure.get_size_inches()) == (3.3, 2.5)
    assert not [item for item in drawn.figure.texts if item.get_gid() == "caption"]
    assert drawn.caption
    narrow = chart(kernel(), page=Page(width=4.0, captioned=False))
    assert narrow.figure.get_size_inches()[0] == 4.0


def test_the_last_row_of_panels_is_filled():
    assert [grid(n) for n in range(1, 10)] == [
        *((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 3), (2, 4), (2, 4), (3, 3)),
    ]
    devices = [roofs(H100, ["fp16"])] * 5
    boxes = [axes.get_position() for axes in roofline_chart(devices).figure.axes]
    assert boxes[4].x1 == pytest.approx(boxes[2].x1)
    assert boxes[3].width > boxes[0].width


def test_special_functions_are_a_ceiling_in_flops_or_none():
    found = roofs(H100, ["fp16"])
    attention = series("h100-sxm", "tiled", 3e14)
    ceiling = found.special(attention)
    assert ceiling.value == pytest.approx(found.special_per_s * 512)
    assert ceiling.unit == "FLOP/s"
    assert lines(chart(*attention), "ceiling-special functions at")
    assert found.special([kernel()]) is None  # a product has none
    assert not lines(chart(kernel()), "ceiling-special functions at")


def test_a_share_is_of_the_lowest_peak_above_the_mark():
    found = roofs(H100, ["fp16", "fp8"])
    memory = kernel(rate=1e14, hbm=50.0, l2=1e4, shared=1e4)
    roof, allowed = found.bound(memory)
    assert (roof.name, allowed) == ("HBM3", pytest.approx(50 * found.levels["hbm"].highest))
    fp16 = Kernel("x", "h100-sxm", 4e14, {"hbm": 1e6}, dtype="fp16")
    assert found.share(fp16) == pytest.approx(4e14 / H100.matrix_flops("fp16"))
    fp8 = Kernel("x", "h100-sxm", 4e14, {"hbm": 1e6}, dtype="fp8")
    assert found.share(fp8) == pytest.approx(4e14 / H100.matrix_flops("fp8"))
    words = [item.get_text() for item in texts(chart(fp16))]
    assert "x: 40% of fp16 matrix" in words


def test_every_level_is_drawn_or_said_to_be_missing():
    drawn = roofline_chart([roofs(load("rtx4090"), ["fp16"])])
    assert not lines(drawn, "level-l2")
    assert "Not drawn: L2 of rtx4090" in " ".join(drawn.caption)
    assert lines(roofline_chart([roofs(load("mi300x"), ["fp16"])]), "level-llc")


def test_a_range_is_a_bar_at_the_outermost_level():
    (one, *_) = series("h100-sxm", "tiled", 3e14)
    axes = chart(one).figure.axes[0]
    (bars,) = [group for group in axes.collections if group.get_gid() == "range-hbm"]
    (bar,) = bars.get_segments()
    assert bar.T.tolist() == [
        [one.intensity["hbm"]] * 2,
        [one.low_flops_per_s, one.high_flops_per_s],
    ]


def test_rows_are_what_is_drawn():
    drawn = chart(*series("h100-sxm", "tiled", 3e14))
    marks = [row for row in drawn.rows if row["what"] == "predicted"]
    assert len(marks) == 4 * 3
    assert {row["level"] for row in marks} == {"hbm", "l2", "shared"}
    roof = next(row for row in drawn.rows if row["level"] == "hbm" and row["what"] == "roof")
    assert roof["ridge_flop_per_byte"] == pytest.approx(
        roofs(H100, ["fp16"]).top.value / roof["bytes_per_s"]
    )


def test_legends_and_caption_stand_clear_of_the_panels():
    devices = [roofs(load(name), ["fp16"]) for name in ("a100-sxm4-80gb", "h100-sxm", "b200")]
    kernels = [kernel(f"kernel number {i}", device="b200") for i in range(12)]
    figure = roofline_chart(devices, kernels, note="The end.").figure
    with styled(Page()):
        (legend,) = [legend.get_window_extent() for legend in figure.legends]
        (caption,) = [t.get_window_extent() for t in figure.texts if t.get_gid() == "caption"]
    lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert caption.y0 >= 0
    assert caption.x1 <= figure.bbox.x1
    assert caption.y1 <= legend.y0 + 1
    assert legend.y1 <= lowest + 1


def test_roofline_svg_is_text_and_the_same_bytes_every_time(tmp_path):
    first = svg(chart(kernel()), tmp_path / "a.svg")
    assert first == svg(chart(kernel()), tmp_path / "b.svg")
    words = " ".join("".join(item.itertext()) for item in ET.fromstring(first).iter())
    for said in (
        *("NVIDIA H100", "fp16 matrix 989 TFLOP/s", "Arithmetic intensity (FLOP/byte)"),
        *("Performance (FLOP/s)", "fp32 vector", "ridge points", "predicted"),
    ):
        assert said in words
    root = ET.fromstring(first)
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert root.get("role") == "img"
    assert root.find("svg:title", space).text == "Roofline of h100-sxm"
    assert "tiled on h100-sxm: 400 TFLOP/s predicted" in root.find("svg:desc", space).text
    assert not re.search(r"<dc:date>", first)


def test_roofline_refuses_what_it_cannot_draw():
    with pytest.raises(ProblemError, match="25 kernels are too many"):
        chart(*(kernel(str(i)) for i in range(25)))
    with pytest.raises(ProblemError, match="no device to draw"):
        roofline_chart([])
    with pytest.raises(ProblemError, match="too small"):
        chart(page=Page(width=1, height=1))
    with pytest.raises(UnknownName, match="no memory level named 'l3'"):
        roofs(H100, ["fp16"], ["l3"])
    with pytest.raises(ProblemError, match="has no fp8 matrix rate"):
        roofs(load("a100-sxm4-80gb"), ["fp8"])


def test_what_does_no_arithmetic_has_no_place_under_a_roof():
    with pytest.raises(ProblemError, match="embedding does no arithmetic"):
        roofline_chart([roofs(H100, ["bf16"])], [Kernel("embedding", "h100-sxm", 0.0, {})])


@pytest.mark.parametrize("name", ["xeon-gold-6242", "wse-2", "tpu-v5e", "p100-pcie-16gb", "gaudi3"])
def test_devices_without_some_unit_or_level(name):
    device = load(name)
    figure = roofline_chart([roofs(device, device.matrix_types[:1])])
    assert len(figure.figure.axes) == 1


def test_kernels_without_traffic_at_a_level_are_left_out_there():
    figure = chart(kernel(shared=math.inf, l2=0.0))
    assert lines(figure, "predicted-hbm")
    assert not lines(figure, "predicted-shared")
    assert not lines(figure, "predicted-l2")


roof_values = st.floats(1e9, 1e15)


@given(st.lists(roof_values, min_size=1, max_size=3), roof_values, st.floats(1e-3, 1e5))
def test_any_roofs_can_be_drawn(bandwidths, peak, intensity):
    levels = {
        name: Roof(name, value, "B/s", "spec")
        for name, value in zip(("hbm", "l2", "shared"), sorted(bandwidths), strict=False)
    }
    found = Roofs("x", "X", (Roof("fp16 matrix", peak, "FLOP/s", "spec"),), (), levels)
    bound = min(peak, intensity * levels["hbm"].value)
    point = Kernel("k", "x", bound, dict.fromkeys(levels, intensity))
    figure = roofline_chart([found], [point])
    low, high = figure.figure.axes[0].get_xlim()
    assert low < intensity < high
    assert not found.above(point)


def test_labels_keep_off_marks_lines_and_earlier_texts():
    from matplotlib.figure import Figure

    with styled(Page()) as palette:
        axes = Figure(figsize=(3, 3)).add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 3), ylim=(0, 3))
        axes.plot([1.0], [1.0], "o", markersize=14)
        axes.plot([0, 3], [2.5, 2.5])
        axes.plot([0, 3], [2.0, 2.0], ":")
        labels = Labels(axes, palette)
        offered = [Box((0.6, y), 0.8, 0.1) for y in (1.0, 2.5, 2.0, 1.5)]
        assert labels.best(offered) is offered[3]  # on no dotted line either
        assert labels.best(offered) is offered[2]
        assert labels.best(offered) is None
        assert labels.best([Box((2.9, 0.5), 0.8, 0.1)]) is None  # beyond the edge
        assert not labels.name(1.0, 1.0, ["m" * 60], 8, "black")  # wider than the panel
        assert labels.name(1.0, 1.0, ["m" * 60, "short"], 8, "black")
        assert axes.texts[-1].get_text() == "short"
    assert text_inches("mmmm", 8) > text_inches("iiii", 8) > 0 == text_inches(" ", 8)


@given(st.floats(0, 3), st.floats(0, 3), st.floats(-1.5, 1.5), st.floats(0.1, 2))
def test_boxes_that_share_a_point_overlap(x, y, angle, length):
    box = Box((x, y), length, 0.2, angle)
    inside = (x + math.cos(angle) * length / 2, y + math.sin(angle) * length / 2)
    assert overlaps(box, mark_box(inside, 0.01).corners()[None]).all()
    aside = (inside[0] - math.sin(angle) * 0.3, inside[1] + math.cos(angle) * 0.3)
    assert not overlaps(box, mark_box(aside, 0.1).corners()[None]).any()
    assert text_box("word", 8, (x, y)).length > text_inches("word", 8)
