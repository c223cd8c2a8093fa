"""Predictions as values: arrays and single cases alike, whatever the chunks; the JSON form."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from itertools import cycle

import numpy as np
import pytest
from cases import cases

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.algorithms.problem import describe, length, pick
from perfmodel.algorithms.rowwise import OPS
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import load
from perfmodel.operators import operator_of
from perfmodel.predict import predict, predict_arrays
from perfmodel.prediction import Predictions

H100 = load("h100-sxm")
T4 = load("t4")
N = 37
DRAW = np.random.default_rng(11)


def sizes(low: int, high: int) -> np.ndarray:
    return np.exp(DRAW.uniform(np.log(low), np.log(high + 1), N)).astype(np.int64).clip(low, high)


GROUPS = sizes(1, 8)
HEADS = {"batch": sizes(1, 64), "heads_q": GROUPS * sizes(1, 8), "heads_kv": GROUPS}
QUERIES = sizes(1, 4096)  # ones among them: decode and prefill in one call
KEYS = QUERIES + sizes(1, 4096)
HEAD_DIMS = np.array([64, 128, 80, 256, 192])[np.arange(N) % 5]
CASES: dict[str, tuple[Problem, str]] = {
    "matmul": (Matmul(sizes(1, 9000), sizes(1, 9000), sizes(1, 9000)), "auto"),
    "some batched": (Matmul(sizes(1, 900), sizes(1, 900), 64, sizes(1, 3), "fp32"), "auto"),
    "weight-only": (Matmul(sizes(1, 900), sizes(1, 9000), sizes(1, 900), dtype="w4a16"), "auto"),
    "no split": (Matmul(sizes(1, 900), sizes(1, 900), sizes(1, 9000)), "tiled"),
    "attention": (Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=HEAD_DIMS), "auto"),
    "causal": (
        Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=128, causal=True), "auto",
    ),
    "window": (
        Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=64, causal=True, window=300),
        "auto",
    ),
    "flash 1": (Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=64), "tiled-1"),
    "standard": (Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=64), "standard"),
    "split": (Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=64), "split-kv"),
    "both": (
        Attention(**HEADS, seq_q=QUERIES, seq_kv=KEYS, head_dim=64, direction="fwdbwd"), "auto",
    ),
    "softmax": (Rowwise("softmax", sizes(1, 9000), sizes(1, 60000)), "auto"),
    "pointwise": (Rowwise("pointwise", sizes(1, 9000), sizes(1, 900), inputs=sizes(1, 4)), "auto"),
}  # fmt: skip


EXTENTS: dict[type, dict[str, list[int]]] = {
    Matmul: {"m": [1, 7, 300], "n": [1, 30, 4000], "k": [8, 129, 9000], "batch": [1, 2, 98]},
    Attention: {"batch": [1, 3, 50], "heads_q": [4, 8, 32], "heads_kv": [1, 2, 4],
                "seq_q": [1, 3, 200], "seq_kv": [300, 700, 5000], "head_dim": [32, 64, 128]},
    Rowwise: {"rows": [1, 9, 5000], "cols": [1, 77, 9000]},
}  # fmt: skip
SINGLES = [
    *(Matmul(128, 128, 128, dtype=dtype) for dtype in FORMATS),
    *(Attention(2, 8, 4, 256, 512, 64, causal=True, dtype=dtype, direction=direction)
      for dtype in ("bf16", "fp32", "fp8") for direction in ("fwd", "bwd", "fwdbwd")),
    *(Rowwise(op, 64, 512) for op in OPS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "slug"), [*zip(SINGLES, cycle(("h100-sxm", "v100-sxm2", "mi300x")), strict=False)]
)
def test_any_one_size_may_be_an_array(problem, slug):
    device = load(slug)
    for name, extents in EXTENTS[type(problem)].items():
        if problem.dtype != "bf16" and name in ("heads_q", "heads_kv", "head_dim"):
            continue
        try:
            found = predict_arrays(replace(problem, **{name: np.array(extents)}), device)
        except PerfmodelError as error:  # a type that the device lacks
            assert "has no" in str(error)  # noqa: PT017
            return
        single = [predict(replace(problem, **{name: extent}), device) for extent in extents]
        assert found.seconds == pytest.approx([one.seconds for one in single], rel=1e-6)


def plain(problem: Problem, i: int) -> Problem:
    """The i-th problem as plain ints."""
    one = pick(problem, np.array([i]))
    values = {item.name: getattr(one, item.name) for item in fields(one)}
    return replace(one, **{k: v.item() for k, v in values.items() if isinstance(v, np.ndarray)})


@pytest.mark.parametrize(("case", "device"), [
    pytest.param(case, device, id=f"{case}-{device.slug}")
    for case, (_, schedule) in CASES.items()
    for device in (H100, T4)
    if not (schedule == "tiled-1" and device is T4)  # its tiles do not fit there
])  # fmt: skip
def test_a_row_of_an_array_is_the_single_case(case, device):
    problem, schedule = CASES[case]
    many = predict_arrays(problem, device, schedule=schedule)
    assert len(many) == N
    for i in range(0, N, 5):
        found = many.one(i)
        alone = predict(plain(problem, i), device, schedule=schedule)
        one = predict(pick(problem, np.array([i])), device, schedule=schedule)
        # Arrays are counted in float64 and plain ints exactly; a row of one is the same code.
        assert found.seconds == pytest.approx(alone.seconds, rel=1e-12)
        assert found.terms == pytest.approx(alone.terms, rel=1e-9, abs=1e-18)
        assert found.bytes == pytest.approx(alone.bytes, rel=1e-12)
        assert (found.limiter, found.tile) == (alone.limiter, alone.tile)
        assert found.seconds == one.seconds
        assert found.problem == alone.problem


def arrays_of(found: Predictions) -> dict[str, np.ndarray]:
    tables = {"terms": found.terms, "bytes": found.bytes, "flops": found.flops, "tile": found.tile}
    flat = {f"{k}.{name}": v for k, table in tables.items() for name, v in table.items()}
    whole = ("seconds", "low_seconds", "high_seconds", "waves", "occupancy", "footprint_bytes")
    return flat | {name: getattr(found, name) for name in (*whole, "limiter")}


def equal(left: np.ndarray, right: np.ndarray) -> bool:
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


@pytest.mark.parametrize("case", CASES)
def test_neither_chunks_nor_order_change_a_bit(case, monkeypatch):
    problem, schedule = CASES[case]
    whole = arrays_of(predict_arrays(problem, H100, schedule=schedule))
    for chunk in (1, 20):
        monkeypatch.setattr(type(operator_of(problem)), "chunk", chunk)
        cut = arrays_of(predict_arrays(problem, H100, schedule=schedule))
        assert all(equal(whole[name], cut[name]) for name in whole), chunk
    monkeypatch.undo()
    order = np.random.default_rng(5).permutation(N)
    mixed = arrays_of(predict_arrays(pick(problem, order), H100, schedule=schedule))
    assert all(equal(whole[name][order], mixed[name]) for name in whole)


@pytest.mark.parametrize("case", CASES)
def test_equal_problems_are_computed_once(case, monkeypatch):
    problem, schedule = CASES[case]
    operator, timed = type(operator_of(problem)), []

    def time(self, part, *rest):
        timed.append(length(part))
        return original(self, part, *rest)

    original = operator.time
    monkeypatch.setattr(operator, "time", time)
    whole = arrays_of(predict_arrays(problem, H100, schedule=schedule))
    assert sum(timed) <= N
    timed.clear()
    again = DRAW.integers(0, N, 3 * N)
    many = predict_arrays(pick(problem, again), H100, schedule=schedule)
    assert sum(timed) <= len(set(again.tolist()))
    assert all(equal(values[again], arrays_of(many)[name]) for name, values in whole.items())
    assert many.one(7).problem == describe(problem, again[7])


def test_kinds_side_by_side_keep_their_own_labels():
    problem = Attention(1, 8, 8, np.array([1, 512, 1]), 4096, np.array([64, 64, 128]))
    found = predict_arrays(problem, H100)
    schedules = [found.one(i).schedule for i in range(3)]
    assert schedules == ["split-kv", "tiled-3", "split-kv"]
    assert set(found.schedule.split(" / ")) == set(schedules)
    assert ["splits" in found.one(i).tile for i in range(3)] == [True, False, True]
    a100 = load("a100-sxm4-80gb")
    batched = predict_arrays(Matmul(64, 64, 64, np.array([1, 2]), "fp32"), a100)
    assert [batched.one(i).implementation for i in (0, 1)] == [
        "cublas-fp32-ampere",
        "cublas-fp32-batched",
    ]


def test_the_machine_of_the_last_device_is_not_taken_for_another():
    problem = Matmul(512, 512, 512)
    first = predict(problem, H100).seconds
    slow = predict(problem, H100.scaled(hbm_bandwidth=0.1, matrix=0.1)).seconds
    assert slow > first
    assert predict(problem, H100).seconds == first


def test_the_json_form_has_units_in_its_names_and_adds_up():
    made = predict(Attention(2, 8, 2, 1024, 1024, 128, causal=True), H100)
    found = json.loads(json.dumps(made.as_dict()))
    assert {
        "device", "algorithm", "schedule", "problem", "time_us", "low_us", "high_us", "limiter",
        "terms_us", "flops", "bytes", "arithmetic_intensity", "footprint_bytes", "tile", "waves",
        "assumptions",
    } <= found.keys()  # fmt: skip
    assert {"hbm", "l2", "shared", "matrix", "vector", "special", "latency", "launch"} <= set(
        found["terms_us"]
    )
    assert found["time_us"] == pytest.approx(made.seconds * 1e6)
    assert found["low_us"] < found["time_us"] < found["high_us"]
    for level in ("hbm", "l2", "shared"):
        expected = found["useful_flops"] / found["bytes"][level]
        assert found["arithmetic_intensity"][level] == pytest.approx(expected)
    # Causal, 4·b·h·N²·d/2 = 4 · 2 · 8 · 1024² · 128 / 2 = 4.29 GFLOP by the papers' convention.
    assert found["useful_flops"] == 4 * 2 * 8 * 1024**2 * 128 / 2
    # Q and O: 2 · 8 · 1024 · 128 · 2 B · 2 = 8 MiB; K and V a quarter of it; the statistic 64 KiB.
    assert found["bytes"]["hbm"] >= (8 + 2) * 2**20
    assert found["footprint_bytes"] == (8 + 2) * 2**20 + 2 * 8 * 1024 * 4


def test_a_vector_kernel_has_an_intensity_too():
    made = predict(Rowwise("softmax", 1024, 1024), H100)
    assert made.flops["matrix"] == 0
    assert made.intensity["hbm"] > 0
    assert made.flops_per_second > 0
    assert made.intensity["shared"] == float("inf")


@cases
def test_wrong_circumstances_are_one_line(options, said):
    with pytest.raises(ProblemError, match=said) as caught:
        predict(Attention(1, 1, 1, 64, 64, 64), H100, **options)
    assert "\n" not in str(caught.value)


def test_a_type_without_a_rate_names_those_there_are():
    with pytest.raises(PerfmodelError, match="t4 has no fp8 matrix rate; it has: fp16"):
        predict(Matmul(64, 64, 64, dtype="fp8"), T4)


def test_a_tile_that_cannot_fit_says_so():
    with pytest.raises(ProblemError, match=r"no tile of .* fits on t4: a block may hold 64 KiB"):
        predict(Attention(1, 1, 1, 64, 64, 1024, dtype="fp32"), T4)


def test_harnesses_differ_in_launch_and_not_in_the_device():
    problem = Matmul(4096, 4096, 4096)
    by = {h: predict(problem, H100, harness=h) for h in ("kernel", "cuda_events_eager", "profiler")}
    assert by["profiler"].terms["matrix"] == by["kernel"].terms["matrix"]
    assert by["cuda_events_eager"].terms["launch"] > by["kernel"].terms["launch"]
    # Eager timing overlaps the host's work with the device's: a tiny kernel shows the floor alone.
    tiny = [predict(Matmul(m, 16, 16), H100, harness="cuda_events_eager").seconds for m in (16, 32)]
    assert tiny[0] == tiny[1]
