"""A package outside the repository that adds an operator and facts of its library's kernels."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import pytest
from folders import ROOT

# The files of the page that explains it: what stands there works.
EXAMPLE, NAMES = (
    block
    for block in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/libraries.md").read_text(), re.S)
    if block.startswith(("library: ", "names:"))
)
CODE = """
from pathlib import Path
from perfmodel.algorithms.declaration import declare

OPERATOR = declare(
    name="low-rank",
    about="A product with a narrow matrix",
    parameters={"tokens": 4096, "width": 4096, "rank": 64},
    axes={"t": "tokens", "w": "width", "r": "rank"},
    tensors={"X": ["t", "w"], "A": ["w", "r"], "Y": ["t", "r"]},
    steps={"down": {"contraction": ["X", "A"], "to": "Y", "over": "w"}},
    outputs="Y",
    operator={"name": "gemm", "m": "tokens", "n": "rank", "k": "width"},
)

def facts():
    return Path(__file__).with_name("acme.yaml")

WRONG = 3
"""


@pytest.fixture
def package(tmp_path):
    """The folder to put on the path."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[perfmodel.operators]\nlow-rank = acme:OPERATOR\n"
        "[perfmodel.libraries]\nacme = acme:facts\n"
    )
    (tmp_path / "acme.py").write_text(CODE)
    (tmp_path / "acme.yaml").write_text(EXAMPLE + NAMES)
    return tmp_path


def run(package, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}"}
    found = subprocess.run(
        [sys.executable, "-m", "perfmodel.cli", *arguments],
        env=environment, capture_output=True, text=True, timeout=300, cwd=package,
    )  # fmt: skip
    return found.returncode, found.stdout, found.stderr


def test_predict_sweep_compare_and_roofline_use_another_packages_facts(package):
    asked = ("low-rank", "-d", "h100-sxm", "--rank", "64,512")
    found = {}
    for name in ("acme-gemm", "cublas"):
        code, out, err = run(package, "predict", *asked, "--implementation", name, "-f", "json")
        assert code == 0, err
        rows = json.loads(out)["predictions"]
        assert [row["implementation"] for row in rows] == [name, name]
        found[name] = [row["time_us"] for row in rows]
    assert found["acme-gemm"] != found["cublas"]

    acme = ("--implementation", "acme-gemm")
    code, out, err = run(package, "sweep", *asked, *acme, "--best", "--by", "time_us", "-f", "json")
    assert code == 0, err
    rows = next(
        value
        for key, value in json.loads(out).items()
        if isinstance(value, list) and key != "notes"
    )
    assert min(row["time_us"] for row in rows) == pytest.approx(min(found["acme-gemm"]), rel=1e-6)

    code, _, err = run(package, "roofline", *asked, *acme, "-o", "acme.svg")
    assert code == 0, err
    assert (package / "acme.svg").stat().st_size > 10_000

    (package / "runs.csv").write_text(
        "device,op,dtype,implementation,tokens,width,rank,measured_us\n"
        "h100-sxm,low-rank,bf16,acme-gemm,4096,4096,64,30\n"
    )
    code, _, err = run(package, "compare", "runs.csv", "--output", "rows.csv")
    assert code == 0, err
    with (package / "rows.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["predicted_us"]) == pytest.approx(found["acme-gemm"][0], rel=1e-6)


def test_its_own_names_come_before_those_of_frameworks(package):
    asked = ("predict", "attention", "-d", "h100-sxm", "--seq", "1k", "-f", "json")
    for name in ("acme-v2", "vllm-0.24.0:acme_attn"):
        code, out, err = run(package, *asked, "--implementation", name)
        if name == "acme-v2":  # a pattern that is merely found in a name
            assert (code, err.count("\n")) == (2, 1)
            continue
        assert code == 0, err
        (row,) = json.loads(out)["predictions"]
        assert row["implementation"] == "acme-attention"
    code, out, err = run(package, "list", "implementations", "-f", "json")
    assert code == 0, err
    assert {"acme-gemm", "acme-attention"} <= {row["name"] for row in json.loads(out)["names"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("acme:facts", "acme:WRONG"),
            r"perfmodel.libraries acme \(acme:WRONG\) is left out: TypeError",
        ),
        (("acme:facts", "acme:ABSENT"), r"acme \(acme:ABSENT\) is left out: AttributeError"),
        (
            ("splits:", "split:"),
            r"left out: .*acme\.yaml: acme-gemm: split: there is no such key; did",
        ),
    ],
)
def test_a_package_that_brings_no_facts_is_one_line(package, change, said):
    for path in (package / "acme.yaml", package / "acme-1.0.dist-info/entry_points.txt"):
        path.write_text(path.read_text().replace(*change))
    asked = ("predict", "gemm", "-d", "h100-sxm", "--implementation")
    code, out, err = run(package, *asked, "acme-gemm")
    assert (code, out) == (2, "")
    warning, error = err.splitlines()
    assert re.search(said, warning)
    assert "no implementation of gemm named 'acme-gemm'" in error
    # What needs nothing of it is as it was.
    assert run(package, *asked[:-1])[0] == 0
