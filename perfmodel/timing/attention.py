"""Plans for attention: which kernels a class of implementation launches, over its menu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.attention import Attention
from perfmodel.arithmetic import Number, ceil_div
from perfmodel.schedules import standard, tiled
from perfmodel.timing.classes import KernelClass, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Scores of a row that a warp holds; longer rows go by three times (PyTorch SoftMax.cu).
_HELD_ROW = 1024
# Slices that a split-KV launch may choose from (FlashAttention-2 tries all up to 128).
_QUERY_SLICES = np.array([1, 2, 4, 8, 16, 32])
_SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128])


def compute_type(problem: Attention, machine: Machine) -> str:
    """Rate that both contractions run at: the type of the queries, unless the device lacks it."""
    if problem.dtype == "bf16" and "bf16" not in machine.device.matrix_types:
        return "fp16" if "fp16" in machine.device.matrix_types else "fp32"
    return problem.dtype


def style(
    problem: Attention, kernel: KernelClass, machine: Machine, constants: Constants, warm: float
) -> Style:
    """The class's facts and constants as the kernel timer wants them."""
    share = constants["matrix_share"] * matrix_share(kernel, machine)
    if kernel.schedule == "tiled-1":
        share *= constants["flash1_share"]
    return Style(
        compute=compute_type(problem, machine),
        matrix_share=share,
        overlap=constants[kernel.overlap],
        price=constants["attention_block_price"] / constants["block_price"],
        warm=warm,
        vector_share=constants["softmax_vector_share"],
    )


def operand_tile(kernel: KernelClass, machine: Machine, bc: Number) -> tuple[Number, Number]:
    """Rows and columns that share one operand fetch; see `Kernel.operand_tile`."""
    if kernel.instruction == "register" or machine.generation < 9:
        return 64, 64
    return (128 if machine.generation >= 10 else 64), bc


def forward_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    warm: float,
    *,
    split: bool = False,
) -> Plan:
    """Forward attention by the class's schedule; decode adds the choice of slices."""
    how = style(problem, kernel, machine, constants, warm)
    sizes, elements = dict(problem.sizes()), problem.elements()
    if kernel.schedule == "standard":
        return _standard(problem, how)
    decode = split or problem.phase == "decode"
    menu = kernel.menu(int(np.max(problem.head_dim)), decode=decode)
    rows, columns, threads = (np.array(column) for column in zip(*menu, strict=True))
    if decode and kernel.schedule != "tiled-1":
        each, splits = np.meshgrid(np.arange(len(menu)), _SPLITS, indexing="ij")
        br, bc = rows[each.ravel()][None], columns[each.ravel()][None]
        threads = threads[each.ravel()][None]
        mask = problem.mask()
        if problem.phase == "decode" and mask is not None:
            # A window leaves one query so many whole key tiles, and nothing else is sliced.
            sizes["x"] = np.minimum(sizes["x"], (ceil_div(mask.left, bc) + 1) * bc)
            mask = None
        slice_keys = ceil_div(ceil_div(sizes["x"], splits.ravel()[None]), bc) * bc
        schedule = tiled.split_kv(
            mask,
            br,
            slice_keys,
            bc,
            pack=sizes["r"],
            operand_tile=operand_tile(kernel, machine, bc),
            threads=threads,
        )
        tile = {"rows": br, "keys": bc, "splits": splits.ravel()[None]}
        return Plan("split-kv", (Part(schedule, sizes, elements, how),), tile)
    br, bc = rows[None], columns[None]
    order = int(kernel.schedule.rsplit("-", 1)[1])
    query_slice = None
    if order == 1:
        # Slices of the queries, as few as fill the machine: a menu of powers of two.
        br, bc, threads = (np.repeat(v, len(_QUERY_SLICES)) for v in (rows, columns, threads))
        slices = np.tile(_QUERY_SLICES, len(menu))
        query_slice = ceil_div(ceil_div(problem.seq_q, slices[None]), br[None]) * br[None]
        br, bc = br[None], bc[None]
    schedule = tiled.tiled(
        problem.mask(),
        br,
        bc,
        order=order,  # type: ignore[arg-type]
        query_slice=query_slice,
        threads=threads[None],
        operand_tile=operand_tile(kernel, machine, bc),
    )
    tile = {"rows": br, "keys": bc}
    return Plan(schedule.name, (Part(schedule, sizes, elements, how),), tile)


def backward_plan(
    problem: Attention, kernel: KernelClass, machine: Machine, constants: Constants, warm: float
) -> Plan:
    """Backward attention: recomputed in tiles, or unfused from saved probabilities."""
    how = style(problem, kernel, machine, constants, warm)
    if kernel.schedule == "standard":
        return _standard(problem, how, backward=True)
    how = replace(how, matrix_share=how.matrix_share * constants[kernel.backward])
    order = int(kernel.schedule.rsplit("-", 1)[1])
    br = np.array([[64, 128]]) if order != 1 else np.array([[16]])
    bc = np.array([[128, 64]]) if order != 1 else np.array([[128]])
    schedule = tiled.tiled_backward(
        problem.mask(),
        br,
        bc,
        order=order,  # type: ignore[arg-type]
        operand_tile=operand_tile(kernel, machine, bc),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc})


def _standard(problem: Attention, how: Style, *, backward: bool = False) -> Plan:
    """Unfused: a causal problem masks its full score matrix in a pass of its own."""
    mask = problem.mask()
    passes: Any = "none" if mask is None else "masked_fill"
    build = standard.standard_backward if backward else standard.standard
    schedule = build(mask, mask_pass=passes, row_tile=np.minimum(problem.seq_kv, _HELD_ROW))
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    return Plan(schedule.name, (part,), {"rows": np.array([[128]]), "keys": np.array([[128]])})
