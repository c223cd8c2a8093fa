"""What other packages and PERFMODEL_PATH bring; what is broken is named, and the rest works."""

import os
import subprocess
import sys

import pytest
from folders import ROOT

from perfmodel import formats, load, load_graph, names, plugins
from perfmodel.algorithms import library
from perfmodel.hardware import specs, systems
from perfmodel.networks import library as networks
from perfmodel.serving import engine
from perfmodel.timing.libraries import files

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
SYSTEM = """
schema_version: 1
slug: own-node
name: Two of our own
device: h100-sxm
levels:
  - name: pair
    label: bridge
    medium: fabric
    devices: {value: 2, source: [own], status: spec}
    topology: mesh
    bandwidth_per_direction: {value: "100 GB/s", source: [own], status: spec}
    latency: {value: "1 us", source: [own], status: spec}
sources: {own: an example}
"""
NETWORK = """
name: own-net
hidden: 512
vocabulary: 1000
blocks:
  - {attention: {heads: 8, kv_heads: 8, head_size: 64}, mlp: {inner: 2048}, repeat: 2}
"""
ENGINE = """
engine: own-engine
about: an example
version: "1"
stack: vllm
source: an example
aliases: [ours]
host: {step_us: 100}
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
        "systems/own-node.yaml": SYSTEM,
        "networks/own-net.yaml": NETWORK,
        "engines/own-engine.yaml": ENGINE,
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
def own(tmp_path, monkeypatch):
    """A folder in PERFMODEL_PATH."""
    monkeypatch.setenv(plugins.ENVIRONMENT, str(write(tmp_path)))
    return tmp_path


def test_a_folder_brings_networks_engines_and_systems(own, cli):
    assert networks.load("own-net").layers == 2
    assert engine.load("ours").host.step_us == 100
    assert systems.load("own-node").devices == 2
    for kind in ("networks", "engines", "systems"):
        (path,) = (own / kind).iterdir()
        assert formats.check(path) == []
        assert path.stem in cli("list", kind)[1]
    code, out, err = cli(
        "infer", "own-net", "-d", "h100", "--batch", "1:8", "--engine", "own-engine",
        "--tp", "2", "--system", "own-node",
    )  # fmt: skip
    assert (code, "own-net" in out) == (0, True), err


def test_of_two_of_one_name_the_users_own_is_meant(own):
    (own / "engines" / "vllm.yaml").write_text(ENGINE.replace("own-engine", "vllm"))
    (own / "networks" / "mine.yaml").write_text(NETWORK.replace("own-net", "Llama 3 8B"))
    assert engine.load("vllm").host.step_us == 100
    assert engine.names().count("vllm") == 1
    assert networks.load("llama-3-8b").hidden == 512
    assert sum(name in ("Llama 3 8B", "llama-3-8b") for name in networks.names()) == 1


@pytest.mark.parametrize(
    ("kind", "works"),
    [
        ("engines", engine.engines),
        ("networks", lambda: networks.load("own-net")),
        ("systems", systems.every),
        ("hardware", specs),
    ],
)
def test_a_broken_file_is_named_and_the_rest_works(own, kind, works):
    (own / kind / "broken.yaml").write_text("no_such_key: 1\n")
    with pytest.warns(plugins.PluginWarning, match=r"^left out: .*broken\.yaml") as said:
        assert works()
    assert len(said) == 1


@pytest.fixture
def package(tmp_path):
    """A package that brings two folders, one of them broken; the folder to put on the path."""
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    groups = "".join(
        f"[perfmodel.{kind}]\nown = own:{kind}\nwrong = own:absent\n" for kind in plugins.KINDS
    )
    (info / "entry_points.txt").write_text(f"{groups}[perfmodel.operators]\nbad = own:absent\n")
    (tmp_path / "own.py").write_text(
        "from pathlib import Path\nHERE = Path(__file__).parent\n"
        "hardware = HERE / 'hardware'\ngraphs = str(HERE / 'graphs')\n"
        "def algorithms():\n    return HERE / 'algorithms'\n"
        "engines = HERE / 'engines'\nsystems = HERE / 'systems'\n"
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
    code, out, err = run(package, "list", "graphs,engines,systems")
    assert code == 0, err
    assert all(name in out for name in ("own-graph", "own-engine", "own-node"))
    assert all(left_out.format(kind, "wrong") in err for kind in ("graphs", "engines", "systems"))


def test_without_its_names_nothing_of_other_packages_is_loaded(package):
    code, _, err = run(package, "predict", "gemm", "-d", "h100")
    assert (code, err) == (0, "")
