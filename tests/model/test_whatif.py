"""What-ifs: laws of elasticities, the words people use for a change, table and chart."""

import json
import math
import re
import sys
from itertools import cycle

import numpy as np
import pytest
from cases import cases
from folders import TESTS
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.analysis.quantities import QUANTITIES, SPELLINGS, Setting, launching
from perfmodel.analysis.whatif import TOGETHER, elasticities, parse_change, parse_changes, whatif
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.units import UnitError

sys.path.insert(0, str(TESTS / "physics"))

import elasticities as physics
from tally import Tally

H100 = load("h100-sxm")
DEVICES = ("h100-sxm", "v100-sxm2", "b200")
PROBLEMS = {
    "prefill": Attention(4, 32, 8, 4096, 4096, 128, causal=True),
    "decode": Attention(64, 32, 8, 1, 8192, 128),
    "backward": Attention(2, 16, 16, 2048, 2048, 64, direction="bwd"),
    "square": Matmul(8192, 8192, 8192),
    "thin": Matmul(16, 8192, 8192),
    "softmax": Rowwise("softmax", 65536, 4096),
    "map": Rowwise("pointwise", 65536, 4096, variant="gelu"),
}
BETTER = ("hbm_bandwidth", "l2_bandwidth", "l2_capacity", "shared_bandwidth", "matrix", "vector",
          "special", "clock", "power")  # fmt: skip
RATES = ("hbm_bandwidth", "l2_bandwidth", "clock", "power")
_NONE = 1e-6


def fp16(problem):
    """The problem in a type that all devices have."""
    return type(problem)(**{**vars(problem), "dtype": "fp16"})


@pytest.mark.parametrize(("name", "slug"), [*zip(PROBLEMS, cycle(DEVICES), strict=False)])
def test_more_of_a_resource_never_slows(slug, name):
    device, problem = load(slug), fp16(PROBLEMS[name])
    found = whatif(problem, device)
    for item in found.sensitivities:
        if item.quantity.name in BETTER:
            assert item.elasticity[0] <= _NONE, item.quantity.label
            assert item.doubled.seconds[0] <= found.now.seconds[0] * (1 + 1e-9)
            assert item.halved.seconds[0] >= found.now.seconds[0] * (1 - 1e-9)
        elif item.quantity.name in ("latency", "launch"):
            assert item.elasticity[0] >= -_NONE
        # Nothing can be worth more than its own share of the whole time, but for whole waves.
        if item.quantity.name in (*BETTER, "latency", "launch"):
            assert abs(item.elasticity[0]) <= 1 + 0.02


@pytest.mark.parametrize("name", ["prefill", "decode", "square", "thin", "softmax", "map"])
@pytest.mark.parametrize("slug", ["h100-sxm", "a100-sxm4-80gb"])
def test_twice_as_fast_in_everything_takes_half_the_device_time(slug, name):
    # Work ÷ rate is homogeneous: with every rate doubled and every latency halved, all that is
    # left of the old time is launching.
    device, problem = load(slug), fp16(PROBLEMS[name])
    rates = dict.fromkeys(RATES, 2.0)
    fast = device.scaled(**rates, latency=0.5)
    none = launching(default(), 0.0)
    before = predict(problem, device, constants=none).seconds
    after = predict(problem, fast, constants=none).seconds
    assert after == pytest.approx(before / 2, rel=0.01)


@cases
def test_elasticities_of_all_rates_add_up_to_minus_one(name, power):
    # Near enough to full power that its fixed part does not show. Within 10 % of the power limit
    # the secants of a rate and of the power mix both sides. Secants over 10 % of a time that bends
    # from one resource to the next add up to a little more than slopes.
    found = elasticities(fp16(PROBLEMS[name]), H100.scaled(power=power))
    total = sum(found[rate][0] for rate in RATES) - found["latency"][0] - found["launch"][0]
    assert total == pytest.approx(-1, abs=0.1)


def test_a_rate_is_worth_nothing_to_all_of_the_time_and_units_that_step_say_so():
    tally = Tally()
    for index in range(6):
        tally.add(physics.elasticities(11, index, n=6))
    assert tally.violations == 0, "\n".join(tally.lines())
    assert tally.checked.total() > 150
    # Rates scale what is there; whole blocks step.
    rates = [physics.law(dimension) for dimension in physics.PHYSICAL]
    assert tally.fallen[physics.STEP, physics.law("count")]
    steps = sum(tally.fallen[physics.STEP, name] for name in rates)
    assert steps <= 0.002 * sum(tally.checked[name] for name in rates)


@cases
def test_whole_blocks_are_a_step_and_no_slope(slug, sizes, step):
    found = whatif(Matmul(*sizes), load(slug))
    units = next(item for item in found.sensitivities if item.quantity.name == "units")
    assert units.step == (step,)
    assert np.isnan(units.elasticity[0])
    row = next(row for row in found.rows() if row["quantity"] == "units")
    assert (row["step"], row["elasticity"]) == (step, None)


@pytest.mark.parametrize("slug", ["gaudi2", "gaudi3", "tpu-v4", "tpu-v5e", "tpu-v6e", "wse-2"])
def test_faster_units_are_no_more_units(slug):
    device = load(slug)
    faster = device.scaled(matrix=2).scaled(matrix=1.3)
    assert machine(faster).units == machine(device).units
    assert machine(device.scaled(units=2)).units == 2 * machine(device).units


def test_more_matrix_rate_is_never_slower_on_a_systolic_device():
    problem = Attention(1, 66, 11, 1, 19218, 64, kv_dtype="fp8")
    device = load("tpu-v6e")
    assert predict(problem, device.scaled(matrix=2)).seconds <= predict(problem, device).seconds


def test_what_is_far_from_the_limiter_does_not_matter():
    stream = elasticities(Rowwise("pointwise", 2**18, 4096), H100)
    assert stream["hbm_bandwidth"][0] < -0.7
    assert abs(stream["matrix"][0]) < 0.01
    product = elasticities(PROBLEMS["square"], H100)
    assert product["hbm_bandwidth"][0] > -0.15
    assert abs(product["special"][0]) < 0.01
    assert product["matrix"][0] + product["power"][0] < -0.3
    tiny = elasticities(Rowwise("softmax", 8, 64), H100)
    assert tiny["launch"][0] > 0.2


def test_arrays_of_cases_are_the_single_cases():
    batch = np.array([1, 8, 64])
    many = whatif(Attention(batch, 32, 8, 1, 4096, 128), H100, parse_changes(["HBM x2", "fp8"]))
    for i, size in enumerate(batch):
        one = whatif(
            Attention(int(size), 32, 8, 1, 4096, 128), H100, parse_changes(["HBM x2", "fp8"])
        )
        assert [row for row in many.rows() if row["problem"]["batch"] == size] == one.rows()
        assert many.now.seconds[i] == one.now.seconds[0]


WIDER = "HBM x2 (HBM bandwidth)"


def test_a_change_is_a_prediction_on_the_changed_device():
    problem = PROBLEMS["thin"]
    found = whatif(problem, H100, parse_changes(["HBM x2", "SM 160", "fp8"]))
    after = {effect.change: effect.after.seconds[0] for effect in found.effects}
    wider = H100.scaled(hbm_bandwidth=2)
    larger = wider.scaled(units=160 / 132)
    fp8 = Matmul(16, 8192, 8192, dtype="fp8")
    assert after[WIDER] == predict(problem, wider).seconds
    assert after["SM 160"] == predict(problem, H100.scaled(units=160 / 132)).seconds
    assert after["fp8"] == predict(fp8, H100).seconds
    assert after[TOGETHER] == predict(fp8, larger).seconds
    rows = {row["what_if"]: row for row in found.rows()}
    assert rows[WIDER]["speedup"] == pytest.approx(found.now.seconds[0] / after[WIDER])


def test_what_fits_no_more_is_an_answer():
    found = whatif(PROBLEMS["prefill"], H100, parse_changes(["SRAM /20"]))
    assert math.isinf(found.effects[0].after.seconds[0])
    row = found.rows()[-1]
    assert (row["after_us"], row["speedup"]) == (None, None)
    assert row["limiter_after"] == "does not fit"


@cases
def test_relative_changes(text, name, factor):
    change = parse_change(text)
    assert change.quantity is QUANTITIES[name]
    assert change.factor == pytest.approx(factor)


@cases
def test_absolute_changes_arrive_at_their_value(text, name, value):
    change = parse_change(text)
    assert change.quantity is QUANTITIES[name]
    assert change.value == pytest.approx(value)
    setting = Setting(PROBLEMS["square"], H100, default())
    assert QUANTITIES[name].read(change.applied(setting)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("dtype", ["fp8", "FP16", "w4a16", "nvfp4"])
def test_a_type_is_a_change(dtype):
    assert parse_change(dtype).dtype == dtype.lower()


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("HMB x2", UnknownName, "did you mean hbm"), ("fp9", UnknownName, "fp8"),
        ("warp size x2", UnknownName, "sram size"), ("x2", UnknownName, "hardware number"),
        ("", UnknownName, "hardware number"), ("HBM", ProblemError, "by how much"),
        ("HBM twice", ProblemError, "by how much"), ("HBM +2 TB/s", ProblemError, "by how much"),
        ("HBM x0", ProblemError, "leaves nothing"), ("HBM -100%", ProblemError, "leaves nothing"),
        ("HBM -120%", ProblemError, "leaves nothing"), ("HBM /0", ProblemError, "leaves nothing"),
        ("HBM x1e30", ProblemError, "by a factor of 1e+30; it may be 0.001 to 1000"),
        ("HBM x0.0001", ProblemError, "it may be 0.001 to 1000"),
        ("SM 1.5", ProblemError, "whole number"), ("SM 0", ProblemError, "leaves nothing"),
        ("clock 2", UnitError, "no unit"), ("clock 2 TB/s", UnitError, "unit of a bandwidth"),
        ("HBM 5 TiB/s", UnitError, "binary prefix"), ("HBM x1e999", ProblemError, "nothing"),
    ],
)  # fmt: skip
def test_what_is_no_change_is_one_line(text, kind, words):
    with pytest.raises(kind) as caught:
        parse_change(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="HBMSRAhbmsra fp8x*/+-=%.0123e\n×TGiB/s", max_size=24))
def test_any_text_is_a_change_or_one_error(text):
    try:
        change = parse_change(text)
    except PerfmodelError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert change.dtype or change.quantity in SPELLINGS.values()


def test_contradictions_are_refused():
    with pytest.raises(ProblemError, match="both change HBM bandwidth"):
        parse_changes(["HBM x2", "L2 x2", "dram 4 TB/s"])
    with pytest.raises(ProblemError, match="both change the type"):
        parse_changes(["fp8", "int8"])
    assert len(parse_changes(["L2 x2", "L2 capacity x2", "clock x2", "fp8"])) == 4


def test_what_a_device_lacks_is_refused_or_named():
    problem = fp16(PROBLEMS["square"])
    with pytest.raises(ProblemError, match="spec of a10 has no L2 bandwidth"):
        whatif(problem, load("a10"), parse_changes(["L2 x2"]))
    with pytest.raises(ProblemError, match="no fp8 matrix rate"):
        whatif(problem, load("a10"), parse_changes(["fp8"]))
    assert set(whatif(problem, load("a10")).missing) == {"L2 bandwidth", "memory latency"}


def test_latencies_scale_in_their_own_unit():
    slow = H100.scaled(latency=2)
    assert slow.latency_seconds("hbm") == pytest.approx(2 * H100.latency_seconds("hbm"))
    assert slow.latency.hbm.value.endswith("cycles")
    b300 = load("b300")
    assert b300.scaled(latency=3).latency_seconds("l2") == pytest.approx(
        3 * b300.latency_seconds("l2")
    )
    assert H100.scaled(power=2).tdp_watts == 1400


def test_the_command_gives_table_json_and_chart(cli, tmp_path):
    chart = tmp_path / "tornado.svg"
    given = ["gemm", "-d", "h100-sxm", "-m", "16,4k", "-c", "HBM x2", "-c", "fp8"]
    code, out, err = cli("whatif", *given, "--chart", chart)
    assert (code, err) == (0, f"wrote {chart}\n")
    assert re.search(r"16 +HBM3 bandwidth x2 +3\.35 TB/s +-0\.\d\d", out)
    assert re.search(r"16 +all together", out)
    text = chart.read_text()
    for said in ("HBM3 bandwidth  (3.35 TB/s)", "2 cases together", "elasticity", "fp8", "halved"):
        assert said in text
    code, out, _ = cli("whatif", *given, "--format", "json")
    rows = json.loads(out)["whatif"]
    assert len(rows) == 2 * (len([q for q in QUANTITIES.values() if not q.of_level]) + 3)
    assert {row["problem"]["m"] for row in rows} == {16, 4096}


def test_the_tornado_is_sorted_and_shows_the_times():
    from perfmodel.render.tornado import tornado_chart

    found = whatif(PROBLEMS["thin"], H100, parse_changes(["HBM x2"]))
    chart = tornado_chart([found])
    (axes,) = chart.figure.axes
    swings = {}
    for row in chart.rows:
        share = row.get("halved", row.get("doubled"))
        if share is not None:
            swings[row["what"]] = swings.get(row["what"], 0) + abs(share)
    assert list(swings.values()) == sorted(swings.values(), reverse=True)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [*swings, "HBM x2 (HBM bandwidth)"]
    item = next(s for s in found.sensitivities if s.quantity.name == "hbm_bandwidth")
    change = item.doubled.seconds[0] / found.now.seconds[0] - 1
    (name,) = (name for name in swings if name.startswith("HBM3 bandwidth"))
    rows = {(row["what"], side): row[side] for row in chart.rows for side in row}
    assert rows[name, "doubled"] == pytest.approx(change)
    assert rows["HBM x2 (HBM bandwidth)", "change"] == pytest.approx(change)
    ends = {round(bar.get_x() + bar.get_width(), 9) for bar in axes.patches}
    assert round(change, 9) in ends
    with pytest.raises(ProblemError, match="one device"):
        tornado_chart([found, whatif(PROBLEMS["thin"], load("b200"))])
