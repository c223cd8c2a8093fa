"""Shipped YAML: what the cache gives back is what the file says; a new file needs nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cases import cases
from elsewhere import Elsewhere
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

import perfmodel
from perfmodel import usercache, yamlfile, yamltable
from perfmodel.hardware import Device, catalogue, loads, names, specfile
from perfmodel.hardware.facts import walk

PACKAGE = Path(perfmodel.__file__).parent
SHIPPED = sorted({*PACKAGE.rglob("*.yaml"), *catalogue.shipped().rglob("*.yaml")})
TABLE = PACKAGE / "timing" / "constants.yaml"
TEXT = TABLE.read_text(encoding="utf-8")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv(usercache.ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


def never():
    raise AssertionError("decoded, though it was kept")


def test_every_shipped_document_is_kept_and_comes_back_the_same(cache):
    for path in SHIPPED:
        document = yamltable.parse(path.read_text(encoding="utf-8"))
        for make in (lambda document=document: document, never):
            kept = yamltable.kept(path, "document", make)
            assert repr(kept) == repr(document), "1, 1.0, True are equal"
    assert len(list(cache.glob("*/*/*"))) == len(SHIPPED)


def test_a_device_is_the_same_checked_decoded_and_kept(cache):
    for name in names():
        path = catalogue.shipped() / f"{name}.yaml"
        checked = loads(yamlfile.read(path), str(path))
        for _ in range(2):
            device = specfile.read(Device, path)
            assert device == checked
            assert repr(device) == repr(checked)
            assert [fact.si for _, fact in walk(device) if hasattr(fact, "si")] == [
                fact.si for _, fact in walk(checked) if hasattr(fact, "si")
            ]


def test_what_cannot_be_kept_is_made_each_time(cache):
    for _ in range(2):
        assert yamltable.kept(TABLE, "functions", lambda: never) is never
        assert next(yamltable.kept(TABLE, "iterator", lambda: iter([1]))) == 1


class Runs:
    """A pickle of it would run a command."""

    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize("value", [Runs(), Path("x")])
def test_a_cached_file_runs_nothing(cache, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert yamltable.kept(TABLE, "other", lambda: value) is value
    assert not (tmp_path / "ran").exists()


def test_an_edited_file_is_decoded_and_what_was_kept_before_goes(cache, monkeypatch):
    assert yamltable.kept(TABLE, "text", lambda: "old") == "old"
    monkeypatch.setattr(yamltable, "_state", lambda: "another")
    assert yamltable.kept(TABLE, "text", lambda: "new") == "new"
    (folder,) = (cache / "shipped").iterdir()
    assert folder.name.endswith("-another")


@given(st.data())
def test_a_damaged_file_is_ignored_and_written_anew(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(usercache.ENVIRONMENT, str(folder))
        document = yamltable.read(TABLE)
        (file,) = folder.glob("*/*/*")
        sound = file.read_bytes()
        at = data.draw(st.integers(0, len(sound) - 1))
        damage = data.draw(st.sampled_from(["cut", "byte", "other"]))
        file.write_bytes(
            {
                "cut": sound[:at],
                "byte": sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :],
                "other": data.draw(st.binary()),
            }[damage]
        )
        assert yamltable.read(TABLE) == document
        assert file.read_bytes() == sound


def test_a_file_of_ones_own_is_not_kept(cache, tmp_path):
    own = tmp_path / TABLE.name
    own.write_text("a: 1\n", encoding="utf-8")
    assert yamltable.read(own) == {"a": 1}
    assert not cache.exists()


@pytest.mark.parametrize("place", ["a file", "a file in its way", "a folder in its way", "no home"])
def test_where_nothing_can_be_kept_all_is_read(place, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(usercache.ENVIRONMENT, str(folder))
    if place == "a file":
        folder.write_text("")
    elif place == "a file in its way":
        yamltable.read(TABLE)
        (inner,) = (folder / "shipped").iterdir()
        shutil.rmtree(inner)
        inner.write_text("")
    elif place == "a folder in its way":
        yamltable.read(TABLE)
        (file,) = folder.glob("*/*/*")
        file.unlink()
        file.mkdir()
    else:
        monkeypatch.delenv(usercache.ENVIRONMENT)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", _homeless)
    before = sorted(tmp_path.rglob("*"))
    assert yamltable.read(TABLE) == yamltable.parse(TEXT)
    assert sorted(tmp_path.rglob("*")) == before


def _homeless():
    raise RuntimeError("Could not determine home directory.")


@cases
def test_the_folder_is_that_of_the_platform(platform, variable, below, tmp_path, monkeypatch):
    monkeypatch.delenv(usercache.ENVIRONMENT, raising=False)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert usercache.folder("yaml") == tmp_path / below / "perfmodel" / "yaml"
    if variable:
        monkeypatch.setenv(variable, "not/absolute")
        assert usercache.folder("yaml") == tmp_path / below / "perfmodel" / "yaml"
        monkeypatch.setenv(variable, str(tmp_path / "own"))
        assert usercache.folder("yaml") == tmp_path / "own" / "perfmodel" / "yaml"
    monkeypatch.setenv(usercache.ENVIRONMENT, str(tmp_path / "named"))
    assert usercache.folder("yaml") == tmp_path / "named" / "yaml"


def test_no_yaml_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match="expected"):
        yamltable.parse("a: [1,\n b: 2")
    with pytest.raises(FileNotFoundError):
        yamltable.read(tmp_path / "none.yaml")


# ---- A copy of the package -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package and of the specs, to which files are added, with a cache of its own."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / PACKAGE.name)
    specs = folder / catalogue.shipped().relative_to(PACKAGE.parent)
    shutil.copytree(catalogue.shipped(), specs, dirs_exist_ok=True)
    return folder, specs


@pytest.fixture(scope="module")
def elsewhere(copy):
    """Runs a perfmodel command of the copy: its exit code and output."""
    (folder, _) = copy
    started = Elsewhere(folder, folder, **{usercache.ENVIRONMENT: str(folder / "cache")})
    yield started
    started.close()


def test_many_processes_that_start_at_once_read_the_same(copy):
    folder, _ = copy
    environment = {"PYTHONPATH": str(folder), usercache.ENVIRONMENT: str(folder / "cache")}
    command = [sys.executable, "-m", "perfmodel", "predict", "gemm", "-d", "h100", "-f", "json"]
    processes = [
        subprocess.Popen(command, env={**os.environ, **environment}, cwd=folder,
                         stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]  # fmt: skip
    (out,) = {process.communicate()[0] for process in processes}
    assert json.loads(out)["predictions"]
    files = list((folder / "cache").glob("*/*/*"))
    assert len(files) > 10
    assert not [path for path in files if path.name.startswith("tmp")], "a temporary file is left"


def device(folder, specs):
    text = (specs / "h100-sxm.yaml").read_text(encoding="utf-8")
    text = text.replace("slug: h100-sxm", "slug: added-gpu").replace("aliases: [", "aliases: [new,")
    return specs / "added-gpu.yaml", text


def engine(folder, specs):
    engines = folder / PACKAGE.name / "serving" / "engines"
    text = (engines / "ideal.yaml").read_text(encoding="utf-8")
    return engines / "added.yaml", text.replace("engine: ideal", "engine: added")


def network(folder, specs):
    presets = folder / PACKAGE.name / "networks" / "presets"
    text = (presets / "gpt-j.yaml").read_text(encoding="utf-8")
    text = text.replace("gpt-j-6b:", "added-6b:").replace("[gptj-6b]", "[added]")
    return presets / "added.yaml", text


def kernel(folder, specs):
    file = folder / PACKAGE.name / "timing" / "libraries" / "cublas.yaml"
    text = file.read_text(encoding="utf-8").rstrip("\n")
    return file, f"{text}\n  added-gemm: {{like: cublas-mma, source: an example}}\n"


ADDED = {
    device: ("predict", "gemm", "-d", "new"),
    engine: ("infer", "llama-3-8b", "-d", "h100-sxm", "--engine", "added"),
    network: ("network", "show", "added"),
    kernel: ("predict", "gemm", "-d", "h100-sxm", "--implementation", "added-gemm"),
}


@pytest.fixture(scope="module")
def added(copy, elsewhere):
    """The same with a file of every kind in the copy."""
    for kind in ADDED:
        path, text = kind(*copy)
        path.write_text(text, encoding="utf-8")
    return elsewhere


@pytest.mark.parametrize("kind", ADDED, ids=lambda kind: kind.__name__)
def test_what_is_added_is_one_file_and_nothing_generated(added, cli, kind):
    refused(cli(*ADDED[kind]), "no ")
    code, out, err = added(*ADDED[kind])
    assert (code, "added" in out) == (0, True), err


def test_a_shipped_spec_that_was_edited_is_checked(copy, elsewhere):
    path = copy[1] / "h200-sxm.yaml"
    assert elsewhere("predict", "gemm", "-d", "h200-sxm")[0] == 0
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("vendor: NVIDIA", "vender: NVIDIA"), encoding="utf-8")
    for _ in range(2):
        result = elsewhere("predict", "gemm", "-d", "h200-sxm")
        refused(result, "vender: there is no such key; did you mean vendor?")
