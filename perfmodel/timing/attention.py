"""Plans for attention: which kernels a class of implementation launches, over its menu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.attention import Attention
from perfmodel.arithmetic import Number, as_floats, ceil_div
from perfmodel.schedules import standard, tiled
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import KernelClass, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Numbers of slices that are timed in full.
KEEP = 5
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
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
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
        together="attention_block_overlap",
        warm=around.warm,
        activity=around.activity,
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
    around: Circumstances,
    *,
    split: bool = False,
) -> Plan:
    """Forward attention by the class's schedule; decode adds the choice of slices."""
    how = style(problem, kernel, machine, constants, around)
    if kernel.schedule == "standard":
        return _standard(problem, how)
    if (split or problem.phase == "decode") and kernel.schedule != "tiled-1":
        return _split_plan(problem, kernel, machine, constants, how)
    menu = np.array(kernel.menu(int(np.max(problem.head_dim)), decode=False))
    br, bc, threads = menu.T[:, None]
    query_slice = None
    if kernel.schedule == "tiled-1":
        # Slices of the queries, as few as fill the machine: a menu of powers of two.
        br, bc, threads = (np.repeat(v, len(_QUERY_SLICES), axis=1) for v in (br, bc, threads))
        slices = np.tile(_QUERY_SLICES, len(menu))[None]
        query_slice = ceil_div(ceil_div(problem.seq_q, slices), br) * br
    schedule = tiled.tiled(
        problem.mask(),
        br,
        bc,
        order=_order(kernel),
        query_slice=query_slice,
        stages=kernel.stages,
        threads=threads,
        operand_tile=operand_tile(kernel, machine, bc),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc})


def _order(kernel: KernelClass) -> tiled.Order:
    orders: dict[str, tiled.Order] = {"tiled-1": 1, "tiled-2": 2, "tiled-3": 3}
    return orders[kernel.schedule]


def _split_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    how: Style,
    *,
    keep: int = KEEP,
) -> Plan:
    """Split-KV over the `keep` most promising numbers of slices, query heads packed into tiles."""
    sizes, elements = as_floats(problem.sizes()), problem.elements()
    width, dim = elements["kv"].bytes, int(np.max(problem.head_dim))
    rows, bc, threads = kernel.first_fitting(
        kernel.menu(dim, decode=True),
        lambda tile: (tile[0] + 2 * kernel.stages * tile[1]) * dim * width,
        machine.shared_per_block,
    )
    mask = problem.mask()
    if problem.phase == "decode" and mask is not None:
        # A window leaves one query so many whole key tiles, and nothing else is sliced.
        sizes["x"] = np.minimum(sizes["x"], (ceil_div(mask.left, bc) + 1) * bc)
        mask = None
    splits = _promising(sizes, rows, bc, machine, constants, keep)
    x = sizes["x"] * np.ones((1, 1))
    schedule = tiled.split_kv(
        mask,
        rows,
        np.ceil(np.ceil(x / splits) / bc) * bc,
        bc,
        pack=sizes["r"],
        stages=kernel.stages,
        operand_tile=operand_tile(kernel, machine, bc),
        threads=threads,
    )
    full = np.ones_like(splits)
    tile = {"rows": rows * full, "keys": bc * full, "splits": splits}
    return Plan("split-kv", (Part(schedule, sizes, elements, how),), tile)


def _promising(
    sizes: Mapping[str, Number],
    rows: int,
    bc: int,
    machine: Machine,
    constants: Constants,
    keep: int,
) -> np.ndarray:
    """Numbers of slices (n, keep) that can be fastest: enough to fill the machine, and no more.

    More slices shorten the longest chain of key tiles and cost a round of blocks and a combining
    kernel. Tests hold the choice against the whole menu.
    """
    b, g, r, q, x, d = (sizes[axis] * np.ones((1, 1)) for axis in "bgrqxd")
    splits = _SPLITS[None].astype(np.float64)
    grid = b * g * np.ceil(q * r / rows) * splits
    busiest = np.ceil(grid / machine.units)
    tiles = np.maximum(np.ceil(x / splits / bc), 1.0)
    latency = machine.hbm_latency * constants["latency_share"]
    chain = busiest * tiles * latency
    stream = busiest * tiles * (4.0 * bc * d) * (machine.units / machine.hbm_bytes_per_s)
    price = constants["attention_block_price"] * 1.75e9 / machine.clock_hz
    partial = 8.0 * b * g * r * q * d * splits / machine.l2_bytes_per_s
    second = np.where(splits > 1, price + constants["split_price"] + partial, 0.0)
    score = busiest * price + second + np.maximum(chain, stream)
    best = np.argpartition(score, keep, axis=1)[:, :keep]
    return np.take_along_axis(np.broadcast_to(splits, score.shape), best, axis=1)


def backward_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Plan:
    """Backward attention: recomputed in tiles, or unfused from saved probabilities."""
    how = style(problem, kernel, machine, constants, around)
    if kernel.schedule == "standard":
        return _standard(problem, how, backward=True)
    how = replace(how, matrix_share=how.matrix_share * constants[kernel.backward])
    order = _order(kernel)
    br = np.array([[64, 128]]) if order != 1 else np.array([[16]])
    bc = np.array([[128, 64]]) if order != 1 else np.array([[128]])
    schedule = tiled.tiled_backward(
        problem.mask(),
        br,
        bc,
        order=order,
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
