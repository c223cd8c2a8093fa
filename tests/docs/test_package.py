"""What is built: small, the same bytes every time, and complete outside the repository."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from folders import ROOT

from perfmodel.compiled.build import compiler

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EPOCH = "1700000000"
SHIPPED = (
    ".npz",
    ".py", ".yaml", ".json", ".csv", ".c", ".mplstyle", ".html", ".css", ".js", ".md",
    ".typed",
)  # fmt: skip
LARGEST = 2_500_000  # bytes, of which 260 kB are the record of measured corrections


def hook(name, source, into):
    """One hook of the build backend, as a frontend calls it; the file that it made."""
    pytest.importorskip("setuptools", minversion="77")
    into.mkdir(exist_ok=True)
    code = f"import sys; sys.path.insert(0, '.ci'); import backend; backend.{name}({str(into)!r})"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=source, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The source archive of a copy of the sources, and the wheel built from that archive."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "conda", "run")
    for name in ("perfmodel", "kernels", "hardware_specs", ".ci"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    sdist = hook("build_sdist", source, folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return source, sdist, hook("build_wheel", unpacked, folder / "wheel")


def test_both_are_small(archives):
    _, sdist, wheel = archives
    assert 100_000 < sdist.stat().st_size < LARGEST
    assert 100_000 < wheel.stat().st_size < LARGEST


def test_the_wheel_holds_all_code_and_data_under_two_names(archives):
    with zipfile.ZipFile(archives[2]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    folders = {
        "perfmodel": "perfmodel",
        "kernels": "perfmodel_kernels",
        "hardware_specs": "perfmodel/hardware_specs",
    }
    assert names == {
        f"{package}/{path.relative_to(ROOT / folder)}"
        for folder, package in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SHIPPED
        and "kernels/measured" not in path.as_posix()  # runs stay in the repository
    }


def test_the_source_archive_is_the_same_bytes_again(archives, tmp_path):
    source, sdist, _ = archives
    for path in list(source.rglob("*.py"))[::7]:
        os.utime(path, (0, 0))
    again = hook("build_sdist", source, tmp_path / "again")
    assert again.read_bytes() == sdist.read_bytes()


def test_all_entries_of_the_wheel_have_the_given_time(archives):
    with zipfile.ZipFile(archives[2]) as archive:
        assert {entry.date_time[:3] for entry in archive.infolist()} == {(2023, 11, 14)}
        assert "perfmodel/py.typed" in archive.namelist()


def outside(wheel, folder, *arguments):
    """What Python prints with an unpacked wheel and its dependencies, and nothing of this checkout:
    no site, no editable hook."""
    site = folder / "site"
    if not site.exists():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    places = (site, Path(pytest.__file__).parents[1], sysconfig.get_path("purelib"))
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PERFMODEL")},
        "PYTHONPATH": os.pathsep.join(map(str, places)),
    }
    found = subprocess.run(
        [sys.executable, "-S", *arguments],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_wheel_works_outside_the_repository(archives, tmp_path):
    def run(*arguments):
        return outside(archives[2], tmp_path, *arguments)

    assert "h100-sxm" in run("-m", "perfmodel.cli", "predict", "gemm", "-d", "h100")
    assert "decoder-layer" in run("-m", "perfmodel.cli", "graph", "decoder-layer", "-d", "b200")
    code = (
        "import perfmodel\n"
        "from importlib.metadata import distribution\n"
        "points = distribution('perfmodel').entry_points\n"
        "print(perfmodel.__file__, *sorted({point.group for point in points}))"
    )
    where, *groups = run("-c", code).split()
    assert Path(where).is_relative_to(tmp_path / "site")
    assert groups == ["console_scripts", "pytest11"]


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_a_wheel_with_code_predicts_without_a_compiler(archives, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFMODEL_VARIANTS", "h100-sxm")
    wheel = hook("build_wheel", archives[0], tmp_path / "wheel")
    machine = re.sub(r"\W", "_", sysconfig.get_platform())
    assert wheel.name.endswith(f"-py3-none-{machine}.whl")
    printed = outside(wheel, tmp_path, ROOT / ".ci" / "installed.py")
    assert "code of its own package" in printed
    assert printed.count("by the package") == 4
    assert not list(archives[0].glob("perfmodel/compiled/*.so"))


def test_the_conda_recipe_asks_for_the_same_packages():
    text = (ROOT / ".ci" / "conda" / "meta.yaml").read_text()
    recipe = yaml.safe_load(re.sub(r"\{%.*?%\}", "", text).replace("{{", "<").replace("}}", ">"))
    version = re.search(r'set version = "(.*?)"', text)[1]
    asked = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    wanted = {name.lower() for name in PROJECT["project"]["dependencies"]}
    wanted = {re.sub(r"^matplotlib\b", "matplotlib-base", name) for name in wanted}
    assert asked == wanted | {f"python{PROJECT['project']['requires-python']}"}
    assert version == PROJECT["project"]["version"]
    (script,) = recipe["build"]["entry_points"]
    assert script == f"perfmodel = {PROJECT['project']['scripts']['perfmodel']}"
