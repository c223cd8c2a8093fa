"""Starts and calls read off a table: planted ones are found, and what rows do not show stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from perfmodel.fitting.starts import called, measured_runs
from perfmodel.table.records import tidy
from perfmodel.timing import runs
from perfmodel.timing.constants import default
from perfmodel.validation.compare import predict_table

CONSTANTS = default()
SOFTMAX, LAYERNORM, SCALAR = 7e-6, 11e-6, 4e-6


def cases(harness: str, scale: int = 1, **kind: object) -> pd.DataFrame:
    """Runs of three operators on two devices, from tiny to large, none of them measured."""
    sizes = np.unique(np.geomspace(8, 2**15, 60).astype(int)) * scale
    each = [{"op": "softmax"}, {"op": "layernorm"}, {"op": "pointwise", "variant": "relu"}]
    rows = [
        {"device": device, "rows": int(n), "cols": 1024, **one}
        for device in ("a100-sxm4-80gb", "t4") for one in each for n in sizes
    ]  # fmt: skip
    common = {"source": "made", "harness": harness, "dtype": "fp32", "direction": "fwd"}
    table = pd.DataFrame(rows).assign(**common, implementation="torch", measured_us=1.0, flag="")
    return tidy(table.assign(**kind))


def planted(harness: str, calls: dict[str, float] | None = None) -> dict[str, runs.Run]:
    """Runs under which that harness takes what is planted."""
    starts = {"any": 1e-6, "softmax": SOFTMAX, "layernorm": LAYERNORM, "scalar": SCALAR}
    found = replace(CONSTANTS.run(harness), starts=starts, calls=calls or {})
    return {**CONSTANTS.runs, harness: found}


def timed(table: pd.DataFrame, how: dict[str, runs.Run]) -> pd.DataFrame:
    found = predict_table(table, constants=CONSTANTS.with_runs(how))
    return table.assign(measured_us=found["predicted_us"])


def test_the_model_says_what_a_row_is_called_as():
    table = cases("profiler").groupby(["op", "device"]).head(1)
    found = dict(zip(table["op"], called(table, CONSTANTS), strict=True))
    assert found == {"softmax": "softmax", "layernorm": "layernorm", "pointwise": "scalar"}
    both = table.assign(direction="fwdbwd")
    assert set(called(both[both["op"] == "softmax"], CONSTANTS)) == {""}


def test_planted_starts_are_found_and_stand_for_others():
    harness = "profiler"
    found = measured_runs(timed(cases(harness), planted(harness)), CONSTANTS)
    starts = found[harness].starts
    for name, start in (("softmax", SOFTMAX), ("layernorm", LAYERNORM), ("scalar", SCALAR)):
        assert starts[name] == pytest.approx(start, rel=0.02), name
        assert "smallest problems" in found[harness].sources[f"starts.{name}"]
    # One of three stands for all others; one of one for its own kind.
    assert starts["any"] == starts["rowwise"] == starts["softmax"]
    assert starts["pointwise"] == starts["scalar"]
    assert starts["gemm"] == CONSTANTS.run(harness).starts["gemm"]
    assert {name: run for name, run in found.items() if name != harness} == {
        name: run for name, run in CONSTANTS.runs.items() if name != harness
    }


def test_where_the_host_works_beside_the_kernel_the_call_and_its_start_are_told_apart():
    harness = "cuda_events_eager"
    calls = {"any": 5e-5, "softmax": 5e-5, "layernorm": 8e-5, "scalar": 3e-5}
    found = measured_runs(timed(cases(harness), planted(harness, calls)), CONSTANTS)[harness]
    for name, start in (("softmax", SOFTMAX), ("layernorm", LAYERNORM), ("scalar", SCALAR)):
        assert found.calls[name] == pytest.approx(calls[name], rel=0.01), name
        assert found.starts[name] == pytest.approx(start, rel=0.5), name
        assert found.starts[name] < found.calls[name]


def test_rows_that_are_mostly_device_time_say_nothing():
    table = timed(cases("profiler", scale=4096), planted("profiler"))
    assert measured_runs(table, CONSTANTS) == dict(CONSTANTS.runs)
    few = timed(cases("profiler"), planted("profiler")).groupby(["op", "device"]).head(15)
    assert measured_runs(few, CONSTANTS) == dict(CONSTANTS.runs)


def test_flagged_rows_are_left_out_but_for_those_that_are_mostly_launch():
    table = timed(cases("profiler"), planted("profiler"))
    assert measured_runs(table.assign(flag="noisy"), CONSTANTS) == dict(CONSTANTS.runs)
    flagged = table.assign(flag="timer_floor")
    assert measured_runs(flagged, CONSTANTS) == measured_runs(table, CONSTANTS)


def test_a_start_of_the_library_is_not_taken_for_one_of_the_harness():
    rows = [
        {"op": "gemm", "m": m, "n": 64, "k": 64, "batch": 1, "dtype": "w8a16", "device": device}
        for device in ("a100-sxm4-80gb", "a100-sxm4-40gb")
        for m in range(1, 65)
    ]
    common = {"source": "made", "harness": "cuda_graph"}
    table = tidy(pd.DataFrame(rows).assign(**common, measured_us=50.0, flag="", direction="fwd"))
    library = table.assign(implementation="trtllm-1.0.0:weight_only_L257/PLUGIN_V2_")
    assert measured_runs(library, CONSTANTS) == dict(CONSTANTS.runs)
    plain = table.assign(implementation="marlin")
    assert measured_runs(plain, CONSTANTS)["cuda_graph"].starts["gemm"] > 3e-5


def test_runs_of_one_device_alone_say_nothing():
    harness = "profiler"
    table = timed(cases(harness), planted(harness))
    alone = table[table["device"] == "t4"]
    assert measured_runs(alone, CONSTANTS) == dict(CONSTANTS.runs)
    assert measured_runs(table, CONSTANTS) != dict(CONSTANTS.runs)
