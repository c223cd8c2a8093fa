"""The memory wall: published growth, fits of the 59 points, chart and command."""

import json

import pytest

import perfmodel.cli
from perfmodel.analysis.trend import (
    LABELS,
    PUBLISHED,
    device_points,
    fit,
    fits,
    growth,
    points,
    series,
)
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, specs
from perfmodel.render.trend import NAMED, trend_chart


def test_the_published_rates_over_twenty_years():
    # Gholami et al. 2024, figure 1: 60000x, 100x and 30x in 20 years are 3.0, 1.6 and 1.4 in two.
    exact = (3.0**10, 1.6**10, 1.4**10)
    found = [growth(PUBLISHED[name], 20) for name in ("flops", "dram", "interconnect")]
    assert found == pytest.approx([59049.0, 109.951, 28.9255], rel=1e-5)
    assert found == pytest.approx(exact)
    assert found == pytest.approx([60000, 100, 30], rel=0.11)


def test_the_fits_are_the_published_growth():
    found = fits()
    rates = {name: found[name].per_two_years for name in LABELS}
    assert rates == pytest.approx({"flops": 3.02, "dram": 1.59, "interconnect": 1.41}, abs=0.005)
    assert {name: round(rate, 1) for name, rate in rates.items()} == PUBLISHED
    twenty = [growth(rates[name], 20) for name in LABELS]
    assert twenty == pytest.approx([63900, 104, 32.1], rel=0.01)


def test_there_are_59_points():
    assert {name: len(series(name)) for name in LABELS} == {
        "flops": 37,
        "dram": 12,
        "interconnect": 10,
    }
    assert len(points()) == 59
    h100 = next(point for point in points() if point.name.startswith("H100"))
    assert h100.value == 989.5e12
    assert {point.identity for point in points()} == {"labelled", "unlabelled", "inferred", "guess"}


def test_a_fit_goes_through_what_grows_evenly():
    from perfmodel.analysis.trend import Point

    even = [Point("dram", "", 2000 + 2 * i, 5.0 * 1.7**i, "") for i in range(6)]
    found = fit(even)
    assert found.per_two_years == pytest.approx(1.7)
    assert found.at(2006) == pytest.approx(5 * 1.7**3)
    with pytest.raises(ProblemError, match="two years"):
        fit(even[:1])
    with pytest.raises(UnknownName, match="dram"):
        series("drum")


def test_devices_stand_by_their_year_and_dense_peak():
    found = {(p.series, p.name): p for p in device_points([load("h100-sxm"), load("p4")])}
    assert found["flops", "h100-sxm"].value == 989.4e12
    assert found["dram", "h100-sxm"].value == load("h100-sxm").hbm_bytes_per_s
    assert found["flops", "h100-sxm"].year == 2022
    # The P4's fp16 runs at a 64th of its fp32, so fp32 is what it had to offer.
    assert found["flops", "p4"].value == load("p4").vector_flops("fp32")


def test_sram_machines_and_cpus_are_no_memory_trend():
    names = {p.name for p in device_points(specs()) if p.series == "dram"}
    assert not {"wse-2", "groq-lpu", "xeon-gold-6242"} & names
    assert {"h100-sxm", "b200", "mi300x", "tpu-v5p"} <= names


def test_the_chart_shows_points_fits_and_devices():
    devices = device_points(specs())
    chart = trend_chart(devices)
    axes = chart.figure.axes[0]
    drawn = {line.get_gid(): line for line in axes.get_lines() if line.get_gid()}
    for i, name in enumerate(LABELS):
        mine = series(name)
        assert len(drawn[f"dots-{i}"].get_xdata()) == len(mine)
        assert drawn[f"dots-{i}"].get_ydata()[0] == pytest.approx(1)
        start, end = drawn[f"line-{i}"].get_xydata()
        slope = (end[1] / start[1]) ** (2 / (end[0] - start[0]))
        assert slope == pytest.approx(fits()[name].per_two_years)
    assert len(drawn["pale-1"].get_xdata()) == sum(p.series == "dram" for p in devices)
    written = [text.get_text() for text in axes.texts]
    named = [name for table in NAMED.values() for name in table.values()]
    assert sorted(written) == sorted([*named, "wse-2"])
    legend = [text.get_text() for text in chart.figure.legends[0].get_texts()]
    assert legend[0] == "peak operations: 3.0× per 2 years"
    assert len(trend_chart().figure.axes[0].texts) == 0


def test_the_command_writes_table_and_chart(capsys, tmp_path):
    chart = tmp_path / "trend.svg"
    assert perfmodel.cli.run(["trend", "--output", str(chart)]) == 0
    out, err = capsys.readouterr()
    assert err == f"wrote {chart}\n"
    assert "63,902x" in out
    assert "memory bandwidth: 1.6× per 2 years" in chart.read_text()
    assert perfmodel.cli.run(["trend", "--format", "json", "-d", "a100", "-d", "b200"]) == 0
    rows = json.loads(capsys.readouterr().out)["trend"]
    assert [row["n"] for row in rows] == [37, 12, 10, 2, 2]
    again = tmp_path / "again.svg"
    assert perfmodel.cli.run(["trend", "--output", str(again)]) == 0
    assert again.read_bytes() == chart.read_bytes()
