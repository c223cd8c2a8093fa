"""Explanations of residuals: planted errors are found and named, and no others."""

import numpy as np
import pandas as pd
import pytest

from perfmodel.table.records import tidy
from perfmodel.validation.compare import predict_table
from perfmodel.validation.diagnosis import explain


def runs(device="a100-sxm4-80gb", implementation="torch", harness="cuda_graph", sizes=range(8, 14)):
    """Matmuls whose measured time is the prediction itself, from microseconds to milliseconds."""
    rows = [
        {
            "source": "planted",
            "device": device,
            "op": "gemm",
            "implementation": implementation,
            "harness": harness,
            "dtype": "bf16",
            "direction": "fwd",
            "m": 2**size + 16 * i,
            "n": 2**size,
            "k": 1024,
            "measured_us": 1.0,
        }
        for size in sizes
        for i in range(4)
    ]
    table = predict_table(tidy(pd.DataFrame(rows)))
    return table.assign(measured_us=table["predicted_us"])


def texts(table):
    return [statement.text for statement in explain(table)]


def test_perfect_predictions_need_no_words():
    assert texts(runs()) == []


def test_small_cases_that_measure_faster_point_at_the_floor():
    table = runs()
    small = table["measured_us"] < 20
    assert small.sum() >= 8
    table.loc[small, "measured_us"] /= 1.5
    (said,) = [item for item in explain(table) if "floor" in item.text]
    assert "too slow below 20" in said.text
    assert "cuda_graph" in said.text
    assert said.factor == pytest.approx(1.5, rel=1e-6)
    assert set(said.rows) == set(np.flatnonzero(small))


def test_long_cases_alone_too_fast_point_at_the_power_limit():
    table = runs(sizes=range(11, 16))
    long = table["measured_us"] > 1000
    assert long.sum() >= 8
    assert (~long).sum() >= 8
    table.loc[long, "measured_us"] *= 1.4
    assert any("above 1 ms only" in text for text in texts(table))


def test_a_constant_factor_points_at_the_path_and_a_scatter_does_not():
    table = runs(sizes=range(10, 14))
    constant = table.assign(measured_us=table["measured_us"] * 2)
    assert any("constant factor" in text for text in texts(constant))
    noise = np.exp(np.random.default_rng(0).normal(0, 0.8, len(table)))
    scattered = table.assign(measured_us=table["measured_us"] * 2 * noise)
    assert not any("constant factor" in text for text in texts(scattered))


def test_one_device_off_where_others_are_right_points_at_its_spec():
    good = [runs(device=name, sizes=range(11, 14)) for name in ("a100-sxm4-80gb", "h100-sxm")]
    odd = runs(device="l40s", sizes=range(11, 14))
    odd["measured_us"] *= 1.5
    table = pd.concat([*good, odd], ignore_index=True)
    assert any(text.startswith("l40s alone is off") for text in texts(table))
    # Too few rows of any one limiter still are enough together.
    table["limiter"] = np.where(np.arange(len(table)) % 2, "matrix", "l2")
    assert any(text.startswith("l40s alone is off whatever rules") for text in texts(table))


def test_statements_name_their_rows():
    table = runs()
    table["measured_us"] *= 2
    strongest = explain(table)[0]
    first = ", ".join(map(str, strongest.rows[:5]))
    evidence = f"(predicted/measured 0.50, {len(strongest.rows)} rows: {first}, ...)"
    assert strongest.line() == f"{strongest.text} {evidence}"


@pytest.mark.parametrize(
    ("factor", "unit"), [(1000.0, "long, as nanoseconds"), (0.001, "short, as milliseconds")]
)
def test_a_factor_of_a_thousand_points_at_the_unit_and_at_nothing_else(factor, unit):
    table = runs()
    table["measured_us"] *= factor
    (said,) = explain(table)
    assert f"a factor 1,000 too {unit} called microseconds are" in said.text
    assert len(said.rows) == len(table)


@pytest.mark.parametrize(("factor", "says"), [(0.5, "2 times faster"), (4.0, "4 times slower")])
def test_matrix_products_off_by_two_or_four_point_at_another_type(factor, says):
    table = runs(sizes=range(11, 15))
    long = table["limiter"] == "matrix"
    assert long.sum() >= 8
    table = table[long].reset_index(drop=True)
    table["measured_us"] *= factor
    (found,) = [item.text for item in explain(table) if "constant factor" in item.text]
    assert found.endswith(f"its matrix products look like those of a type {says}")
