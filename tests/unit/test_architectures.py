"""Architectures are data: every device finds its row, and a wrong table is one line."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from folders import ROOT

from perfmodel.algorithms import Matmul
from perfmodel.hardware import load, names
from perfmodel.predict import predict
from perfmodel.timing.architectures import ARCHITECTURES, Architecture, architecture_of
from perfmodel.timing.machine import machine


def test_every_device_with_a_compute_capability_finds_its_architecture() -> None:
    for slug in names():
        device, said = load(slug), list[str]()
        found = architecture_of(device, said)
        assert said == []
        if device.compute_capability is not None:
            major = device.compute_capability.split(".")[0]
            assert {device.compute_capability, major} & set(found.capabilities)
        else:
            assert found.name == "other" or device.architecture in found.names


def test_a_capability_stands_in_one_row() -> None:
    every = [name for row in ARCHITECTURES.values() for name in (*row.capabilities, *row.names)]
    assert len(every) == len(set(every))


def test_every_field_differs_somewhere() -> None:
    """A field that all rows share is no fact of an architecture."""
    for field in fields(Architecture):
        assert len({getattr(row, field.name) for row in ARCHITECTURES.values()}) > 1, field.name


def test_instructions_and_copies_belong_together() -> None:
    for row in ARCHITECTURES.values():
        assert row.rows == {"wgmma": 64, "tcgen05": 128}.get(row.instruction, 16)
        # What is multicast is sent by the copy engine.
        assert not row.clusters or row.copies == "tensor"


@pytest.mark.parametrize("slug", ["rtx5090", "rtx-pro-6000-server"])
def test_gb20x_has_neither_tcgen05_nor_multicast(slug: str) -> None:
    """PTX ISA: 12.x has mma.sync, tensor copies and clusters of one block."""
    device = load(slug)
    found = machine(device).architecture
    assert (found.instruction, found.rows, found.clusters, found.copies) == (
        "mma", 16, False, "tensor",
    )  # fmt: skip
    # Every operand byte of an L2 read goes to one block: no less than a tile's rows and columns.
    done = predict(Matmul(8192, 8192, 8192), device)
    tile = done.tile
    asked = 2 * 8192**3 * (1 / tile["m"] + 1 / tile["n"])
    assert done.bytes["l2"] >= 0.999 * asked


def test_the_next_generation_is_taken_for_the_newest_with_its_memory_and_said() -> None:
    for slug, name in (("b200", "blackwell"), ("rtx5090", "blackwell-gb20x")):
        said: list[str] = []
        next_one = replace(load(slug), compute_capability="13.0")
        assert architecture_of(next_one, said).name == name
        assert "13.0" in said[0]


def test_nothing_else_compares_compute_capabilities() -> None:
    known = {"timing/architectures.py", "hardware/device.py"}
    for path in (ROOT / "perfmodel").rglob("*.py"):
        name = str(path.relative_to(ROOT / "perfmodel"))
        if name not in known:
            assert "compute_capability" not in path.read_text(encoding="utf-8"), name
