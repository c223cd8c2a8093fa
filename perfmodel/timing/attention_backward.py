"""The plan for the backward pass of attention, with scores recomputed in tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.attention import AXES, Attention
from perfmodel.arithmetic import as_floats, ceil_div
from perfmodel.count import count
from perfmodel.schedules import tiled
from perfmodel.timing.attention_style import (
    exchanging,
    fed_by_registers,
    operand_tile,
    order_of,
    style,
)
from perfmodel.timing.cuts import HeadsCut
from perfmodel.timing.libraries import AttentionFacts
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Code, Style

# Share of the vector operations of a score that run on integer lanes: of 4, two halves of a packed
# conversion (CUDA C++ Programming Guide, throughput of conversions).
_INTEGER_BACKWARD = 1.0 / 4.0
# Tiles of a backward block and buffers of its queries, the first that fit: 64 × 64 with one buffer
# where shared memory is short, smaller for wide heads (FlashAttention-2's launch templates).
_BACKWARD = (
    (((128, 128),), 2),
    (((64, 128), (128, 64)), 2),
    (((64, 64),), 2),
    (((64, 64),), 1),
    (((32, 64),), 1),
    (((32, 32),), 1),
    (((16, 32),), 1),
    (((16, 16),), 1),
)
# Threads of a backward block, and the default number of buffers of its queries.
_THREADS, _STAGES = 256, 2
# Warp tile of a backward block: 8 warps share its 64 × 128 scores (the same templates).
_BACKWARD_WARP = (32, 32)
# FlashAttention-1's: 16 queries by the most keys that fit.
_BACKWARD_1 = tuple((((16, keys),), 2) for keys in (256, 128, 64, 32, 16))


def backward_plan(problem: Attention, kernel: AttentionFacts, setting: Setting) -> Plan:
    """Backward attention by the order of the class's schedule, scores recomputed in tiles."""
    machine, constants = setting.machine, setting.constants
    # `share` of a class is that of its forward loop.
    traits = style(problem, replace(kernel, share=None), setting)
    factor = constants["matrix_share"] if kernel.backward is None else kernel.backward
    share = traits.matrix_share * factor
    # The first keys are seen by the most queries.
    code = replace(traits.code, integer_share=_INTEGER_BACKWARD)
    # Warp groups that take turns in the forward pass share one tile in the backward pass, so only
    # another block hides their waits (FlashAttention-3, its backward loop as recalled).
    turns = replace(traits.turns, alone=traits.turns.alone or kernel.overlap == "warps")
    traits = replace(traits, matrix_share=share, longest_first=True, code=code, turns=turns)
    order, fed = order_of(kernel), fed_by_registers(kernel, machine)
    sums_apart = machine.architecture.sums_apart and not fed
    override = setting.tile
    if override:
        br, bc, stages = override["rows"], override["keys"], override.get("stages", _STAGES)
    else:
        br, bc, stages = _backward_tiles(problem, machine, order, sums_apart=sums_apart)
    threads = setting.own_threads if override else _THREADS
    key_slice = None
    if order == 1:
        keys = problem.seq_kv
        if isinstance(kernel.cut, HeadsCut) and "split" not in constants.off:
            sizes, causal = as_floats(problem.sizes()), problem.mask() is not None
            slices = kernel.cut.of_keys(sizes, bc, machine, causal=causal)
            keys = key_slice = ceil_div(ceil_div(problem.seq_kv, slices), bc) * bc
        exchange = exchanging(traits, machine, bc, threads / 32)
        turns = replace(traits.turns, exchange=exchange, fills=ceil_div(keys, bc))
        traits = replace(traits, turns=turns)
    schedule = tiled.tiled_backward(
        problem.mask(),
        br,
        bc,
        order=order,
        key_slice=key_slice,
        stages=stages,
        threads=threads,
        operand_tile=_BACKWARD_WARP if fed else operand_tile(kernel, machine, br, bc, threads),
        score_vector=problem.score_vector(),
        converted=True,
        spread=order != 1,
    )
    maps = Style(traits.compute, code=Code(vector_share=traits.code.vector_share), run=traits.run)
    styles = dict.fromkeys(("delta", "conversion"), maps)
    part = Part(schedule, problem.sizes(), problem.elements(), traits, styles)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc, **override})


def _backward_tiles(
    problem: Attention, machine: Machine, order: tiled.Order, *, sums_apart: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, keys and buffers of the first menu entry with a tile that fits; else of the last.

    Accumulators in tensor memory leave the registers to the rest (FlashAttention-4, 2603.05451,
    section 3: S, dP, dV, dK and dQ of 128 x 128 tiles in tensor memory).
    """
    wide = {axis: int(np.max(problem.sizes()[axis])) for axis in "de"}
    sizes = dict.fromkeys(AXES, 1) | wide
    for tiles, stages in _BACKWARD_1 if order == 1 else _BACKWARD:
        br, bc = np.array(tiles).T[:, None]
        schedule = tiled.tiled_backward(None, br, bc, order=order, stages=stages)
        cost = count(schedule, sizes, problem.elements()).kernels[-1]
        fits = cost.shared_footprint_bytes <= machine.shared_per_block
        if not sums_apart:
            fits = fits & (cost.register_footprint_bytes <= machine.registers_bytes)
        if np.any(fits):
            break
    return br, bc, stages
