"""Errors of predicted runs by group, the lines (groups) of the summary, and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.validation.judging import OPERATORS, errors

if TYPE_CHECKING:
    import pandas as pd

# Launch floor of the simple baselines, by harness, in microseconds.
_BASELINE_FLOOR_US = {"cuda_graph": 3.0, "cuda_events_eager": 45.0, "wall_clock": 30.0}

# Lines of the summary for products, by type.
_PRODUCTS = {
    "fp16": "gemm 16-bit", "bf16": "gemm 16-bit", "fp32": "gemm fp32", "tf32": "gemm fp32",
    "fp64": "gemm fp32", "int8": "gemm int8", "w8a8_int8": "gemm int8",
    "w8a16": "gemm weight-only", "w4a16": "gemm weight-only",
}  # fmt: skip
_ROWS = {"softmax": "norms, softmax", "layernorm": "norms, softmax", "rmsnorm": "norms, softmax"}


def lines(table: pd.DataFrame) -> np.ndarray:
    """The line of the summary that each run belongs to: prefill 16-bit, decode fp8 cache, ..."""
    columns = (
        table[name].astype(str) for name in ("op", "dtype", "kv_dtype", "direction", "phase")
    )
    return np.array([_line(*row) for row in zip(*columns, strict=True)], dtype=object)


def _line(op: str, dtype: str, kv_dtype: str, direction: str, phase: str) -> str:
    if op == "gemm":
        return _PRODUCTS.get(dtype, f"gemm {dtype}")
    if op != "attention":
        return _ROWS.get(op, op)
    if direction in ("bwd", "fwdbwd"):
        return "prefill backward"
    narrow = "fp8" in (dtype, kv_dtype)
    if phase == "decode":
        return "decode fp8 cache" if narrow else "decode 16-bit"
    return "prefill fp8" if narrow else "prefill 16-bit"


_NAMES = {
    "n": "n", "median_abs_ln": "median", "p90_abs_ln": "p90", "mape": "MAPE", "bias": "bias",
    "coverage": "coverage", "width_ln": "width", "spearman": "spearman",
}  # fmt: skip
"""Errors of `judging.errors`, as the page calls them."""


def scores(table: pd.DataFrame, by: Sequence[str], column: str = "predicted_us") -> pd.DataFrame:
    """n, median and p90 of |ln|, MAPE, bias, range coverage and width, rank correlation.

    The rank correlation is missing for groups of fewer than three rows.
    """
    import pandas as pd

    rows = table[table[column].notna()]
    fields = replace(OPERATORS, predicted=column)
    lines = errors(rows, by, include_flags=True, fields=fields)
    summary = pd.DataFrame(lines, columns=[*by, *_NAMES]).rename(columns=_NAMES).set_index(list(by))
    return summary.assign(spearman=summary["spearman"].where(summary["n"] > 2))


def both(table: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Median / p90 of |ln| by columns, as text."""
    score = scores(table, by)
    return score["median"].map("{:.3f}".format) + " / " + score["p90"].map("{:.2f}".format)


def pair(
    table: pd.DataFrame, name: str, columns: Sequence[str] = ("median", "p90")
) -> pd.DataFrame:
    """Two scores by line, in columns whose headings begin with `name`."""
    return scores(table, ["line"])[list(columns)].add_prefix(f"{name} ")


def baselines(table: pd.DataFrame) -> pd.DataFrame:
    """Two baselines: plain roofline (the physical floor), and roofline / 0.85 plus a launch floor
    by harness."""
    roofline = np.maximum(table["floor_us"], 1e-3)
    floor = table["harness"].map(_BASELINE_FLOOR_US).fillna(5.0)
    return table.assign(roofline_us=roofline, scaled_us=roofline / 0.85 + floor)


def markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """A frame as a Markdown table with rounded floats; missing cells are empty."""
    head = [*(str(name or "") for name in frame.index.names), *map(str, frame.columns)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for key, *row in frame.itertuples():
        index = key if isinstance(key, tuple) else (key,)
        cells = [_cell(value, digits) for value in row]
        lines.append(f"| {' | '.join([*map(str, index), *cells])} |")
    return "\n".join(lines)


def csv_text(frame: pd.DataFrame, digits: int = 3) -> str:
    """A frame as CSV with rounded floats; missing cells are empty."""
    return str(frame.to_csv(float_format=f"%.{digits}f", lineterminator="\n"))


def _cell(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.{digits}f}"
    return str(value)
