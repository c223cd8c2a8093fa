"""Charts, tested by artists and SVG text: positions, labels, and the same bytes every time."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from charting import lines, svg, texts
from folders import ROOT

from perfmodel.errors import OutputError, ProblemError, TableError, UnknownName
from perfmodel.render.chart import save
from perfmodel.render.page import STYLES, Page, styled
from perfmodel.render.pareto import pareto_chart
from perfmodel.render.problem import spoken
from perfmodel.render.scatter import scatter_chart


def luminance(colour):
    """Relative luminance of a colour (WCAG 2.2)."""
    from matplotlib.colors import to_rgb

    parts = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(colour)]
    return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("style", STYLES)
def test_every_colour_can_be_read_on_its_ground(style):
    with styled(Page(style)) as palette:
        ground = luminance(palette.ground)
        for colour in palette.cycle:
            low, high = sorted((luminance(colour), ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_styles_are_matplotlib_s_own():
    from matplotlib import rc_context, rcParams, style

    for name, points in (("paper", 7.0), ("talk", 15.0), ("dark", 8.0)):
        with rc_context():
            style.use(["perfmodel.render.styles.default", f"perfmodel.render.styles.{name}"])
            assert rcParams["font.size"] == points


def test_pages_refuse_what_they_cannot_be():
    with pytest.raises(UnknownName, match="no style named 'slides'"):
        Page("slides")
    with pytest.raises(ProblemError, match="not between 1 and 60 inches"):
        Page(width=100)
    with pytest.raises(ProblemError, match="dots an inch"):
        Page(dpi=1)


def test_a_problem_is_spoken_without_what_says_nothing():
    fields = {"batch": 1, "heads_q": 8, "heads_kv": 2, "seq_q": 64, "seq_kv": 64, "window": None,
              "causal": True, "keys_only": False, "dtype": "fp16", "direction": "bwd"}  # fmt: skip
    said = "attention fp16 backward, heads q 8, heads kv 2, seq 64, causal"
    assert spoken("attention", fields) == said


def test_a_pareto_chart_shows_what_is_beaten():
    rows = [{"device": "a", "time_us": 1.0, "bytes_hbm": 9.0, "m": 1},
            {"device": "a", "time_us": 2.0, "bytes_hbm": 4.0, "m": 2}]  # fmt: skip
    beaten = [{"device": "b", "time_us": 50.0, "bytes_hbm": 90.0}]
    drawn = pareto_chart("gemm", ("time_us", "bytes_hbm"), rows, beaten, 3, ("device", "m"))
    (front,), (pale,) = lines(drawn, "dots-0"), lines(drawn, "pale-1")
    assert front.get_xydata().tolist() == [[1.0, 9.0], [2.0, 4.0]]
    assert pale.get_xydata().tolist() == [[50.0, 90.0]]
    assert pale.get_alpha() < 0.5
    assert drawn.caption[0].startswith("2 of 3 cases are beaten by none")


def runs(n=40):
    times = np.geomspace(1, 1e6, n)
    groups = np.where(np.arange(n) % 4 == 0, "gemm", "softmax")
    return pd.DataFrame({"measured_us": times, "predicted_us": times * 1.1, "op": groups})


def test_scatter_shows_every_row_with_its_group_error_and_band():
    figure = scatter_chart(runs(), "op")
    axes = figure.figure.axes[0]
    (dots,) = lines(figure, "dots-1")
    rows = runs()[runs()["op"] == "gemm"]
    assert dots.get_xdata() == pytest.approx(rows["measured_us"])
    assert dots.get_ydata() == pytest.approx(rows["predicted_us"])
    words = [item.get_text() for item in axes.get_legend().get_texts()]
    assert words == [
        "within ±20%",
        "softmax  (n = 30, median error 10%)",
        "gemm  (n = 10, median error 10%)",
    ]
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_aspect()) == ("log", "log", 1.0)
    band = next(item for item in axes.collections if item.get_gid() == "band")
    path = band.get_paths()[0].vertices
    right = path[path[:, 0] == path[:, 0].max()]
    assert {round(y / x, 6) for x, y in right} == {0.8, 1.2}


def test_scatter_puts_groups_without_a_colour_together():
    table = runs().assign(op=[f"op{i % 20}" for i in range(40)])
    words = [
        t.get_text() for t in scatter_chart(table, "op").figure.axes[0].get_legend().get_texts()
    ]
    assert len(words) == 9
    assert words[8].startswith("13 others  (n = 26,")


def test_scatter_numbers_the_rows_that_miss_most():
    table = runs()
    table.loc[7, "predicted_us"] *= 9
    drawn = scatter_chart(table, "op")
    assert [item.get_text() for item in texts(drawn)] == ["1"]
    assert "1: row 8, softmax, ×9.90" in drawn.caption[1]


def test_scatter_refuses_what_it_cannot_draw():
    with pytest.raises(TableError, match="no column 'colour' to colour by"):
        scatter_chart(runs(), "colour")
    with pytest.raises(TableError, match="nothing to draw"):
        scatter_chart(runs().assign(predicted_us=np.nan), "op")


def test_other_charts_are_the_same_bytes_every_time(tmp_path):
    first, again = (svg(scatter_chart(runs(), "op"), tmp_path / f"{n}.svg") for n in "ab")
    assert first == again


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
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


def test_no_picture_of_the_documents_has_tex():
    pictures = sorted((ROOT / "docs" / "images").glob("*.svg"))
    assert pictures
    assert [path.name for path in pictures if "$\\" in path.read_text(encoding="utf-8")] == []


def test_series_never_share_colour_and_shape():
    from perfmodel.render.page import Page, styled

    with styled(Page()) as palette:
        assert len({palette.look(i) for i in range(72)}) == 72
