"""What other packages and PERFMODEL_PATH bring; what is broken is named, and the rest works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfmodel import load, load_graph, names, plugins
from perfmodel.algorithms import library
from perfmodel.timing.libraries import files

ROOT = Path(__file__).resolve().parents[1]
GRAPH = """
name: {name}
sizes: {{m: 512}}
inputs: {{a: [m, m], b: [m, m]}}
outputs: c
nodes:
  product: {{operator: gemm, sizes: {{m: m, n: m, k: m}}, reads: {{A: a, B: b}}, writes: {{C: c}}}}
"""
ALGORITHM = """
name: {name}
axes: {{i: 64, j: 64}}
tensors: {{X: [i, j], Y: {{axes: [i], element: output}}}}
steps: {{sum: {{reduction: X, to: Y, over: j}}}}
outputs: Y
"""
LIBRARY = """
library: Mine
kernels: {mine-gemm: {like: cublas, source: "an example"}}
"""


def write(folder):
    """A folder of files of one's own, a kind a folder."""
    texts = {
        "hardware/own-gpu.yaml": load("h100-sxm")
        .dump()
        .replace("slug: h100-sxm", "slug: own-gpu")
        .replace("aliases: [", "aliases: [own-alias, "),
        "graphs/own-graph.yaml": GRAPH.format(name="own-graph"),
        "algorithms/own-sum.yaml": ALGORITHM.format(name="own-sum"),
        "libraries/mine.yaml": LIBRARY,
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_a_folder_brings_files_of_every_kind(tmp_path, monkeypatch):
    monkeypatch.setenv(plugins.ENVIRONMENT, str(write(tmp_path)))
    files.brought.cache_clear()
    files.kernels.cache_clear()
    assert load("own-gpu").units == load("own-alias").units == 132
    assert {"own-gpu", "h100-sxm"} <= set(names())
    assert load_graph("own-graph").name == "own-graph"
    assert library.load("own-sum").name == "own-sum"
    assert "own-sum" in library.names()
    assert files.kernel_facts("mine-gemm").tiles == files.kernel_facts("cublas").tiles
    files.brought.cache_clear()
    files.kernels.cache_clear()


@pytest.fixture
def package(tmp_path):
    """A package that brings two folders, one of them broken; the folder to put on the path."""
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    groups = "".join(
        f"[perfmodel.{kind}]\nown = own:{kind}\nwrong = own:absent\n"
        for kind in ("hardware", "graphs", "algorithms")
    )
    (info / "entry_points.txt").write_text(f"{groups}[perfmodel.operators]\nbad = own:absent\n")
    (tmp_path / "own.py").write_text(
        "from pathlib import Path\nHERE = Path(__file__).parent\n"
        "hardware = HERE / 'hardware'\ngraphs = str(HERE / 'graphs')\n"
        "def algorithms():\n    return HERE / 'algorithms'\n"
    )
    write(tmp_path)
    return tmp_path


def run(package, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}"}
    found = subprocess.run(
        [sys.executable, "-m", "perfmodel.cli", *arguments],
        env=environment, capture_output=True, text=True, timeout=300, cwd=package,
    )  # fmt: skip
    return found.returncode, found.stdout, found.stderr


def test_a_broken_entry_point_is_named_and_the_rest_works(package):
    left_out = "perfmodel: perfmodel.{} {} (own:absent) is left out: "
    code, out, err = run(package, "predict", "own-sum", "-d", "own-alias")
    assert code == 0, err
    assert "own-gpu" in out
    assert left_out.format("hardware", "wrong") in err
    assert all(line.startswith("perfmodel: ") for line in err.splitlines())
    code, out, err = run(package, "predict", "--help")
    assert (code, "own-sum" in out) == (0, True)
    assert left_out.format("operators", "bad") in err
    code, out, err = run(package, "list", "graphs")
    assert (code, "own-graph" in out) == (0, True)


def test_without_its_names_nothing_of_other_packages_is_loaded(package):
    code, _, err = run(package, "predict", "gemm", "-d", "h100")
    assert (code, err) == (0, "")
