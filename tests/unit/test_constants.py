"""The constants file: every entry has a meaning, bounds and a source; bad files are one-line
errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from folders import ROOT

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.rowwise import OPS
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load, names
from perfmodel.predict import predict
from perfmodel.render import terms
from perfmodel.timing import constants
from perfmodel.timing.libraries import kernels
from perfmodel.timing.runs import harnesses

UNITS = {"1", "s", "W", "J", "B"}
GOOD = {
    "version": 1,
    "constants": {
        "one": {
            "value": 0.5, "unit": "1", "low": 0.1, "high": 1.0, "fitted": True,
            "meaning": "a share", "source": "a page",
        },
    },
}  # fmt: skip


def write(folder: Path, document: object) -> Path:
    path = folder / "constants.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_every_constant_is_meant_bounded_and_sourced():
    for constant in constants.shipped():
        assert constant.low <= constant.value <= constant.high
        assert constant.low < constant.high
        assert constant.unit in UNITS
        assert len(constant.meaning) > 5
        assert len(constant.source) > 5
        # A share is a share, a time is below a millisecond: bounds that bound.
        most = {"1": 10.0, "s": 1e-3, "W": 100.0, "J": 1e-9, "B": 128.0}[constant.unit]
        assert constant.low >= 0
        assert constant.high <= most


def test_no_constant_belongs_to_a_device():
    words = set()
    for slug in names():
        device = load(slug)
        words |= {slug, *device.aliases, device.architecture.split()[0].lower()}
    words = {part for word in words for part in re.split(r"[-_ ]", word.lower()) if len(part) > 2}
    # Words of slugs that are words of the language too.
    words -= {"nvidia", "amd", "intel", "google", "server", "gpu", "sxm", "pcie", "gcd", "hbm"}
    for constant in constants.shipped():
        parts = set(constant.name.split("_"))
        assert not parts & words, constant.name


def test_no_constant_belongs_to_a_library_a_harness_or_an_operator():
    named = [name.split("-")[0] for name in kernels()]
    named += [*harnesses(), "attention", "gemm", "bmm", *OPS]
    words = {part for name in named for part in re.split(r"[_0-9]", name) if len(part) > 2}
    assert {"flash", "triton", "cublas", "eager", "softmax"} < words
    words -= {
        "kernel",
        "block",
    }  # gaps are between kernels; block-sparse-layer skips blocks of keys
    for constant in constants.shipped():
        assert not set(constant.name.split("_")) & words, constant.name


def test_few_constants_are_fitted():
    assert 10 < sum(constant.fitted for constant in constants.shipped()) <= 40


def test_names_are_unique_and_defaults_are_the_file():
    listed = [constant.name for constant in constants.shipped()]
    assert len(listed) == len(set(listed)) == len(constants.default())
    assert any(constant.fitted for constant in constants.shipped())
    assert any(not constant.fitted for constant in constants.shipped())


def test_a_good_file_is_read(tmp_path):
    (one,) = constants.read(write(tmp_path, GOOD))
    assert (one.name, one.value, one.fitted) == ("one", 0.5, True)


def test_a_constant_that_the_file_lacks_is_named_in_one_line():
    # As in a file of an earlier release.
    lacking = constants.Constants(constants.default())
    del lacking["power_lag"]
    problem = Matmul(64, 64, 64, dtype="fp32")
    with pytest.raises(PerfmodelError, match=r"^no constant named 'power_lag'; it must be in"):
        predict(problem, load("t4"), harness="wall_clock", constants=lacking)


def test_changed_values_are_a_copy_and_unknown_names_an_error():
    start = constants.default()
    found = start.with_values({"matrix_share": 0.7})
    assert (found["matrix_share"], start["matrix_share"] == 0.7) == (0.7, False)
    with pytest.raises(PerfmodelError, match="no constant named 'speed'"):
        start.with_values({"speed": 1.0})


MODEL = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")


def named(text):
    """What a text names as code."""
    return set(re.findall(r"`([a-z][\w.]*)`", text))


def test_the_model_page_explains_every_constant():
    for constant in constants.shipped():
        assert constant.name in MODEL, "the law that it stands in"


def test_the_model_page_has_a_row_for_every_term():
    roofs = MODEL[MODEL.index("## 4. Roofs") : MODEL.index("### The matrix unit")]
    rows = named("".join(re.findall(r"^\|[^|]*\|", roofs, re.MULTILINE)))
    prediction = predict(Matmul(512, 512, 512), load("mi300x"))
    printed = {*prediction.terms, *(name for part in terms.PARTS.values() for name in part)}
    assert {"matrix", "llc", "transpose", "launch", "included"} <= printed
    assert printed <= rows


def test_the_model_page_explains_every_harness():
    table = MODEL[MODEL.index("**Harness.**") : MODEL.index("**Tiles.**")]
    assert set(harnesses()) - {"unknown"} <= named(table)
