"""Charts by their artists and their SVG text: right places, right labels, same bytes every time."""

import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.errors import OutputError, ProblemError, TableError, UnknownName
from perfmodel.hardware import load
from perfmodel.render.figure import BLUE, GREEN, ORANGE, save
from perfmodel.render.foot import WARNING
from perfmodel.render.labels import Places, text_inches
from perfmodel.render.roofline import roofline_chart
from perfmodel.render.roofs import Kernel, Roof, Roofs, roofs
from perfmodel.render.scatter import scatter_chart
from perfmodel.render.sequence import Sweep, sequence_chart

H100 = load("h100-sxm")
INTENSITY = {"hbm": 500.0, "l2": 120.0, "shared": 50.0}


def kernel(label="tiled", rate=4e14, measured=False, device="h100-sxm", **changes):
    return Kernel(label, device, rate, {**INTENSITY, **changes}, measured)


def chart(*kernels, dtypes=("fp16",), **options):
    return roofline_chart([roofs(H100, dtypes)], kernels, **options)


def lines(figure, gid):
    """The line artists with this id, over all panels."""
    return [line for axes in figure.axes for line in axes.lines if line.get_gid() == gid]


def texts(figure):
    return [item for axes in figure.axes for item in axes.texts]


def svg(figure, path):
    save(figure, path)
    return path.read_text()


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
    assert [roof.value for roof in found.matrix] == [H100.matrix_flops(t) for t in ("fp16", "fp8")]
    assert found.matrix[0].name == "fp16/bf16 matrix"
    assert found.levels["hbm"].highest >= H100.hbm_bytes_per_s
    shared = H100.shared_bytes_per_clock * H100.units * H100.boost_hz
    assert found.levels["shared"].value == pytest.approx(shared)
    exponentials = H100.special_per_clock * H100.units * H100.boost_hz
    assert found.vector[1].value == pytest.approx(exponentials)


def test_a_measured_rate_is_solid_and_its_peak_dashed():
    a100 = load("a100-sxm4-80gb")
    found = roofs(a100, ["fp16"])
    hbm = found.levels["hbm"]
    assert (hbm.value, hbm.datasheet) == (a100.measured_hbm_bytes_per_s, a100.hbm_bytes_per_s)
    assert "(peak " in hbm.label
    figure = roofline_chart([found])
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    slopes = [line.get_ydata()[0] / line.get_xdata()[0] for line in dashed]
    assert any(slope == pytest.approx(a100.hbm_bytes_per_s) for slope in slopes)
    words = " ".join(item.get_text() for item in figure.texts)
    assert "dashed: datasheet peak" in words


def test_a_kernel_stands_once_per_level_at_one_height():
    figure = chart(kernel(), kernel(rate=3e14, measured=True))
    for kind, rate in (("predicted", 4e14), ("measured", 3e14)):
        for level, colour in (("hbm", BLUE), ("l2", GREEN), ("shared", ORANGE)):
            (mark,) = lines(figure, f"{kind}-tiled-{level}")
            assert mark.get_xdata() == [INTENSITY[level]]
            assert mark.get_ydata() == [rate]
            assert mark.get_markeredgecolor() == colour
            assert mark.get_markerfacecolor() == (colour if kind == "measured" else "white")


def test_markers_tell_kernels_apart_on_every_panel():
    devices = [roofs(load(name), ["fp16"]) for name in ("a100-sxm4-80gb", "h100-sxm")]
    kernels = [
        kernel(label, device=item.device) for item in devices for label in ("standard", "tiled")
    ]
    figure = roofline_chart(devices, kernels)
    assert [axes.get_title("left") for axes in figure.axes] == [item.title for item in devices]
    for label in ("standard", "tiled"):
        marks = {line.get_marker() for line in lines(figure, f"predicted-{label}-hbm")}
        assert len(marks) == 1
        assert len(lines(figure, f"predicted-{label}-hbm")) == 2
    shapes = {
        lines(figure, f"predicted-{label}-hbm")[0].get_marker() for label in ("standard", "tiled")
    }
    assert len(shapes) == 2


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
    figure = chart(size=(6, 4.5))
    axes = figure.axes[0]
    (label,) = (item for item in axes.texts if item.get_text().startswith("HBM"))
    (line,) = lines(figure, "level-hbm")
    (x0, y0), (x1, y1) = axes.transData.transform(np.transpose(line.get_data()))
    assert label.get_rotation() == pytest.approx(
        math.degrees(math.atan2(y1 - y0, x1 - x0)), abs=0.1
    )


@pytest.mark.parametrize("size", [(6, 4.5), (10, 7), (5, 4)])
@pytest.mark.parametrize("device", ["h100-sxm", "a100-sxm4-80gb", "b200", "mi300x", "t4", "l4"])
def test_labels_overlap_neither_each_other_nor_the_frame(device, size):
    found = roofs(load(device), ["fp16"])
    figure = roofline_chart([found], [kernel(device=device, rate=found.top.value / 3)], size=size)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    frame = axes.get_window_extent()
    flat = [item for item in axes.texts if item.get_rotation() == 0]
    boxes = [item.get_window_extent() for item in flat]
    for i, box in enumerate(boxes):
        assert frame.x0 <= box.x0 <= box.x1 <= frame.x1 + 1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_legends_and_caption_stand_clear_of_the_panels():
    devices = [roofs(load(name), ["fp16"]) for name in ("a100-sxm4-80gb", "h100-sxm", "b200")]
    kernels = [kernel(f"kernel number {i}", device="b200") for i in range(12)]
    figure = roofline_chart(devices, kernels, note="The end.")
    figure.draw_without_rendering()
    legends = [legend.get_window_extent() for legend in figure.legends]
    (caption,) = [item.get_window_extent() for item in figure.texts]
    lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert caption.y0 >= 0
    assert caption.x1 <= figure.bbox.x1
    assert caption.y1 <= min(box.y0 for box in legends) + 1
    assert max(box.y1 for box in legends) <= lowest + 1
    assert not legends[0].overlaps(legends[1])


def test_roofline_svg_is_text_and_the_same_bytes_every_time(tmp_path):
    first = svg(chart(kernel()), tmp_path / "a.svg")
    assert first == svg(chart(kernel()), tmp_path / "b.svg")
    words = " ".join("".join(item.itertext()) for item in ET.fromstring(first).iter())
    for said in (
        *("NVIDIA H100", "fp16 matrix 794 TFLOP/s", "Arithmetic intensity (FLOP/byte)"),
        *("Performance (FLOP/s)", "fp32 vector", "special functions", "ridge points", "predicted"),
    ):
        assert said in words
    assert not re.search(r"<dc:date>", first)


def test_roofline_refuses_what_it_cannot_draw():
    with pytest.raises(ProblemError, match="13 kernels are too many"):
        chart(*(kernel(str(i)) for i in range(13)))
    with pytest.raises(ProblemError, match="no device to draw"):
        roofline_chart([])
    with pytest.raises(ProblemError, match="too small"):
        chart(size=(1, 1))
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
    assert len(figure.axes) == 1


def test_kernels_without_traffic_at_a_level_are_left_out_there():
    figure = chart(kernel(shared=math.inf, l2=0.0))
    assert lines(figure, "predicted-tiled-hbm")
    assert not lines(figure, "predicted-tiled-shared")
    assert not lines(figure, "predicted-tiled-l2")


roof_values = st.floats(1e9, 1e15)


@settings(max_examples=25)
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
    low, high = figure.axes[0].get_xlim()
    assert low < intensity < high
    assert not found.above(point)


def test_places_avoid_marks_and_earlier_texts():
    places = Places([(1.0, 1.0)])
    offered = [(0.6, 1.0), (0.6, 1.5), (0.6, 2.0)]
    assert places.best(offered, 0.8, 0.0) == (0.6, 1.5)
    assert places.best(offered, 0.8, 0.0) == (0.6, 2.0)
    assert text_inches("mmmm", 8) > text_inches("iiii", 8) > 0 == text_inches(" ", 8)


def runs(n=40):
    times = np.geomspace(1, 1e6, n)
    groups = np.where(np.arange(n) % 4 == 0, "gemm", "softmax")
    return pd.DataFrame({"measured_us": times, "predicted_us": times * 1.1, "op": groups})


def test_scatter_shows_every_row_with_its_group_error_and_band():
    figure = scatter_chart(runs(), "op")
    axes = figure.axes[0]
    (dots,) = lines(figure, "points-gemm")
    rows = runs()[runs()["op"] == "gemm"]
    assert dots.get_xdata() == pytest.approx(rows["measured_us"] * 1e-6)
    assert dots.get_ydata() == pytest.approx(rows["predicted_us"] * 1e-6)
    words = [item.get_text() for item in axes.get_legend().get_texts()]
    assert words == [
        "softmax  (n = 30, median error 10%)",
        "gemm  (n = 10, median error 10%)",
        "within ±20%",
    ]
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_aspect()) == ("log", "log", 1.0)
    band = next(item for item in axes.collections if item.get_gid() == "band")
    path = band.get_paths()[0].vertices
    right = path[path[:, 0] == path[:, 0].max()]
    assert {round(y / x, 6) for x, y in right} == {0.8, 1.2}


def test_scatter_puts_groups_without_a_colour_together():
    table = runs().assign(op=[f"op{i % 20}" for i in range(40)])
    words = [t.get_text() for t in scatter_chart(table, "op").axes[0].get_legend().get_texts()]
    assert len(words) == 9
    assert words[7].startswith("13 others  (n = 26,")


def test_scatter_refuses_what_it_cannot_draw():
    with pytest.raises(TableError, match="no column 'colour' to colour by"):
        scatter_chart(runs(), "colour")
    with pytest.raises(TableError, match="nothing to draw"):
        scatter_chart(runs().assign(predicted_us=np.nan), "op")


def sweep(device="h100-sxm", capacity=8e10):
    lengths = 2 ** np.arange(9, 17)
    return Sweep(
        device, lengths, lengths**2 * 1e-9, lengths**2 * 2e-10, lengths**2 * 32.0, lengths * 8e3,
        capacity, (("tiled", "flash3", lengths[:4], lengths[:4] ** 2 * 2.2e-10),),
    )  # fmt: skip


def test_sequence_chart_shows_time_speed_up_and_memory():
    figure = sequence_chart([sweep(), sweep("b200", 2e11)], note="A note.")
    one = sweep()
    (standard,) = lines(figure, "standard-h100-sxm")
    assert len(standard.get_xdata()) == one.fits.sum() == 7
    (tiled,) = lines(figure, "tiled-h100-sxm")
    assert tiled.get_ydata() == pytest.approx(one.tiled_seconds)
    (gain,) = lines(figure, "speedup-b200")
    assert gain.get_ydata() == pytest.approx(np.full(8, 5.0))
    slopes = {}
    for name in ("standard", "tiled"):
        (line,) = lines(figure, f"memory-{name}")
        x, y = line.get_data()
        slopes[name] = np.log(y[-1] / y[0]) / np.log(x[-1] / x[0])
    assert slopes == pytest.approx({"standard": 2, "tiled": 1})
    with pytest.raises(ProblemError, match="nothing to draw"):
        sequence_chart([])


def test_all_marks_and_lines_lie_inside_the_time_panels():
    figure = sequence_chart([sweep(), sweep("b200", 2e11)])
    for axes in figure.axes[:2]:
        low, high = axes.get_ylim()
        assert all(low < y < high for line in axes.lines for y in line.get_ydata())


@pytest.mark.parametrize(
    "make", [lambda: scatter_chart(runs(), "op"), lambda: sequence_chart([sweep()])]
)
def test_other_charts_are_the_same_bytes_every_time(tmp_path, make):
    assert svg(make(), tmp_path / "a.svg") == svg(make(), tmp_path / "b.svg")


def test_pdf_is_the_same_bytes_every_time(tmp_path):
    for name in ("a.pdf", "b.pdf"):
        save(scatter_chart(runs(), "op"), tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_saving_refuses_other_suffixes_and_leaves_nothing(tmp_path):
    with pytest.raises(OutputError, match=r"a chart is written as \.svg, \.pdf, \.png"):
        save(scatter_chart(runs(), "op"), tmp_path / "x.gif")
    with pytest.raises(OutputError, match="cannot write"):
        save(scatter_chart(runs(), "op"), tmp_path / "none" / "x.svg")
    assert list(tmp_path.iterdir()) == []


def test_drawing_does_not_load_pyplot():
    code = (
        "import sys; from perfmodel.render.scatter import scatter_chart; import pandas as pd; "
        "table = pd.DataFrame({'measured_us': [1.0], 'predicted_us': [1.0], 'op': ['a']}); "
        "scatter_chart(table, 'op'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
