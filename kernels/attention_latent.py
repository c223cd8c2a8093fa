"""Decoding of absorbed latent attention (MLA): all heads read one vector a token, key and value.

A key has `head_dim_v` latent columns and a few rotated ones (512 and 64 in DeepSeek-V2, 2405.04434,
section 2.1); a value is the latent columns of the key, so that a tile of keys is loaded once for
both products. A block has `pack` heads and one slice of `split` keys. Slices leave partial results
that `attention-decode`'s second kernel combines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import triton
import triton.language as tl
from perfmodel_kernels.attention_decode import COMBINED, combine_slices
from perfmodel_kernels.attention_tile import rounded
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    check_forward,
    check_tile,
    dims,
    forward_reference,
    padded,
    power_of_two,
    scale_of,
)
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_positive_counts
from perfmodel_kernels.menus import every

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import split_kv

NAME = "attention-latent"


@dataclass(frozen=True)
class LatentConfig:
    """A tile of decoding."""

    split: int = 1024
    """Keys of a slice, whole steps."""
    bc: int = 32
    """Keys of a step."""
    pack: int = 16
    """Heads of a tile."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 2
    """Buffers of the pipeline."""
    by_bits: bool = False
    """Whether bf16 is rounded by integer addition, for targets without an instruction that rounds.
    """

    @property
    def tile(self) -> int:
        """Rows of the padded tile."""
        return max(power_of_two(self.pack), 16)


@triton.jit
def latent_forward(
    Q, K, OUT, L, scale, heads, seq_kv, split,
    LATENT: tl.constexpr, ROTATED: tl.constexpr, PACK: tl.constexpr, TILE: tl.constexpr,
    BC: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """One slice of keys for PACK heads; slices fastest, then packs of heads, then sequences."""
    slices = tl.cdiv(seq_kv, split)
    packs = tl.cdiv(heads, PACK)
    block = tl.program_id(0)
    part = block % slices
    stacked = tl.arange(0, TILE)
    head = block // slices % packs * PACK + stacked
    sequence = (block // slices // packs).to(tl.int64)
    alive = (stacked < PACK) & (head < heads)
    at = sequence * heads + head
    c, r, key = tl.arange(0, LATENT), tl.arange(0, ROTATED), tl.arange(0, BC)
    q_at = Q + at[:, None] * (LATENT + ROTATED)
    q = tl.load(q_at + c[None, :], mask=alive[:, None], other=0.0)
    q_rotated = tl.load(q_at + LATENT + r[None, :], mask=alive[:, None], other=0.0)
    k_start = K + (sequence * seq_kv + part * split) * (LATENT + ROTATED)
    top = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.full([TILE], 0.0, tl.float32)
    out = tl.full([TILE, LATENT], 0.0, tl.float32)
    length = tl.minimum(split, seq_kv - part * split)
    for x in range(0, length, BC):
        inside = x + key < length
        k_at = k_start + (x + key)[:, None] * (LATENT + ROTATED)
        k = tl.load(k_at + c[None, :], mask=inside[:, None], other=0.0)
        k_rotated = tl.load(k_at + LATENT + r[None, :], mask=inside[:, None], other=0.0)
        s = tl.dot(q_rotated, tl.trans(k_rotated), input_precision="ieee")
        s = tl.dot(q, tl.trans(k), s, input_precision="ieee") * scale
        s = tl.where(inside[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))  # a step has a key, so it is finite
        p = tl.exp2(s - new[:, None])
        rescale = tl.exp2(top - new)
        total = total * rescale + tl.sum(p, 1)
        p = rounded(p, q.dtype, BY_BITS)
        out = tl.dot(p, k, out * rescale[:, None], input_precision="ieee")
        top = new
    left = at * slices + part
    tl.store(L + left, (top + tl.log2(total)) * 0.6931471805599453, mask=alive)
    tl.store(
        OUT + left[:, None] * LATENT + c[None, :],
        (out * (1.0 / total)[:, None]).to(OUT.dtype.element_ty),
        mask=alive[:, None],
    )


def _slices(problem: Attention, config: LatentConfig) -> int:
    return ceil_div(problem.seq_kv, config.split)


def _arrays(problem: Attention, config: LatentConfig) -> tuple[Array, ...]:
    b, _, heads, q, x, d, e = dims(problem)
    slices = _slices(problem, config)
    parts = (
        Array("parts", (b, heads, q, slices, e), "fp32", "scratch", "O"),
        Array("logs", (b, heads, q, slices), "fp32", "scratch", "L"),
    )
    return (
        Array("Q", (b, heads, q, d), problem.dtype),
        Array("K", (b, 1, x, d), problem.dtype),
        *(parts if slices > 1 else ()),
        Array("O", (b, heads, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, heads, q), "fp32", "output"),
    )


def _check(problem: Attention, config: LatentConfig) -> None:
    """Raise `ProblemError` for a problem or config that the kernel does not support."""
    check_forward(NAME, replace(problem, keys_only=False))
    check_tile(config.bc, pack=config.pack, split=config.split)
    check_positive_counts(pack=config.pack)
    if config.split % config.bc:
        raise ProblemError(f"split {config.split} must be a multiple of bc {config.bc}")
    if not problem.keys_only or problem.heads_kv != 1:
        raise ProblemError(
            f"{NAME} takes one head of keys that values are part of; give keys_only and one kv-head"
        )
    if problem.seq_q != 1 or problem.window:
        raise ProblemError(f"{NAME} decodes one query over all keys; leave seq_q and window")
    if problem.kv_dtype not in (None, problem.dtype):
        raise ProblemError(f"{NAME} takes keys of the queries' type, not {problem.kv_dtype}")
    *_, d, e = dims(problem)
    for name, extent in (("values", e), ("keys beside them", d - e)):
        if extent != padded(extent):
            raise ProblemError(
                f"columns of {name} must be a power of two from 16 on, and there are {extent}"
            )


def _plan(problem: Attention, config: LatentConfig) -> tuple[Launch, ...]:
    _check(problem, config)
    b, _, heads, q, x, d, e = dims(problem)
    slices, arrays = _slices(problem, config), _arrays(problem, config)
    many = slices > 1
    attend = launch(
        "split-kv", latent_forward, b * ceil_div(heads, config.pack) * slices, arrays,
        config.warps, config.stages,
        OUT="parts" if many else "O", L="logs" if many else "L", scale=scale_of(problem) * LOG2E,
        heads=heads, seq_kv=x, split=config.split,
        LATENT=e, ROTATED=d - e, PACK=config.pack, TILE=config.tile, BC=config.bc,
        BY_BITS=config.by_bits,
    )  # fmt: skip
    if not many:
        return (attend,)
    count = min(power_of_two(slices), max(COMBINED // e, 1))
    combine = launch(
        "combine", combine_slices, b * heads, arrays, OUT="O", seq_q=q, seq_kv=x,
        split=config.split, E=e, BE=e, ROWS=1, COUNT=count, CAUSAL=False, WINDOW=0,
    )  # fmt: skip
    return (attend, combine)


def _schedule(problem: Attention, config: LatentConfig) -> Schedule:
    return split_kv(
        problem.mask(),
        config.pack,
        config.split,
        config.bc,
        pack=config.pack,
        stages=config.stages,
        threads=32 * config.warps,
        within=frozenset({"V"}),
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    *_, e = dims(problem)
    found = forward_reference(problem, {**tensors, "V": tensors["K"][..., :e]})
    return {"O": found["O"], "L": found["L"]}


# (heads, bc, warps, stages) by target, best guess first. On sm_100 the result of 64 heads fills
# tensor memory and leaves no columns for scores, so warps multiply 16 or 32 heads.
_TILES = {
    "sm_80": ((16, 32, 4, 2), (32, 32, 8, 2)),
    "sm_89": ((16, 32, 4, 2), (16, 16, 4, 2)),
    "sm_90": ((64, 32, 8, 2), (64, 64, 8, 2), (16, 32, 4, 3)),
    "sm_100": ((16, 32, 4, 3), (32, 32, 8, 3)),
    "sm_120": ((16, 32, 4, 2), (16, 16, 4, 2)),
    "gfx942": ((16, 32, 4, 2), (16, 32, 8, 2)),
}
_LEAST_STEPS = 8  # of a slice, so that its partial results are small beside its keys


def _menu(problem: Attention, target: str, units: int) -> tuple[LatentConfig, ...]:
    """Tiles of as many heads as there are, and slices that fill the units twice."""
    b, _, heads, _, x, _, _ = dims(problem)
    configs = []
    for most, bc, warps, stages in _TILES.get(target, ()):
        pack = min(most, heads)
        slices = max(2 * units // (b * ceil_div(heads, pack)), 1)
        split = max(ceil_div(ceil_div(x, slices), bc), _LEAST_STEPS) * bc
        configs.append(LatentConfig(split, bc, pack, warps, stages, target == "gfx942"))
    return tuple(dict.fromkeys(configs))


def _problem(batch: int, heads: int, keys: int, latent: int, rotated: int, dtype: str) -> Attention:
    sizes = (batch, heads, 1, 1, keys, latent + rotated, latent)
    return Attention(*sizes, causal=True, dtype=dtype, keys_only=True)


_FORMS = tuple(
    _problem(batch, heads, keys, 512, 64, "bf16")
    for batch, heads, keys in ((32, 128, 8192), (32, 16, 8192), (1, 128, 131072))
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="decoding of absorbed latent attention, values part of the keys",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (_problem(*shape, dtype), LatentConfig(split, bc, pack))
            for shape, dtype, split, bc, pack in (
                ((2, 16, 300, 64, 16), "fp16", 64, 32, 16),
                ((1, 5, 100, 32, 16), "fp32", 128, 32, 4),
                ((3, 8, 129, 32, 32), "fp16", 64, 32, 3),
                ((1, 20, 257, 128, 16), "fp32", 64, 16, 16),
                ((1, 16, 96, 512, 64), "fp16", 48, 16, 16),
            )
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
