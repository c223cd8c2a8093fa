"""The gated delta rule over a prompt, in chunks (Yang, Kautz & Hatamizadeh 2024, section 3.3).

    S[t] = exp(a[t])·(S[t − 1] − β[t]·k[t]·(k[t]ᵀ·S[t − 1])) + β[t]·k[t]·v[t]ᵀ
    o[t] = S[t]ᵀ·q[t]

The corrections of a chunk depend on each other by a lower triangular A with A[i, j] =
β[i]·(k[i]·k[j])·exp(a[i] − a[j]), where a is summed within the chunk. With T = (1 + A)⁻¹ they are
T·(β∘V) − T·(β∘exp(a)∘K)·S = U − W·S, S the state at the chunk's start (the WY form). Launches:

* `triangle`: U and W of every chunk. T comes from the inverses of its diagonal blocks, doubled
  until they are one: [[T₁, 0], [−T₂·A₂₁·T₁, T₂]], two products a doubling.
* `states`: a block walks over the chunks of some columns of one head with its state in fp32, and
  leaves the state at the start of each and the corrected values N = U − W·S.
* `output`: what the state gives to the queries, and N by the scores within the chunk.

Log decays are at most 0 and come summed from the start of their chunk; keys have norm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import LOG2E, ceil_div, padded
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_powers
from perfmodel_kernels.menus import every
from perfmodel_kernels.operators import OperatorProblem

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

NAME = "gated-delta"


@dataclass(frozen=True)
class GatedDelta(OperatorProblem):
    """The operator `gated-delta` over a prompt."""

    batch: int
    """Sequences."""
    seq: int
    """Tokens of a sequence; the last chunk may be ragged."""
    key_heads: int
    """Heads of queries and keys."""
    heads: int
    """Heads of values."""
    key_dim: int = 128
    """Elements of a key."""
    value_dim: int = 128
    """Elements of a value."""
    chunk_size: int = 64
    """Tokens of a chunk, a power of two from 16 on."""
    dtype: str = "bf16"
    """Type of the data."""

    OPERATOR = NAME

    def __post_init__(self) -> None:
        super().__post_init__()
        check_powers(chunk_size=self.chunk_size)
        if self.chunk_size < 16:
            raise ProblemError(f"a chunk has at least 16 tokens here, not {self.chunk_size}")

    @property
    def chunks(self) -> int:
        """Chunks of a sequence."""
        return ceil_div(self.seq, self.chunk_size)

    @property
    def doublings(self) -> int:
        """Doublings of the inverse that take products: all but that of blocks of one."""
        return self.chunk_size.bit_length() - 2

    def sizes(self) -> Mapping[str, Any]:
        """Extent of every axis: chunks c, the mean tokens x, q and y of each, and products l of the
        inverse."""
        mean = self.seq / self.chunks
        whole = int(mean) if mean == int(mean) else mean
        chunk = dict.fromkeys("xqy", whole)
        return {**super().sizes(), **chunk, "c": self.chunks, "l": 2 * self.doublings}

    def algorithm(self) -> Algorithm:
        """The WY form in chunks."""
        return algorithm()


@dataclass(frozen=True)
class DeltaConfig:
    """Tiles of the gated delta rule."""

    walked: int = 32
    """Columns of values of a block that walks over the chunks."""
    columns: int = 64
    """Columns of values of a block of the output."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 2
    """Buffers of the pipeline."""


@triton.jit
def delta_triangle(
    K, V, A, BETA, U, W, seq, key_heads, heads, LOG2E: tl.constexpr, D: tl.constexpr,
    E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr,
    DOUBLINGS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """U and W of one head of one chunk; heads fastest."""
    chunks = tl.cdiv(seq, CHUNK)
    head, chunk = tl.program_id(0) % heads, tl.program_id(0) // heads
    sequence = (chunk // chunks).to(tl.int64)
    i, d, e = tl.arange(0, CHUNK), tl.arange(0, BD), tl.arange(0, BE)
    token = chunk % chunks * CHUNK + i
    inside = token < seq
    row = sequence * seq + token
    at = (sequence * heads + head) * seq + token
    a = tl.load(A + at, mask=inside, other=0.0)
    beta = tl.load(BETA + at, mask=inside, other=0.0)
    key_row = row * key_heads + head // (heads // key_heads)
    deep, wide = inside[:, None] & (d < D)[None, :], inside[:, None] & (e < E)[None, :]
    k = tl.load(K + key_row[:, None] * D + d[None, :], mask=deep, other=0.0)
    decay = tl.exp2(tl.minimum(a[:, None] - a[None, :], 0.0) * LOG2E)
    lower = tl.dot(k, tl.trans(k), input_precision="ieee") * decay * beta[:, None]
    lower = tl.where(i[:, None] > i[None, :], lower, 0.0)
    pair = i[:, None] // 2 == i[None, :] // 2
    inverse = tl.where(i[:, None] == i[None, :], 1.0, tl.where(pair, -lower, 0.0))
    for doubling in tl.static_range(DOUBLINGS):
        size = 2 << doubling
        same = i[:, None] // (2 * size) == i[None, :] // (2 * size)
        below = tl.where(same & (i[:, None] // size > i[None, :] // size), lower, 0.0)
        below = tl.dot(inverse, below, input_precision=PRECISION)
        inverse -= tl.dot(below, inverse, input_precision=PRECISION)
    inverse = inverse.to(k.dtype)
    weighed = (k * (beta * tl.exp2(a * LOG2E))[:, None]).to(k.dtype)
    w = tl.dot(inverse, weighed, input_precision="ieee")
    out = row * heads + head
    tl.store(W + out[:, None] * D + d[None, :], w.to(k.dtype), mask=deep)
    v = tl.load(V + out[:, None] * E + e[None, :], mask=wide, other=0.0)
    u = tl.dot(inverse, (v * beta[:, None]).to(k.dtype), input_precision="ieee")
    tl.store(U + out[:, None] * E + e[None, :], u.to(k.dtype), mask=wide)


@triton.jit
def delta_states(
    K, A, U, W, STARTS, NEW, LAST, seq, key_heads, heads, LOG2E: tl.constexpr, D: tl.constexpr,
    E: tl.constexpr, BD: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of one head's state through all chunks; columns fastest, then heads."""
    tiles = tl.cdiv(E, COLUMNS)
    chunks = tl.cdiv(seq, CHUNK)
    block = tl.program_id(0)
    head, sequence = block // tiles % heads, (block // tiles // heads).to(tl.int64)
    key_head = head // (heads // key_heads)
    i, d = tl.arange(0, CHUNK), tl.arange(0, BD)
    e = block % tiles * COLUMNS + tl.arange(0, COLUMNS)
    state_at = d[:, None] * E + e[None, :]
    state_inside = (d < D)[:, None] & (e < E)[None, :]
    state = tl.full([BD, COLUMNS], 0.0, tl.float32)
    for chunk in range(chunks):
        token = chunk * CHUNK + i
        inside = token < seq
        row = sequence * seq + token
        deep, wide = inside[:, None] & (d < D)[None, :], inside[:, None] & (e < E)[None, :]
        out = row * heads + head
        w = tl.load(W + out[:, None] * D + d[None, :], mask=deep, other=0.0)
        rounded = state.to(w.dtype)
        start = ((sequence * chunks + chunk) * heads + head) * D * E
        tl.store(STARTS + start + state_at, rounded, mask=state_inside)
        u = tl.load(U + out[:, None] * E + e[None, :], mask=wide, other=0.0)
        new = u - tl.dot(w, rounded, input_precision="ieee")
        tl.store(NEW + out[:, None] * E + e[None, :], new.to(w.dtype), mask=wide)
        k = tl.load(
            K + (row * key_heads + key_head)[:, None] * D + d[None, :], mask=deep, other=0.0
        )
        a = tl.load(A + (sequence * heads + head) * seq + token, mask=inside, other=0.0)
        last = tl.minimum(CHUNK, seq - chunk * CHUNK) - 1
        end = tl.sum(tl.where(i == last, a, 0.0), 0)
        new = (new * tl.exp2((end - a) * LOG2E)[:, None]).to(w.dtype)
        state = state * tl.exp2(end * LOG2E)
        state = tl.dot(tl.trans(k), new, state, input_precision="ieee")
    tl.store(LAST + (sequence * heads + head) * D * E + state_at, state, mask=state_inside)


@triton.jit
def delta_output(
    Q, K, A, STARTS, NEW, OUT, seq, key_heads, heads, LOG2E: tl.constexpr, D: tl.constexpr,
    E: tl.constexpr, BD: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of one head's result in one chunk; columns fastest, then heads."""
    tiles = tl.cdiv(E, COLUMNS)
    chunks = tl.cdiv(seq, CHUNK)
    block = tl.program_id(0)
    head, chunk = block // tiles % heads, block // tiles // heads
    sequence = (chunk // chunks).to(tl.int64)
    i, d = tl.arange(0, CHUNK), tl.arange(0, BD)
    e = block % tiles * COLUMNS + tl.arange(0, COLUMNS)
    token = chunk % chunks * CHUNK + i
    inside = token < seq
    row = sequence * seq + token
    deep, wide = inside[:, None] & (d < D)[None, :], inside[:, None] & (e < E)[None, :]
    key_at = (row * key_heads + head // (heads // key_heads))[:, None] * D + d[None, :]
    q = tl.load(Q + key_at, mask=deep, other=0.0)
    k = tl.load(K + key_at, mask=deep, other=0.0)
    a = tl.load(A + (sequence * heads + head) * seq + token, mask=inside, other=0.0)
    start = (chunk.to(tl.int64) * heads + head) * D * E
    state = tl.load(
        STARTS + start + d[:, None] * E + e[None, :],
        mask=(d < D)[:, None] & (e < E)[None, :], other=0.0,
    )  # fmt: skip
    result = tl.dot(q, state, input_precision="ieee") * tl.exp2(a * LOG2E)[:, None]
    decay = tl.exp2(tl.minimum(a[:, None] - a[None, :], 0.0) * LOG2E)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * decay
    scores = tl.where(i[:, None] >= i[None, :], scores, 0.0).to(q.dtype)
    out = (row * heads + head)[:, None] * E + e[None, :]
    new = tl.load(NEW + out, mask=wide, other=0.0)
    result = tl.dot(scores, new, result, input_precision="ieee")
    tl.store(OUT + out, result.to(OUT.dtype.element_ty), mask=wide)


def algorithm() -> Algorithm:
    """The WY form. Kq, aq and bq are the keys, sums and β of the same tokens as K, a and beta.

    P, the states that chunks start with, follow from all chunks before: `carry` stands for that
    order and costs nothing, the steps after it are the work of a chunk.
    """
    head = ("b", "c", "g", "r")
    parts = tensors(
        Tensor("Q", ("b", "c", "g", "q", "d")),
        Tensor("K", ("b", "c", "g", "x", "d")),
        Tensor("Kq", ("b", "c", "g", "q", "d")),
        Tensor("V", (*head, "q", "e")),
        *(Tensor(name, (*head, "x"), "statistic") for name in ("a", "beta")),
        *(Tensor(name, (*head, "q"), "statistic") for name in ("aq", "bq")),
        Tensor("G", ("b", "c", "g", "x", "q")),
        Tensor("A", (*head, "x", "q"), "accumulator"),
        Tensor("Z", (*head, "l", "y", "q"), "accumulator"),
        Tensor("T", (*head, "x", "q")),
        Tensor("Kb", (*head, "q", "d")),
        Tensor("Vb", (*head, "q", "e")),
        Tensor("W", (*head, "x", "d")),
        *(Tensor(name, (*head, "x", "e")) for name in ("U", "R", "N", "D")),
        *(Tensor(name, (*head, "d", "e")) for name in ("P", "H", "J")),
        Tensor("S", ("b", "g", "r", "d", "e"), "statistic"),
        Tensor("scores", ("b", "c", "g", "q", "x")),
        Tensor("M", (*head, "q", "x")),
        *(Tensor(name, (*head, "q", "e")) for name in ("I", "B")),
        Tensor("O", (*head, "q", "e"), "output"),
    )
    steps = (
        Step("gram", "contraction", ("K", "Kq"), ("G",), ("d",)),
        Step("correct", "map", ("G", "a", "beta", "aq"), ("A",), vector=4, special=1),
        Step("halves", "map", ("A",), ("Z",), vector=1),
        Step("invert", "contraction", ("A", "Z"), ("T",), ("l", "y")),
        Step("weigh-keys", "map", ("Kq", "aq", "bq"), ("Kb",), vector=1),
        Step("weigh-values", "map", ("V", "bq"), ("Vb",), vector=1),
        Step("keys", "contraction", ("T", "Kb"), ("W",), ("q",)),
        Step("values", "contraction", ("T", "Vb"), ("U",), ("q",)),
        Step("carry", "normalisation", ("W", "U", "K", "a"), ("P", "S"), along="c"),
        Step("recall", "contraction", ("W", "P"), ("R",), ("d",)),
        Step("new", "map", ("U", "R"), ("N",), vector=1),
        Step("weigh-new", "map", ("N", "a"), ("D",), vector=1),
        Step("update", "contraction", ("K", "D"), ("H",), ("x",)),
        Step("advance", "map", ("H",), ("J",), vector=2),
        Step("score", "contraction", ("Q", "K"), ("scores",), ("d",)),
        Step("decay", "map", ("scores", "aq", "a"), ("M",), vector=4, special=1),
        Step("inside", "contraction", ("M", "N"), ("I",), ("x",)),
        Step("before", "contraction", ("Q", "P"), ("B",), ("d",)),
        Step("sum", "map", ("I", "B", "aq"), ("O",), vector=2),
    )
    axes = (*head, "q", "x", "y", "l", "d", "e")
    return Algorithm(NAME, axes, parts, steps, ("O", "S"))


def _schedule(problem: GatedDelta, config: DeltaConfig) -> Schedule:
    batch, chunk = Loop("b", 1, grid=True), Loop("c", 1, grid=True)
    heads = (Loop("g", 1, grid=True), Loop("r", 1, grid=True))
    block = {"operand_tile": (64, 64), "stages": config.stages, "threads": 32 * config.warps}
    triangle = Kernel(
        "triangle",
        ("gram", "correct", "halves", "invert", "weigh-keys", "weigh-values", "keys", "values"),
        (batch, chunk, *heads), within=frozenset({"Kq", "aq", "bq"}),
        registers=frozenset({"G", "Z"}), **block,
    )  # fmt: skip
    # A running state needs one pass; the tiles that later chunks bring are the same chunk's.
    states = Kernel(
        "states", ("carry", "recall", "new", "weigh-new", "update", "advance"),
        (batch, *heads, Loop("e", config.walked, grid=True), Loop("c", 1)),
        row_passes=1, registers=frozenset({"R", "H", "J", "S"}), **block,
    )  # fmt: skip
    output = Kernel(
        "output", ("score", "decay", "inside", "before", "sum"),
        (batch, chunk, *heads, Loop("e", config.columns, grid=True)), within=frozenset({"aq"}),
        registers=frozenset({"scores", "M", "I", "B"}), **block,
    )  # fmt: skip
    return Schedule("chunks", problem.algorithm(), (triangle, states, output))


def _arrays(problem: GatedDelta, config: DeltaConfig) -> tuple[Array, ...]:
    b, t, g, h = problem.batch, problem.seq, problem.key_heads, problem.heads
    d, e, kind = problem.key_dim, problem.value_dim, problem.dtype
    return (
        Array("Q", (b, t, g, d), kind),
        Array("K", (b, t, g, d), kind),
        Array("V", (b, t, h, e), kind),
        Array("a", (b, h, t), "fp32"),
        Array("beta", (b, h, t), "fp32"),
        Array("U", (b, t, h, e), kind, "scratch"),
        Array("W", (b, t, h, d), kind, "scratch"),
        Array("P", (b, problem.chunks, h, d, e), kind, "scratch"),
        Array("N", (b, t, h, e), kind, "scratch"),
        Array("O", (b, t, h, e), problem.elements()["output"].name, "output"),
        Array("S", (b, h, d, e), "fp32", "output"),
    )


def _plan(problem: GatedDelta, config: DeltaConfig) -> tuple[Launch, ...]:
    walked, columns = config.walked, config.columns
    check_powers(walked=walked, columns=columns)
    if min(walked, columns) < 16:
        raise ProblemError("walked and columns must be at least 16, the least that tl.dot takes")
    d, e, walks = problem.key_dim, problem.value_dim, problem.batch * problem.heads
    arrays, block = _arrays(problem, config), (config.warps, config.stages)
    shape = {
        "LOG2E": LOG2E, "D": d, "E": e, "BD": padded(d), "CHUNK": problem.chunk_size,
        "seq": problem.seq, "key_heads": problem.key_heads, "heads": problem.heads,
    }  # fmt: skip
    return (
        launch(
            "triangle", delta_triangle, walks * problem.chunks, arrays, *block, **shape,
            BE=padded(e), DOUBLINGS=problem.doublings,
            PRECISION="ieee" if problem.dtype == "fp32" else "tf32",
        ),
        launch(
            "states", delta_states, walks * ceil_div(e, walked), arrays, *block, **shape,
            STARTS="P", NEW="N", LAST="S", COLUMNS=walked,
        ),
        launch(
            "output", delta_output, walks * problem.chunks * ceil_div(e, columns), arrays, *block,
            **shape, STARTS="P", NEW="N", OUT="O", COLUMNS=columns,
        ),
    )  # fmt: skip


def _derive(problem: GatedDelta, tensors: Tensors) -> None:
    """Keys of norm 1, queries as small, log decays summed over their chunk, and β below 1."""
    keys = tensors["K"].float()
    tensors["K"].copy_(keys / keys.norm(dim=-1, keepdim=True))
    tensors["Q"].mul_(problem.key_dim**-0.5)
    chunks = (-tensors["a"].abs() / 8).split(problem.chunk_size, dim=-1)
    tensors["a"].copy_(torch.cat([chunk.cumsum(-1) for chunk in chunks], dim=-1))
    tensors["beta"].sigmoid_()


def _reference(problem: GatedDelta, tensors: Tensors) -> Tensors:
    """The recurrence, token by token."""
    q, k, v, a, beta = (tensors[name].double().cpu() for name in ("Q", "K", "V", "a", "beta"))
    group = problem.heads // problem.key_heads
    q, k = (part.repeat_interleave(group, dim=2) for part in (q, k))
    before = torch.zeros_like(a)
    before[..., 1:] = a[..., :-1]
    before[..., :: problem.chunk_size] = 0
    decay = (a - before).exp()
    state = torch.zeros(*a.shape[:2], problem.key_dim, problem.value_dim).double()
    out = torch.empty_like(v)
    for t in range(problem.seq):
        state = state * decay[..., t, None, None]
        key = k[:, t, :, :, None]
        error = v[:, t, :, None, :] - key.mT @ state
        state = state + key * error * beta[..., t, None, None]
        out[:, t] = (q[:, t, :, None, :] @ state).squeeze(2)
    return {"O": out, "S": state}


_LARGEST_PRECISE = 16
"""Tokens of a chunk up to which fp32, which the vector unit multiplies, needs no memory for
registers."""
# Targets whose products take operands from shared memory, or with more registers a thread.
_ROOMY = ("sm_90", "sm_100", "gfx942")


def _menu(problem: GatedDelta, target: str, units: int) -> tuple[DeltaConfig, ...]:
    """Few columns: a block walks over all chunks of a sequence, so there are few."""
    del units
    if problem.dtype == "fp32":
        if problem.chunk_size > _LARGEST_PRECISE:
            raise ProblemError(
                f"fp32 chunks of {problem.chunk_size} tokens spill; take chunks of "
                f"{_LARGEST_PRECISE}"
            )
        return (DeltaConfig(16, 16, 8, 1),)
    stages = 1 if target.startswith("gfx") else 2
    columns, warps = (64, 4) if target in _ROOMY else (32, 8)
    return tuple(DeltaConfig(walked, columns, warps, stages) for walked in (32, 16))


_FORMS = (
    GatedDelta(1, 65536, 16, 32),
    GatedDelta(1, 65536, 16, 32, chunk_size=16, dtype="fp32"),
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="gated delta rule over a prompt in chunks, by its WY form",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=(
            (GatedDelta(2, 45, 1, 2, 32, 24, 32, "fp32"), DeltaConfig(16, 32)),
            (GatedDelta(1, 100, 1, 1, 24, 32, 64, "fp16"), DeltaConfig(16, 32)),
            (GatedDelta(1, 33, 2, 2, 16, 16, 16, "fp16"), DeltaConfig(16, 16)),
            (GatedDelta(1, 64, 1, 1, 20, 40, 64, "fp32"), DeltaConfig(32, 64)),
            (GatedDelta(1, 5, 1, 3, 16, 16, 16, "fp16"), DeltaConfig(16, 16)),
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        derive=_derive,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
