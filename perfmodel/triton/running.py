"""Configs that cannot run or would spill, by compiled binaries or else by a bound.

Where a bundled kernel with the same tile was compiled for the target (`kernels/compiled.csv`), its
binary decides. Otherwise the accumulators of a block decide: a thread with more accumulators than
registers spills.

The limit on shared memory is the model's own (`TileDoesNotFit`), which counts attention's queries.
On AMD, Triton keeps these in registers, so there the largest tiles are dropped although they could
run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.timing.machine import Machine, machine
from perfmodel.triton.description import Description, Tiles

# Rows of an output tile from which Triton uses the instruction that reads shared memory.
_GROUP_ROWS = 64
# Config fields of a bundled kernel by dimension, and fields that change the code of a tile.
_FIELDS = {
    "matmul": {"m": "bm", "n": "bn", "k": "bk"},
    "attention-tiled": {"rows": "br", "keys": "bc"},
}
_OTHER_CODE = {"descriptors": ("none", "False"), "specialise": ("False",), "pack": ("1",)}
_ASSIGNED = re.compile(r"(\w+)='?([^,()']+)")

Known = Mapping[tuple[Any, ...], bool]
"""Whether a binary fits without a spill, by what it was compiled for."""


def buffered(device: Device, tiles: Tiles) -> Tiles:
    """The tiles with the number of shared-memory buffers for Triton's `num_stages`.

    Where the matrix unit reads operands from shared memory (wgmma, tcgen05), each stage is a
    buffer. Elsewhere the stage being multiplied is in registers: one buffer less, as the compiled
    kernels show (tests/bench/test_triton.py).
    """
    if "stages" not in tiles:
        return tiles
    architecture = machine(device).architecture
    high = tiles.get("m", tiles.get("rows", np.inf)) >= _GROUP_ROWS
    from_shared = high & (not architecture.feeds_registers)
    stages = np.where(from_shared, tiles["stages"], tiles["stages"] - 1)
    return {**tiles, "stages": np.maximum(stages, 1)}


def spilling(
    description: Description, problem: Problem, tiles: Tiles, device: Device
) -> np.ndarray:
    """Which of n tiles spill or do not fit, shape (n,)."""
    chip = machine(device)
    spills = _too_many_sums(description, problem, tiles, chip)
    known = _known(description.bundled)
    if not known:
        return spills
    target, common = _target(device), _form(description.bundled, problem)
    order = _dimensions(description.bundled)
    for i in range(len(spills)):
        place = tuple(float(tiles[name][i]) for name in order)
        usable = known.get((target, *common, *place))
        spills[i] = spills[i] if usable is None else not usable
    return spills


def _too_many_sums(
    description: Description, problem: Problem, tiles: Tiles, chip: Machine
) -> np.ndarray:
    """Where the accumulators of a thread take all of its registers.

    Accumulators in a memory of their own (tcgen05) do not count.
    """
    if chip.architecture.sums_apart and "columns" not in tiles:
        return np.zeros(len(tiles["warps"]), dtype=bool)
    each = 4.0 * description.accumulators(problem, tiles) / (tiles["warps"] * chip.warp_threads)
    return np.asarray(each >= chip.thread_registers_bytes)


def _target(device: Device) -> str:
    """The compile target whose binaries run on the device; empty if none does."""
    from perfmodel.proof.compiled.targets import target_of

    try:
        return target_of(device).name
    except ProblemError:
        return ""


def _form(bundled: str, problem: Any) -> tuple[str, ...]:
    """What distinguishes binaries of one tile: the type, and the head dimension."""
    return (problem.dtype, str(problem.head_dim)) if "attention" in bundled else (problem.dtype,)


def _dimensions(bundled: str) -> tuple[str, ...]:
    return (*_FIELDS[bundled], "warps", "stages")


@cache
def _known(bundled: str) -> Known:
    """The compiled binaries of a bundled kernel's plain code: no descriptors, no warp
    specialisation."""
    from perfmodel.proof.compiled import compilefacts

    if bundled not in _FIELDS:
        return {}
    names = {**_FIELDS[bundled], "warps": "warps", "stages": "stages"}
    binaries: dict[tuple[Any, ...], bool] = {}
    for fact in compilefacts.table().rows():
        if fact.kernel != bundled:
            continue
        config = dict(_ASSIGNED.findall(fact.config))
        if any(config.get(name, plain[0]) not in plain for name, plain in _OTHER_CODE.items()):
            continue
        sizes = dict(_ASSIGNED.findall(fact.problem))
        form = (sizes["dtype"], *(sizes[n] for n in ("head_dim",) if n in sizes))
        place = tuple(float(config[name]) for name in names.values())
        key = (fact.target, *form, *place)
        binaries[key] = binaries.get(key, True) and fact.usable
    return binaries
