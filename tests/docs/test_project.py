"""The project's frame: names, version, packaging, the two commands' files."""

import ast
import importlib
import inspect
import itertools
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from folders import ROOT

import perfmodel
import perfmodel.triton
from perfmodel import errors

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_exported_names_are_those_that_the_package_has():
    tree = ast.parse((ROOT / "perfmodel" / "__init__.py").read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))  # TYPE_CHECKING
    imported = {
        alias.asname or alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(perfmodel.__all__) == imported.keys() | {"__version__"}
    homes = {name: f"perfmodel.{at.partition(':')[0]}" for name, at in perfmodel._MODULES.items()}
    assert imported == homes
    assert perfmodel.__all__ == sorted(perfmodel.__all__)
    assert all(hasattr(perfmodel, name) for name in perfmodel.__all__)


@pytest.mark.parametrize("first", ["import perfmodel.predict, perfmodel.count.rule", ""])
def test_names_are_the_functions_whatever_was_imported_before(first):
    code = f"""{first}
import sys, perfmodel
assert {bool(first)} or not {{"pydantic", "yaml", "numpy"}} & set(sys.modules)
from perfmodel import count, predict
assert count.__name__ == "count" and predict.__name__ == "predict"
assert perfmodel.predict is predict and perfmodel.count is count"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_version():
    assert perfmodel.__version__ == PROJECT["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1] == perfmodel.__version__


def test_every_package_is_listed():
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "perfmodel").rglob("__init__.py")
    }
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    assert listed == found | {"perfmodel.hardware_specs", "perfmodel_kernels"}


def test_every_kernel_file_is_listed():
    files = (ROOT / "kernels").glob("*.py")
    modules = {file.stem for file in files if "\nKERNELS = " in file.read_text(encoding="utf-8")}
    tree = ast.parse((ROOT / "kernels" / "__init__.py").read_text(encoding="utf-8"))
    (listed,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    assert modules == set(ast.literal_eval(listed))


def test_scripts_exist():
    for target in PROJECT["project"]["scripts"].values():
        module, name = target.split(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_make_lists_its_targets():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    listed = subprocess.run(["make", "-s"], cwd=ROOT, check=True, capture_output=True, text=True)
    targets = {line.split()[1] for line in listed.stdout.splitlines()}
    assert targets >= {
        "demo",
        "test",
        "check",
        "pythons",
        "bench",
        "evidence",
        "fit",
        "scoreboard",
        "clean",
    }
    assert targets >= {"fuzz", "physics", "mutants", "coverage", "test-all"}


def test_torch_and_triton_are_pinned_as_a_pair_where_there_is_no_gpu():
    lines = (ROOT / "constraints-cpu.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(pins) == {"torch", "triton"}


def test_what_checks_types_cannot_change_by_itself():
    development = PROJECT["project"]["optional-dependencies"]["dev"]
    checks = [each for each in development if re.match(r"mypy|ruff|types-|[\w-]+-stubs", each)]
    assert len(checks) == 5
    assert all("==" in each or ",<" in each for each in checks), checks


SKIPPING = """
import pytest

def test_passes(): pass
def test_skips(): pytest.skip("no such data")
@pytest.mark.gpu
def test_needs_a_gpu(): pytest.skip("no GPU")
@pytest.mark.xfail
def test_is_known_to_fail(): assert False
"""


def test_no_skips_makes_a_skip_a_failure(tmp_path):
    pytest.importorskip("xdist")
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu\n    no_gpu\n    browser\n")
    (tmp_path / "test_single.py").write_text(SKIPPING)
    (tmp_path / "test_module.py").write_text(
        "import pytest\npytest.importorskip('nowhere_installed')\ndef test_nothing(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider"]
    plain, counted = (
        subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        for more in ((), ("-n", "1", "--no-skips", "--continue-on-collection-errors"))
    )
    assert plain.returncode == 0
    assert all(reason in plain.stdout for reason in ("no such data", "nowhere_installed"))
    assert counted.returncode != 0
    assert "not run (--no-skips): Skipped: no such data" in counted.stdout
    assert "not run (--no-skips): Skipped: could not import 'nowhere_installed'" in counted.stdout
    assert re.search(r"1 skipped", counted.stdout)
    assert not re.search(r"test_is_known_to_fail.*FAILED|test_passes.*FAILED", counted.stdout)


def test_every_exported_name_has_an_example():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    named = {re.match(r"`(\w+)`", section)[1]: section for section in sections}
    assert named.keys() == set(perfmodel.__all__)
    for name, section in named.items():
        (example,) = re.findall(r"```python\n(.*?)```\n\n```text\n.+?```", section, re.DOTALL)
        assert re.search(rf"\b{name}\b", example), name


def test_every_exported_name_says_what_it_is():
    for name in set(perfmodel.__all__) - {"__version__"}:
        assert getattr(perfmodel, name).__doc__, name


@pytest.mark.parametrize("package", [perfmodel, perfmodel.triton], ids=lambda each: each.__name__)
def test_every_field_of_an_exported_class_says_what_it_is(package):
    silent, fields = [], 0
    for kind in filter(inspect.isclass, (getattr(package, name) for name in package.__all__)):
        (tree,) = ast.parse(inspect.getsource(kind)).body
        for item, after in itertools.pairwise([*tree.body, None]):
            if isinstance(item, ast.AnnAssign):
                fields += 1
                said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                silent += [] if said else [f"{kind.__name__}.{item.target.id}"]
    assert fields
    assert not silent


def test_predict_takes_whatever_has_its_machine():
    h100, llama = perfmodel.load("h100"), perfmodel.load_network("llama-3-8b")
    node, engine = perfmodel.load_system("dgx-h100"), perfmodel.load_engine("vllm")
    graph = perfmodel.load_graph("unfused-attention").at()
    served = perfmodel.Deployment(llama, h100, engine)
    pass_ = perfmodel.predict(llama, h100, batch=1, seq=512)
    assert pass_.seconds > 0
    assert perfmodel.predict(graph, h100) == perfmodel.predict_graph(graph, h100)
    step = perfmodel.predict(perfmodel.Plan(seq=512), h100, network=llama)
    assert step.seconds > pass_.seconds
    assert perfmodel.predict(perfmodel.Collective("all-reduce", 2**20, 8), node).seconds[0] > 0
    assert perfmodel.predict(served, isl=64, osl=8, concurrency=1).metric("tpot_ms").value > 0


def test_every_error_is_exported():
    kinds = {item for item in vars(errors).values() if inspect.isclass(item)}
    tree = {item.__name__ for item in kinds if issubclass(item, errors.PerfmodelError)}
    assert "SizeError" in tree
    assert tree <= set(perfmodel.__all__)
