"""What other packages and PERFMODEL_PATH bring; what is broken is named, and the rest works."""

import csv
import json
import re

import pytest
from cases import cases
from elsewhere import Elsewhere
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


# ---- Another package -----------------------------------------------------------------------------

# The files of the page that explains it: what stands there works.
FACTS = "".join(
    block
    for block in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/libraries.md").read_text(), re.S)
    if block.startswith(("library: ", "names:"))
)
CODE = """
from pathlib import Path
from perfmodel.algorithms.declaration import declare
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention

HERE = Path(__file__).parent
hardware, engines, systems = (HERE / name for name in ("hardware", "engines", "systems"))
graphs = str(HERE / "graphs")

def algorithms():
    return HERE / "algorithms"

def facts():
    return HERE / "acme.yaml"

def broken():
    raise RuntimeError("no\\nsuch thing")

NOTHING = 3
LOW_RANK = declare(
    name="low-rank",
    about="A product with a narrow matrix",
    parameters={"tokens": 4096, "width": 4096, "rank": 64},
    axes={"t": "tokens", "w": "width", "r": "rank"},
    tensors={"X": ["t", "w"], "A": ["w", "r"], "Y": ["t", "r"]},
    steps={"down": {"contraction": ["X", "A"], "to": "Y", "over": "w"}},
    outputs="Y",
    operator={"name": "gemm", "m": "tokens", "n": "rank", "k": "width"},
)
ROPE = declare(
    name="rope",
    about="Rotary embedding of queries or keys",
    parameters={"tokens": 4096, "heads": 32, "head_dim": 128},
    axes={"t": "tokens", "h": "heads", "d": "head_dim"},
    tensors={"X": ["t", "h", "d"], "angle": ["t", "d"], "Y": ["t", "h", "d"]},
    steps={"rotate": {"map": ["X", "angle"], "to": "Y", "vector": 3}},
    outputs="Y",
)
MINE = Network("acme-1b", 512, 1000, (Block(SelfAttention(8, 8, 64), Mlp(2048)),))
CLASH = Network("llama 3 8B", 512, 1000, MINE.blocks)
"""
POINTS = {
    **{kind: {"own": kind, "wrong": "absent"} for kind in plugins.KINDS},
    "operators": {"low-rank": "LOW_RANK", "rope": "ROPE", "nothing": "NOTHING", "bad": "absent"},
    "libraries": {"acme": "facts"},
    "networks": {"mine": "MINE", "clash": "CLASH", "nothing": "NOTHING", "broken": "broken"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs commands where a package brings something of every kind, some of it broken."""
    folder = write(tmp_path_factory.mktemp("package"))
    info = folder / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    lines = []
    for group, points in POINTS.items():
        lines += [f"[perfmodel.{group}]", *(f"{name} = own:{at}" for name, at in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / "own.py").write_text(CODE)
    (folder / "acme.yaml").write_text(FACTS)
    commands = Elsewhere(folder, folder)
    yield commands
    commands.close()


def document(run, *words):
    """The JSON of a command that succeeds."""
    code, out, err = run(*words, "-f", "json")
    assert code == 0, err
    return json.loads(out)


def test_a_broken_entry_point_is_named_and_the_rest_works(run):
    left_out = "perfmodel: perfmodel.{} {} (own:absent) is left out: "
    code, out, err = run("predict", "own-sum", "-d", "own-alias")
    assert code == 0, err
    assert "own-gpu" in out
    assert left_out.format("hardware", "wrong") in err
    assert all(line.startswith("perfmodel: ") for line in err.splitlines())
    code, out, err = run("predict", "--help")
    assert (code, "own-sum" in out) == (0, True)
    assert left_out.format("operators", "bad") in err
    code, out, err = run("list", "graphs,engines,systems")
    assert code == 0, err
    assert all(name in out for name in ("own-graph", "own-engine", "own-node"))
    assert all(left_out.format(kind, "wrong") in err for kind in ("graphs", "engines", "systems"))


def test_without_its_names_nothing_of_other_packages_is_loaded(run):
    assert run("predict", "gemm", "-d", "h100")[::2] == (0, "")


@cases
def test_a_package_without_an_operator_is_one_line(run, name, said):
    code, out, err = run("predict", name, "-d", "h100-sxm")
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_every_command_takes_an_operator_of_another_package(run, tmp_path):
    rope = ("rope", "-d", "h100-sxm")
    small, large = document(run, "predict", *rope, "--tokens", "1k,4k")["predictions"]
    assert small["time_us"] < large["time_us"]
    moved = 2 * (2 * 4096 * 32 * 128 + 4096 * 128)
    assert large["bytes"]["hbm"] == pytest.approx(moved, rel=0.02)
    best = document(run, "sweep", *rope, "--tokens", "1k:4k:x2", "--best", "--by", "time_us")
    assert '"tokens": 1024' in json.dumps(best)
    assert document(run, "whatif", *rope, "--change", "HBM x2")
    assert run("roofline", *rope, "-o", str(tmp_path / "rope.svg"))[0] == 0
    assert (tmp_path / "rope.svg").stat().st_size > 10_000


def test_kernels_of_another_package_time_its_operator(run, tmp_path):
    found = {}
    asked = ("predict", "low-rank", "-d", "h100-sxm", "--rank", "64,512", "--implementation")
    for name in ("acme-gemm", "cublas"):
        rows = document(run, *asked, name)["predictions"]
        assert [row["implementation"] for row in rows] == [name, name]
        found[name] = [row["time_us"] for row in rows]
    assert found["acme-gemm"] != found["cublas"]
    (tmp_path / "runs.csv").write_text(
        "device,op,dtype,implementation,tokens,width,rank,measured_us\n"
        "h100-sxm,low-rank,bf16,acme-gemm,4096,4096,64,30\n"
    )
    code, _, err = run("compare", str(tmp_path / "runs.csv"), "-o", str(tmp_path / "rows.csv"))
    assert code == 0, err
    with (tmp_path / "rows.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["predicted_us"]) == pytest.approx(found["acme-gemm"][0], rel=1e-6)


def test_its_own_names_come_before_those_of_frameworks(run):
    asked = ("predict", "attention", "-d", "h100-sxm", "--seq", "1k", "--implementation")
    # A pattern that is merely found in a name is no name.
    assert run(*asked, "acme-v2")[0] == 2
    (row,) = document(run, *asked, "vllm-0.24.0:acme_attn")["predictions"]
    assert row["implementation"] == "acme-attention"
    listed = document(run, "list", "implementations")["names"]
    assert {"acme-gemm", "acme-attention"} <= {row["name"] for row in listed}


def test_a_package_brings_networks_and_those_that_are_broken_are_named(run):
    code, out, err = run("network", "show", "acme-1b")
    assert (code, "acme-1b" in out) == (0, True), err
    for name, why in (
        ("clash", "llama-3-8b exists already"), ("nothing", "int is neither"),
        ("broken", "no such thing"),
    ):  # fmt: skip
        start = f"perfmodel: perfmodel.networks {name} (own:{POINTS['networks'][name]}) is left out"
        assert sum(line.startswith(start) and why in line for line in err.splitlines()) == 1, name
    assert "did you mean acme-1b" in run("network", "show", "acme-1c")[2]


@pytest.mark.parametrize(
    ("text", "point", "said"),
    [
        (FACTS, "WRONG", r"acme \(bad:WRONG\) is left out: TypeError"),
        (FACTS, "ABSENT", r"acme \(bad:ABSENT\) is left out: AttributeError"),
        (FACTS.replace("splits:", "split:"), "facts",
         r"left out: .*acme\.yaml: acme-gemm: split: there is no such key; did"),
    ],
)  # fmt: skip
def test_a_package_that_brings_no_facts_is_one_line(tmp_path, text, point, said):
    info = tmp_path / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[perfmodel.libraries]\nacme = bad:{point}\n")
    (tmp_path / "acme.yaml").write_text(text)
    (tmp_path / "bad.py").write_text(
        "from pathlib import Path\nWRONG = 3\n"
        "def facts():\n    return Path(__file__).with_name('acme.yaml')\n"
    )
    commands = Elsewhere(tmp_path, tmp_path)
    asked = ("predict", "gemm", "-d", "h100-sxm", "--implementation")
    code, out, err = commands(*asked, "acme-gemm")
    assert (code, out) == (2, "")
    warning, error = err.splitlines()
    assert re.search(said, warning)
    assert "no implementation of gemm named 'acme-gemm'" in error
    # What needs nothing of it is as it was.
    assert commands(*asked[:-1])[0] == 0
    commands.close()
