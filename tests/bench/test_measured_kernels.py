"""The bundled kernels timed and counted on an H200 (kernels/measured/h200), and what is predicted.

No constant and no fact was fitted to these runs. The limits are rounded up from what is reached.
"""

import numpy as np
import pandas as pd
import pytest
from cases import cases
from folders import ROOT

from perfmodel.validation.compare import predict_table

MEASURED = ROOT / "kernels" / "measured" / "h200"


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return predict_table(pd.read_csv(MEASURED / "runs.csv"))


@pytest.fixture(scope="module")
def counted() -> pd.DataFrame:
    return predict_table(pd.read_csv(MEASURED / "counters.csv"))


def of_kernel(table: pd.DataFrame, kernel: str) -> pd.DataFrame:
    return table[table.implementation.str.fullmatch(rf"triton-[\d.]+:{kernel}")]


def test_every_run_is_predicted_and_no_bundled_kernel_is_taken_for_another(runs):
    assert runs.predicted_us.gt(0).all()
    bundled = runs[runs.implementation.str.startswith("triton-")]
    assert len(bundled) > 200
    assert not bundled.known_implementation.eq("assumed").any()


@cases
def test_times_of_bundled_kernels_are_predicted(runs, kernel, median):
    rows = of_kernel(runs, kernel)
    assert np.log(rows.predicted_us / rows.measured_us).abs().median() < median


@cases
def test_bytes_that_counters_saw_are_predicted(counted, kernel, level, near):
    rows = of_kernel(counted, kernel)
    errors = np.log(rows[f"predicted_{level}_bytes"] / rows[f"{level}_bytes_measured"])
    assert len(rows)
    assert errors.abs().max() < near


def test_blocks_of_hopper_share_reads_of_the_l2(counted):
    """Counters saw about half of the bytes that tiles of 128 x 256 load, without clusters."""
    (row,) = of_kernel(counted, "matmul").query("m == 8192").to_dict("records")
    loaded = 2 * row["m"] * row["n"] * row["k"] * (1 / 128 + 1 / 256)
    assert row["l2_bytes_measured"] < 0.6 * loaded
