"""What does not pay is not kept: constants, terms and facts, by the tables of docs/accuracy."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from perfmodel.timing import ablation
from perfmodel.timing.constants import shipped
from perfmodel.validation.factworth import without

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
# Least gain in the median error and in its 90th percentile that a fact is worth: on the runs of the
# kernels that state it, or on a line of the summary.
OWN, LINE = (0.003, 0.02), (0.0025, 0.015)
# Facts that no measured run tests, or too few, and what else needs them.
NEEDED = {
    "cut_columns": "law: short rows are not cut over units, however few they are",
    "cut_rows": "law: rows that fill the units are not cut",
    "gradient_kernel": "6 backward runs are off by a factor of 2 without it",
    "gradient_product": "14 backward runs are off by a factor of 1.9 without it",
    "holds_queries": "AMD's kernels, of which no run is public",
    "other_dims": "dispatch: AITER's assembly is for heads of 128",
    "rounding_ops": "AMD's kernels, of which no run is public",
    "rows.power_of_two": "the bundled Triton kernels: num_warps is a power of two",
    "specialises": "law: blocks of user's and Triton's kernels form no clusters",
    "types": "dispatch: an eager norm in fp32 makes no copies",
    "variants": "dispatch: vLLM's activation kernel computes two maps",
    "where": "dispatch: TensorRT-LLM's decode kernels, laws in test_routing",
}
# Terms that change no line's median: physics of a device, or a law, needs them.
NEEDED_TERMS = {
    "lanes": "law: two warps leave half of a unit's lanes idle (test_timing_pipeline)",
    "llc": "MI300X and its kind have a memory-side cache (test_llc)",
}


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table beside the page."""
    with (PAGE.with_suffix("") / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def constants() -> list[dict[str, str]]:
    """The page's table of constants."""
    section = PAGE.read_text(encoding="utf-8").split("## What each constant is worth")[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.split("\n## ")[0].splitlines()
        if line.startswith("|") and not line.startswith("|---")
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_every_fitted_constant_is_better_than_its_prior_on_architectures_left_out():
    rows = {row["constant"]: row for row in constants()}
    assert rows.keys() == {constant.name for constant in shipped() if constant.fitted}
    for name, row in rows.items():
        values = [float(row[key]) for key in ("median", "at its prior", "p90", "p90 at its prior")]
        assert values[0] < values[1] or values[2] < values[3], name


@pytest.mark.parametrize("term", [*ablation.TERMS])
def test_every_term_makes_a_line_better_or_is_needed(term):
    rows = table("terms.csv")
    pays = any(
        float(row[f"{term} {key}"]) > float(row[f"nothing {key}"]) + least
        for row in rows
        for key, least in (("median", 0.002), ("p90", 0.02))
    )
    assert pays != (term in NEEDED_TERMS)


def test_every_fact_pays_or_is_needed():
    rows = {row["fact"]: row for row in table("facts.csv")}
    assert rows.keys() == {fact for fact, _ in without()}
    for name, row in rows.items():
        own = [
            float(row[f"{key} without"]) - float(row[key]) if row[key] != "nan" else 0.0
            for key in ("median", "p90")
        ]
        line = [float(row[key]) for key in ("its median", "its p90")]
        pays = any(gain > least for gain, least in zip(own + line, OWN + LINE, strict=True))
        assert pays or name in NEEDED, (name, own, line)
    assert rows.keys() >= NEEDED.keys()
