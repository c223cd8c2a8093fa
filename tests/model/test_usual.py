"""Which kernel is taken where none is named, by architecture, and what lists say of kernels."""

import json

import pytest

from perfmodel import predict
from perfmodel.algorithms import Matmul
from perfmodel.analysis.usual import families, usual
from perfmodel.errors import ProblemError
from perfmodel.hardware import load, names
from perfmodel.timing.architectures import ARCHITECTURES
from perfmodel.timing.libraries import kernels


@pytest.fixture(scope="module")
def found():
    return families()


def test_every_device_is_of_one_family(found):
    slugs = [device.slug for devices in found.values() for device in devices]
    assert sorted(slugs) == sorted({load(name).slug for name in names()})
    described = ARCHITECTURES.keys() - {"other"}
    assert found.keys() - {"cpu", "gpu", "accelerator"} <= described


def test_devices_of_a_family_take_the_same_kernels(found):
    for name in ARCHITECTURES.keys() & found.keys():
        first, last = (usual(found[name][place]) for place in (0, -1))
        for case, kernel in first.items():
            assert last[case] in (kernel, ""), (name, case)


def test_what_a_device_cannot_run_is_left_empty():
    told = usual(load("p100-pcie-16gb"))
    assert told["gemm fp8"] == told["gemm int8"] == ""
    with pytest.raises(ProblemError):
        predict(Matmul(512, 512, 512, dtype="fp8"), load("p100-pcie-16gb"))


def test_lists_say_library_architectures_and_names(cli):
    rows = json.loads(cli("list", "implementations", "-f", "json")[1])["names"]
    of = {row["name"]: row for row in rows}
    assert of["flash3"]["library"] == "FlashAttention"
    assert of["flash3"]["runs_on"] == ["hopper"]
    assert "fa3" in of["flash3"]["goes_by"]
    for name, kernel in kernels().items():
        allowed = [one.name for one in ARCHITECTURES.values() if kernel.runs_on.allows(one)]
        assert of[name]["runs_on"] == allowed
    assert "cutlass-fp8-sm89" in cli("list", "architectures")[1]
    header = cli("list", "implementations", "--operator", "gemm")[1].splitlines()[0]
    assert header.split("  ")[0] == "name"
    assert "operators" not in header
    assert "runs on" in header


def test_an_architecture_is_shown_with_its_devices(cli):
    out = cli("show", "architecture", "hopper", "-f", "json")[1]
    facts = {fact["name"]: fact["value"] for fact in json.loads(out)["facts"]}
    assert "h100-sxm" in facts["devices"]
    assert facts["attention fp16"] == "flash3"
