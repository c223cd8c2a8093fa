"""Frozen answers: every kind of command is drawn and predicted, and a number that moves is seen."""

from __future__ import annotations

from functools import cache

import freeze
import numpy as np
import pandas as pd
import pytest


@cache
def table() -> pd.DataFrame:
    """The numbers of a few cases of cheap commands."""
    cheap = [line for line in freeze.drawn(3, 60) if line[0] in ("predict", "collective")][:12]
    rows = [
        (case, " ".join(line), place, number)
        for case, line in enumerate(cheap)
        for place, number in freeze.answered(line).items()
    ]
    return pd.DataFrame(rows, columns=["case", "command", "place", "number"])


def test_a_seed_draws_the_same_lines_and_all_commands():
    lines = freeze.drawn(41, 3000)
    assert lines == freeze.drawn(41, 3000)
    assert {line[0] for line in lines} == {name.split()[0] for name in freeze.COMMANDS}


def test_equal_answers_are_equal_and_most_are_predictions():
    assert freeze.differing(table(), table()).empty
    codes = table().loc[table()["place"] == "code", "number"]
    assert (codes == 0).mean() > 0.5
    assert (table()["place"] != "code").sum() > 100


def test_a_number_that_moves_in_its_last_bit_is_told_with_its_command():
    after = table().copy()
    place = int(np.flatnonzero((after["number"] > 0) & (after["place"] != "code"))[0])
    after.loc[place, "number"] = np.nextafter(after.loc[place, "number"], np.inf)
    differences = freeze.differing(table(), after)
    assert list(differences["place"]) == [after.loc[place, "place"]]
    (line,) = freeze.told(differences)
    assert after.loc[place, "command"] in line


@pytest.mark.parametrize("row", [0, -1])
def test_a_number_that_is_gone_is_told(row):
    after = table().drop(index=table().index[row])
    (relative,) = freeze.differing(table(), after)["relative"]
    assert relative == 1.0
