"""Plans for attention: which kernels a class of implementation launches, for each tile of its
menu."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.attention import Attention
from perfmodel.arithmetic import as_floats, ceil_div
from perfmodel.errors import ProblemError
from perfmodel.schedules import tiled
from perfmodel.timing import splitkv
from perfmodel.timing.attention_style import (
    exchanging,
    on_tiles,
    operand_tile,
    order_of,
    passing,
    staged_resident,
    style,
)
from perfmodel.timing.cuts import HeadsCut
from perfmodel.timing.libraries.facts import AttentionFacts, Caller, TileRow
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting


def forward_plan(
    problem: Attention,
    kernel: AttentionFacts,
    setting: Setting,
    *,
    split: bool = False,
) -> Plan:
    """Forward attention by the class's schedule; for decode also with the numbers of slices."""
    machine, constants = setting.machine, setting.constants
    problem = _with_values(problem, kernel.caller)
    decodes = decoding(problem, kernel.caller)
    if kernel.caller.fresh and not decodes:
        problem, kernel = _cold_prompt(problem, kernel)
    traits = style(problem, kernel, setting)
    mask = problem.mask()
    if kernel.passed_columns is not None:
        exchange = passing(traits, kernel.passed_columns, machine, problem.head_dim)
        traits = replace(traits, turns=replace(traits.turns, exchange=exchange))
    override = setting.tile
    if (split or decodes) and kernel.schedule != "tiled-1":
        if override:
            raise ProblemError("the tile of split attention cannot be set; leave it out")
        return splitkv.split_plan(problem, mask, kernel, setting, traits)
    tiles, allowed = _tiles(problem, kernel, machine)
    br, bc, threads = np.array(tiles).T[:, None]
    if override:
        br, bc, threads, allowed = override["rows"], override["keys"], setting.own_threads, True
    pack = np.minimum(as_floats(problem.sizes())["r"], br) if kernel.packs else 1.0
    traits = on_tiles(traits, problem, mask, kernel, setting, br, bc, pack)
    traits = replace(traits, resident=staged_resident(problem, kernel, machine, br, bc, threads))
    query_slice = None
    if kernel.schedule == "tiled-1":
        if isinstance(kernel.cut, HeadsCut) and "split" not in constants.off:
            sizes = as_floats(problem.sizes())
            slices = kernel.cut.of_queries(sizes, machine)
            query_slice = ceil_div(ceil_div(problem.seq_q, slices), br) * br
        exchange = exchanging(traits, machine, bc, threads / 32)
        turns = replace(traits.turns, exchange=exchange, fills=ceil_div(problem.seq_kv, bc))
        traits = replace(traits, turns=turns)
    schedule = tiled.tiled(
        mask,
        br,
        bc,
        order=order_of(kernel),
        pack=pack,
        query_slice=query_slice,
        stages=override.get("stages", kernel.stages),
        threads=threads,
        operand_tile=operand_tile(kernel, machine, br, bc, threads),
        score_vector=problem.score_vector(),
        held=frozenset({"Q"}) if kernel.holds_queries else frozenset(),
        within=frozenset(problem.aliased()),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), traits)
    preparation = splitkv.preparing(kernel, setting)
    tile = {"rows": br, "keys": bc, **override}
    return Plan(schedule.name, (part,), tile, beside=preparation, allowed=allowed)


def _with_values(problem: Attention, caller: Caller) -> Attention:
    """The problem with the head dimension of values, where the caller's models have another one
    than for keys."""
    if caller.fewer_values is None or problem.head_dim_v is not None:
        return problem
    keys, values = caller.fewer_values
    return replace(problem, head_dim_v=np.where(problem.head_dim == keys, values, problem.head_dim))


def decoding(problem: Attention, caller: Caller) -> bool:
    """Whether a decode kernel runs: for one query, except where the caller treats one token as a
    prompt."""
    is_prompt = caller.prompts and np.all(np.asarray(problem.seq_kv == 1))
    return problem.phase == "decode" and not is_prompt


def _cold_prompt(problem: Attention, kernel: AttentionFacts) -> tuple[Attention, AttentionFacts]:
    """The problem and the kernel for a prompt without cached keys: keys are contiguous, not
    paged."""
    if not np.all(np.asarray(problem.seq_q == problem.seq_kv)):
        return problem, kernel
    window = None if kernel.caller.windowless else problem.window
    return replace(problem, kv_dtype=None, window=window), replace(
        kernel, caller=replace(kernel.caller, paged=False)
    )


def _tiles(
    problem: Attention, kernel: AttentionFacts, machine: Machine
) -> tuple[tuple[TileRow, ...], np.ndarray | bool]:
    """Tiles for many queries, and which problems each serves: shape (n, tiles).

    With paged keys some libraries run their decode kernel. Others have own tiles where a window
    hides keys.
    """
    dim, kv = int(np.max(problem.head_dim)), problem.elements()["kv"]
    if kernel.caller.paged and kernel.pages_by_decode:
        return (splitkv.decode_tile(kernel, machine, dim, kv),), True
    narrow = kv.bits <= 8
    hides = problem.windowed() & np.ones((1, 1), dtype=bool)
    menus = (
        (kernel.menu(dim, decode=False, narrow=narrow, windowed=True), hides),
        (kernel.menu(dim, decode=False, narrow=narrow), ~hides),
    )
    choices = [(menu, serves) for menu, serves in menus if np.any(serves)]
    tiles = tuple(tile for menu, _ in choices for tile in menu)
    return tiles, np.concatenate([np.repeat(s, len(m), axis=1) for m, s in choices], axis=1)
