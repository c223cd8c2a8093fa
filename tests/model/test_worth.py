"""What does not pay is not kept: constants, terms and facts, by the tables of docs/accuracy."""

from __future__ import annotations

import csv

import pytest
from cases import listed
from folders import ROOT

from perfmodel.timing import ablation
from perfmodel.timing.constants import shipped
from perfmodel.validation.factworth import without

PAGE = ROOT / "docs" / "accuracy.md"
# Least gain in the median error and in its 90th percentile on the runs of the kernels that state a
# fact.
LEAST = (0.003, 0.02)
# Facts that gain less there, or that no measured run tests, and what needs them.
NEEDED = listed(__file__, "NEEDED")
# Constants that are no better than their priors on architectures left out. What all runs of the
# sample lose at the prior, in the median of a kind of run:
NEEDED_CONSTANTS = listed(__file__, "NEEDED_CONSTANTS")
# Terms that change no line: devices need their physics.
NEEDED_TERMS = {
    "lanes": "the tail of fp8 and 16-bit products, .006 and .005 of the 90th percentile",
    "llc": "MI300X and its kind have a memory-side cache (test_llc)",
}


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table beside the page."""
    with (PAGE.with_suffix("") / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_every_fitted_constant_pays_on_architectures_left_out_or_is_needed():
    rows = {row["constant"]: row for row in table("constants.csv")}
    assert rows.keys() == {constant.name for constant in shipped() if constant.fitted}
    for name, row in rows.items():
        pays = float(row["median"]) < float(row["at its prior"])
        assert pays != (name in NEEDED_CONSTANTS), name


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
        gains = [
            float(row[f"{key} without"] or 0) - float(row[key] or 0) for key in ("median", "p90")
        ]
        pays = any(gain > least for gain, least in zip(gains, LEAST, strict=True))
        assert pays != (name in NEEDED), (name, gains)
