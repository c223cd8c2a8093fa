"""Split-KV attention for decoding (Flash-Decoding): keys split over the grid, then a reduction
kernel.

Every slice of `split` keys writes an fp32 partial O and its log-sum L; the second kernel weights
the slices by exp(L − L_max). With one slice the first kernel writes the result itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import triton
import triton.language as tl
from perfmodel_kernels.attention_tile import attend_all, key_ranges
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    check_forward,
    check_tile,
    dims,
    forward_reference,
    inputs,
    mask_arguments,
    padded,
    power_of_two,
    scale_of,
)

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import Argument, Array, BundledKernel, Descriptor, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import split_kv

NAME = "attention-decode"
COMBINED = 8192  # elements of partial results that a block of the combining kernel loads at once


@dataclass(frozen=True)
class DecodeConfig:
    """A tile of decoding. Raises `ProblemError` if `split` is not a multiple of `bc`."""

    split: int = 1024
    """Keys of a slice."""
    br: int = 16
    """Rows of a tile."""
    bc: int = 64
    """Keys of a step."""
    pack: int = 8
    """Query heads that share a tile."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""
    descriptors: bool = False
    """Whether keys and values are loaded by tensor descriptors."""
    by_bits: bool = False
    """Whether bf16 is rounded by integer addition, for targets without an instruction that rounds.
    """

    def __post_init__(self) -> None:
        check_tile(self.bc, br=self.br, pack=self.pack, split=self.split)
        if self.split % self.bc:
            raise ProblemError(f"split {self.split} must be a multiple of bc {self.bc}")

    @property
    def rows(self) -> int:
        """Query rows of each head in a tile that `pack` heads share."""
        return max(self.br // self.pack, 1)

    @property
    def tile(self) -> int:
        """Rows of the padded tile: a power of two, of which `rows` × `pack` are used."""
        return max(power_of_two(self.rows * self.pack), 16)


# Configs that do not depend on a target or its number of units.
CONFIGS = tuple(
    DecodeConfig(split, 16, bc, pack, stages=stages)
    for pack in (8, 4, 1)
    for split, bc, stages in ((512, 64, 3), (1024, 64, 3), (4096, 64, 3), (256, 32, 2))
)


@triton.jit
def split_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv, split,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    ROWS: tl.constexpr, PACK: tl.constexpr, TILE: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    DESCRIPTORS: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """One slice of keys for ROWS rows of PACK heads; slices fastest, then query tiles, then heads.

    TILE rows are computed, of which ROWS × PACK are real.
    """
    slices = (seq_kv + split - 1) // split
    row_tiles = (seq_q + ROWS - 1) // ROWS
    packs = (group + PACK - 1) // PACK
    block = tl.program_id(0)
    part = block % slices
    i = (block // slices) % row_tiles
    outer = block // slices // row_tiles
    kv_head = (outer // packs).to(tl.int64)
    stacked = tl.arange(0, TILE)
    head = (outer % packs) * PACK + stacked // ROWS
    row = i * ROWS + stacked % ROWS
    alive = (head < group) & (row < seq_q) & (stacked < ROWS * PACK)
    at = (kv_head * group + head) * seq_q + row
    left = at * slices + part
    e = tl.arange(0, BE)
    kept = alive[:, None] & (e < E)[None, :]
    first, whole, edge, last = key_ranges(i, seq_q, seq_kv, ROWS, BC, CAUSAL, WINDOW)
    first = tl.maximum(first, part * split)
    last = tl.minimum(last, (part + 1) * split)
    whole = tl.minimum(tl.maximum(whole, first), last)
    edge = tl.minimum(tl.maximum(edge, whole), last)
    # A slice that no row of the tile sees leaves nothing, unless it is the only one.
    if first < last:
        d = tl.arange(0, BD)
        present = alive[:, None] & (d < D)[None, :]
        q = tl.load(Q + at[:, None] * D + d[None, :], mask=present, other=0.0)
        out, log_sum = attend_all(
            q, K, V, row, kv_head, first, whole, edge, last, seq_kv, seq_kv - seq_q, scale,
            D, E, BD, BE, BC, CAUSAL, WINDOW, DESCRIPTORS, False, BY_BITS,
        )  # fmt: skip
        tl.store(L + left, log_sum, mask=alive)
        tl.store(OUT + left[:, None] * E + e[None, :], out.to(OUT.dtype.element_ty), mask=kept)
    elif slices == 1:
        tl.store(L + left, tl.full([TILE], float("-inf"), tl.float32), mask=alive)
        nothing = tl.full([TILE, BE], 0.0, OUT.dtype.element_ty)
        tl.store(OUT + left[:, None] * E + e[None, :], nothing, mask=kept)


@triton.jit
def combine_slices(
    PARTS, LOGS, OUT, L, seq_q, seq_kv, split,
    E: tl.constexpr, BE: tl.constexpr, ROWS: tl.constexpr, COUNT: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """One query row of one head: weighs the slices that its tile has seen, COUNT at a time."""
    at = tl.program_id(0).to(tl.int64)
    slices = (seq_kv + split - 1) // split
    first, _, _, last = key_ranges((at % seq_q) // ROWS, seq_q, seq_kv, ROWS, 1, CAUSAL, WINDOW)
    end = (last + split - 1) // split
    e = tl.arange(0, BE)
    top = float("-inf")
    total = 0.0
    out = tl.full([BE], 0.0, tl.float32)
    for start in range(first // split, end, COUNT):
        part = start + tl.arange(0, COUNT)
        row = at * slices + part
        log_sum = tl.load(LOGS + row, mask=part < end, other=float("-inf"))
        present = (part < end)[:, None] & (e < E)[None, :]
        o = tl.load(PARTS + row[:, None] * E + e[None, :], mask=present, other=0.0)
        new = tl.maximum(top, tl.max(log_sum, 0))
        base = tl.where(new == float("-inf"), 0.0, new)
        weight = tl.exp(log_sum - base)
        rescale = tl.exp(top - base)
        out = out * rescale + tl.sum(o * weight[:, None], 0)
        total = total * rescale + tl.sum(weight, 0)
        top = new
    blind = total == 0.0
    total = tl.where(blind, 1.0, total)
    tl.store(L + at, tl.where(blind, float("-inf"), top + tl.log(total)))
    tl.store(OUT + at * E + e, (out / total).to(OUT.dtype.element_ty), mask=e < E)


def _slices(problem: Attention, config: DecodeConfig) -> int:
    return ceil_div(problem.seq_kv, config.split)


def _arrays(problem: Attention, config: DecodeConfig) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    slices = _slices(problem, config)
    parts = (
        Array("parts", (b, g * r, q, slices, e), "fp32", "scratch", "O"),
        Array("logs", (b, g * r, q, slices), "fp32", "scratch", "L"),
    )
    return (
        *inputs(problem),
        *(parts if slices > 1 else ()),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def _masked(problem: Attention) -> dict[str, bool | int]:
    """The mask as constants; a single query is the last one and sees every key, causal or not."""
    found = mask_arguments(problem)
    return found | {"CAUSAL": problem.causal and (problem.seq_q > 1 or bool(found["WINDOW"]))}


def _slice_launch(problem: Attention, config: DecodeConfig) -> Launch:
    b, g, r, q, x, d, e = dims(problem)
    many = _slices(problem, config) > 1
    keys: dict[str, Argument] = {"K": "K", "V": "V"}
    if config.descriptors:
        keys["K"] = Descriptor("K", (b * g, x, d), (1, config.bc, padded(d)))
        keys["V"] = Descriptor("V", (b * g, x, e), (1, config.bc, padded(e)))
    tiles = ceil_div(r, config.pack) * ceil_div(q, config.rows)
    return Launch(
        "split-kv",
        split_forward,
        (b * g * tiles * _slices(problem, config),),
        {
            "Q": "Q",
            **keys,
            "OUT": "parts" if many else "O",
            "L": "logs" if many else "L",
            "scale": scale_of(problem) * LOG2E,
            "group": r,
            "seq_q": q,
            "seq_kv": x,
            "split": config.split,
        },
        {
            "D": d,
            "E": e,
            "BD": padded(d),
            "BE": padded(e),
            "ROWS": config.rows,
            "PACK": config.pack,
            "TILE": config.tile,
            "BC": config.bc,
            **_masked(problem),
            "DESCRIPTORS": config.descriptors,
            "BY_BITS": config.by_bits,
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )


def _combine_launch(problem: Attention, config: DecodeConfig) -> Launch:
    b, g, r, q, x, _, e = dims(problem)
    most = max(COMBINED // padded(e), 1)
    return Launch(
        "combine",
        combine_slices,
        (b * g * r * q,),
        {
            "PARTS": "parts",
            "LOGS": "logs",
            "OUT": "O",
            "L": "L",
            "seq_q": q,
            "seq_kv": x,
            "split": config.split,
        },
        {
            "E": e,
            "BE": padded(e),
            "ROWS": config.rows,
            "COUNT": min(power_of_two(_slices(problem, config)), most),
            **_masked(problem),
        },
    )


def _plan(problem: Attention, config: DecodeConfig) -> tuple[Launch, ...]:
    check_forward(NAME, problem)
    slices = _slice_launch(problem, config)
    if _slices(problem, config) == 1:
        return (slices,)
    return (slices, _combine_launch(problem, config))


def _schedule(problem: Attention, config: DecodeConfig) -> Schedule:
    return split_kv(
        problem.mask(),
        config.br,
        config.split,
        config.bc,
        pack=config.pack,
        stages=config.stages,
        threads=32 * config.warps,
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    found = forward_reference(problem, tensors)
    return {"O": found["O"], "L": found["L"]}


def _case(shape: tuple[int, ...], dtype: str, config: DecodeConfig, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, **more), config


@dataclass(frozen=True)
class Shape:
    """The tile of a slice's loop, without the split."""

    bc: int
    """Keys of a step."""
    warps: int
    """Warps of a block."""
    stages: int
    """Buffers of the pipeline."""
    descriptors: bool = False
    """Whether keys and values are loaded by tensor descriptors."""


# Shapes by target and padded head size, chosen for no spills and many bytes in flight.
_COPIED = (Shape(128, 4, 2, True), Shape(64, 4, 3, True))
SHAPES: Mapping[str, Mapping[int, tuple[Shape, ...]]] = {
    "sm_80": {64: (Shape(64, 4, 3),), 128: (Shape(64, 4, 3),), 256: (Shape(32, 4, 3),)},
    "sm_89": {64: (Shape(64, 4, 3),), 128: (Shape(64, 4, 2),), 256: (Shape(32, 4, 2),)},
    "sm_90": {
        64: (Shape(128, 4, 3, True), Shape(64, 4, 4)),
        128: (*_COPIED, Shape(64, 4, 3)),
        256: (Shape(64, 4, 2, True), Shape(32, 4, 3)),
    },
    "sm_100": {
        64: (Shape(128, 4, 3, True), Shape(64, 4, 4)),
        128: (*_COPIED, Shape(64, 4, 3)),
        256: (Shape(64, 4, 2, True), Shape(32, 4, 3)),
    },
    "sm_120": {
        64: (Shape(64, 4, 3, True), Shape(64, 4, 3)),
        128: (Shape(64, 4, 2, True), Shape(64, 4, 2)),
        256: (Shape(32, 4, 2, True), Shape(32, 4, 2)),
    },
    "gfx942": {64: (Shape(128, 4, 2),), 128: (Shape(64, 4, 2),), 256: (Shape(32, 4, 2),)},
}
_WAVES = (2, 1, 4)  # of resident blocks that the slices should fill, best guess first
_LEAST_STEPS = (
    4  # of a slice, so that its partial results are small compared with the keys it reads
)


def menu_of(problem: Attention, target: str, units: int) -> tuple[DecodeConfig, ...]:
    """Configs worth trying, best guess first: slices that fill the units one to four times."""
    if target not in SHAPES:
        return ()
    b, g, group, seq_q, _, d, e = dims(problem)
    size = min(max(padded(d), padded(e), 64), 256)
    # Heads of a group and their queries share the 16 rows of the smallest matrix instruction, or up
    # to 64.
    br = min(max(power_of_two(group * seq_q), 16), 64)
    pack = min(group, max(br // seq_q, 1))
    tiles = b * g * ceil_div(group, pack) * ceil_div(seq_q, max(br // pack, 1))
    first, *others = SHAPES[target][size]
    chosen = [(first, waves) for waves in _WAVES] + [(shape, _WAVES[0]) for shape in others]
    found = []
    for shape, waves in chosen:
        split = _split(problem, shape, units * _resident(problem, shape, target) * waves, tiles)
        config = DecodeConfig(split, br, shape.bc, pack, shape.warps, shape.stages)
        found.append(replace(config, descriptors=shape.descriptors, by_bits=target == "gfx942"))
    return tuple(dict.fromkeys(found))


def _resident(problem: Attention, shape: Shape, target: str) -> int:
    """Blocks that fit in a unit's shared memory, by their buffers of keys and values."""
    *_, d, e = dims(problem)
    keys = next(array for array in inputs(problem) if array.name == "K")
    buffers = shape.bc * (padded(d) + padded(e)) * keys.item_bytes * max(shape.stages - 1, 1)
    return min(max(TARGETS[target].shared_per_block // buffers, 1), 4)


def _split(problem: Attention, shape: Shape, blocks: int, tiles: int) -> int:
    """Keys of a slice, a multiple of bc, for which `tiles` × slices is at most `blocks`."""
    keys = min(problem.seq_kv, (problem.window or problem.seq_kv) + problem.seq_q)
    slices = max(blocks // tiles, 1)
    steps = max(ceil_div(ceil_div(keys, slices), shape.bc), _LEAST_STEPS)
    return steps * shape.bc


# Decoding from 8k and 128k keys: many heads, grouped heads, one for all.
FORMS = (
    *(Attention(32, 32, 32 // group, 1, 8192, 128, causal=True) for group in (1, 4, 8)),
    Attention(32, 32, 8, 1, 8192, 64, causal=True),
    Attention(32, 32, 8, 1, 8192, 256, causal=True),
    Attention(1, 32, 8, 1, 131072, 128, causal=True),
)

CASES = (
    _case((2, 8, 2, 1, 1000, 64), "fp16", DecodeConfig(256, 16, 64, 4)),
    _case((1, 4, 4, 1, 333, 40), "fp32", DecodeConfig(128, 16, 32, 1)),
    _case((3, 6, 2, 1, 777, 64), "fp16", DecodeConfig(256, 16, 64, 4), causal=True),
    _case((1, 4, 1, 1, 900, 32), "fp32", DecodeConfig(128, 16, 32, 4), window=200),
    _case((2, 4, 2, 5, 300, 32), "fp16", DecodeConfig(64, 8, 32, 2), causal=True),
    _case((1, 2, 2, 1, 100, 64), "fp16", DecodeConfig(128, 16, 64, 1)),
    _case((1, 4, 2, 7, 260, 48, 32), "fp32", DecodeConfig(64, 8, 32, 2), causal=True, window=90),
    # The last key opens a slice.
    _case((1, 4, 2, 5, 257, 32), "fp32", DecodeConfig(64, 8, 32, 2), causal=True),
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="split-KV attention with its reduction kernel",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=menu_of,
        forms=FORMS,
    ),
)
