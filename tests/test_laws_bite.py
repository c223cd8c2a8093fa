"""Laws over predictions must fail if the model predicts nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# Modules of laws and examples over predictions, and their tests that need none.
LAWS = {
    "test_timing_laws": {},
    "test_right_answers": {
        "test_pairs_that_a_band_leaves_are_those_of_the_brute_force": "counts a mask",
        "test_operations_are_those_that_the_mask_leaves": "counts a problem's operations",
        "test_one_chip_has_one_roof_for_its_sixteen_bit_types": "draws roofs from specs",
        "test_power_that_is_slack_is_no_limiter_however_large_its_term": "ranks given terms",
    },
    "test_physics": {
        "test_the_command_says_what_it_checked": "runs in a process of its own",
        "test_every_cliff_is_told_to_users": "reads a document",
    },
    "test_predict": {},
    "test_step_laws": {
        "test_what_lacks_is_said_in_bytes": "adds given bytes up",
        "test_overlap_lies_between_the_larger_and_the_sum": "joins given seconds",
    },
    "test_why": {},
    "test_transfer": {},
    "test_unfused": {
        "test_operators_move_and_multiply_what_the_schedule_counts": "counts schedules",
    },
}
# Modules of which many tests are about single terms: what asks the model must fail there too.
OTHERS = ("test_timing_terms", "test_timing_pipeline", "test_timing_memory", "test_library_rules",
          "test_slices")  # fmt: skip
# They ask the model and pass without it.
REFUSED: dict[str, str] = {}


@pytest.fixture(scope="module")
def alive() -> dict[str, bool]:
    """Tests that pass with a dead model, as module::name, and whether they asked it."""
    modules = [str(HERE / f"{name}.py") for name in (*LAWS, *OTHERS)]
    options = ["-p", "deadmodel", "--hypothesis-profile", "dead", "-p", "no:cacheprovider",
               "-p", "no:xdist", "-q", "--tb=no", "-r", "N"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *modules],
        cwd=HERE.parent, env=os.environ | {"PYTHONPATH": str(HERE)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    lines = re.findall(r"^LIVES \S*?(\w+)\.py::(\S+) (asked|quiet)$", done.stdout, re.MULTILINE)
    assert lines
    assert re.search(r"\d+ failed", done.stdout)
    return {f"{module}::{name}": asked == "asked" for module, name, asked in lines}


@pytest.mark.parametrize("module", LAWS)
def test_every_law_fails_without_a_model(alive, module):
    passed = {name.partition("::")[2] for name in alive if name.startswith(f"{module}::")}
    assert passed == set(LAWS[module])


def test_whatever_asks_the_model_fails_without_it(alive):
    assert {name for name, asked in alive.items() if asked} == set(REFUSED)
