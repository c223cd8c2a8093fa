"""State-space duality: the scan of Mamba-2 in chunks (Dao & Gu 2024, section 6).

    state[t] = exp(a[t])·state[t − 1] + B[t]·X[t]ᵀ        Y[t] = C[t]ᵀ·state[t]

Three launches. `states`: what the keys of a chunk leave in its state. `pass`: the states at the
start of every chunk, and the last one; the running state is fp32. `output`: the products within a
chunk, plus what the state at its start gives.

Log decays are at most 0 and come summed from the start of their chunk, as a kernel before makes
them; X is already multiplied by the step. Tiles of queries and of keys are equally large and the
diagonal comes first, so that its sums serve both sides. `states` begins with the last keys, whose
sum is that of the whole chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import LOG2E, ceil_div, padded
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_powers
from perfmodel_kernels.menus import every
from perfmodel_kernels.operators import OperatorProblem

from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


@dataclass(frozen=True)
class Scan(OperatorProblem):
    """The operator `ssd-scan`."""

    batch: int
    """Sequences."""
    seq: int
    """Tokens of a sequence, whole chunks."""
    heads: int
    """Heads."""
    groups: int
    """Groups of heads that share B and C."""
    head_dim: int = 64
    """Elements of a head."""
    state: int = 128
    """Rows of a head's state."""
    chunk_size: int = 256
    """Tokens of a chunk."""
    dtype: str = "bf16"
    """Type of the data."""

    OPERATOR = "ssd-scan"

    @property
    def chunks(self) -> int:
        """Chunks of all sequences."""
        return self.batch * self.seq // self.chunk_size


@dataclass(frozen=True)
class ScanConfig:
    """Tiles of a scan."""

    tile: int = 64
    """Tokens of a tile, of queries and of keys."""
    rows: int = 16
    """Rows of the state that a block passes on."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 2
    """Buffers of the pipeline."""


@triton.jit
def ssd_states(
    X, B, A, H, E, chunk, heads, groups, LOG2E: tl.constexpr, N: tl.constexpr, P: tl.constexpr,
    BN: tl.constexpr, BP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """One head of one chunk: H = Σ exp(a[end] − a[x])·B[x]·X[x]ᵀ and E = exp(a[end])."""
    block = tl.program_id(0)
    head, first = block % heads, (block // heads).to(tl.int64) * chunk
    group = head // (heads // groups)
    x, n, p = tl.arange(0, TILE), tl.arange(0, BN), tl.arange(0, BP)
    tiles = tl.cdiv(chunk, TILE)
    total = tl.full([BN, BP], 0.0, tl.float32)
    end = 0.0
    for i in range(tiles):
        key = (tiles - 1 - i) * TILE + x
        inside = key < chunk
        row = first + key
        a = tl.load(A + block.to(tl.int64) * chunk + key, mask=inside, other=0.0)
        if i == 0:
            end = tl.sum(tl.where(key == chunk - 1, a, 0.0), 0)
        values = tl.load(
            X + (row * heads + head)[:, None] * P + p[None, :],
            mask=inside[:, None] & (p < P)[None, :], other=0.0,
        )  # fmt: skip
        keys = tl.load(
            B + (row * groups + group)[:, None] * N + n[None, :],
            mask=inside[:, None] & (n < N)[None, :], other=0.0,
        )  # fmt: skip
        decay = tl.exp2((end - a) * LOG2E)
        weighed = (values * decay[:, None]).to(values.dtype)
        total = tl.dot(tl.trans(keys), weighed, total, input_precision="ieee")
    tl.store(
        H + block.to(tl.int64) * N * P + n[:, None] * P + p[None, :], total,
        mask=(n < N)[:, None] & (p < P)[None, :],
    )  # fmt: skip
    tl.store(E + block, tl.exp2(end * LOG2E))


@triton.jit
def ssd_pass(
    H, E, STARTS, LAST, chunks, heads, N: tl.constexpr, P: tl.constexpr, ROWS: tl.constexpr,
    BP: tl.constexpr,
):  # fmt: skip
    """ROWS rows of one head's state through all chunks: what each starts with, and the last."""
    pieces = tl.cdiv(N, ROWS)
    block = tl.program_id(0)
    piece, head = block % pieces, block // pieces % heads
    sequence = (block // pieces // heads).to(tl.int64)
    n, p = piece * ROWS + tl.arange(0, ROWS), tl.arange(0, BP)
    inside = (n < N)[:, None] & (p < P)[None, :]
    at = n[:, None] * P + p[None, :]
    state = tl.full([ROWS, BP], 0.0, tl.float32)
    for c in range(chunks):
        at_chunk = (sequence * chunks + c) * heads + head
        tl.store(STARTS + at_chunk * N * P + at, state.to(STARTS.dtype.element_ty), mask=inside)
        added = tl.load(H + at_chunk * N * P + at, mask=inside, other=0.0)
        state = state * tl.load(E + at_chunk) + added
    tl.store(LAST + (sequence * heads + head) * N * P + at, state, mask=inside)


@triton.jit
def _within(c, keys, values, a, ax, seen, LOG2E: tl.constexpr):
    """What a tile of keys adds to a tile of queries: (C·Bᵀ ∘ decay)·X."""
    decay = tl.exp2(tl.minimum(a[:, None] - ax[None, :], 0.0) * LOG2E)
    scores = tl.dot(c, tl.trans(keys), input_precision="ieee")
    return tl.where(seen, scores * decay, 0.0).to(values.dtype)


@triton.jit
def ssd_output(
    X, B, C, A, STARTS, Y, chunk, heads, groups, LOG2E: tl.constexpr, N: tl.constexpr,
    P: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head of one chunk; tiles fastest, then heads."""
    tiles = tl.cdiv(chunk, TILE)
    block = tl.program_id(0)
    tile, head = block % tiles, block // tiles % heads
    outer = block // tiles  # chunk and head
    first = (outer // heads).to(tl.int64) * chunk
    group = head // (heads // groups)
    x, n, p = tl.arange(0, TILE), tl.arange(0, BN), tl.arange(0, BP)
    wide, deep = (p < P)[None, :], (n < N)[None, :]
    query = tile * TILE + x
    inside = query < chunk
    row = first + query
    sums = A + outer.to(tl.int64) * chunk
    keys_at, values_at = B + group * N + n[None, :], X + head * P + p[None, :]
    a = tl.load(sums + query, mask=inside, other=0.0)
    c = tl.load(
        C + (row * groups + group)[:, None] * N + n[None, :], mask=inside[:, None] & deep, other=0.0
    )
    starts = tl.load(
        STARTS + outer.to(tl.int64) * N * P + n[:, None] * P + p[None, :],
        mask=(n < N)[:, None] & wide, other=0.0,
    )  # fmt: skip
    y = tl.dot(c, starts, input_precision="ieee") * tl.exp2(a * LOG2E)[:, None]
    keys = tl.load(keys_at + row[:, None] * groups * N, mask=inside[:, None] & deep, other=0.0)
    values = tl.load(values_at + row[:, None] * heads * P, mask=inside[:, None] & wide, other=0.0)
    m = _within(c, keys, values, a, a, x[:, None] >= x[None, :], LOG2E)
    y = tl.dot(m, values, y, input_precision="ieee")
    for start in range(0, tile * TILE, TILE):
        row = first + start + x
        ax = tl.load(sums + start + x)
        keys = tl.load(keys_at + row[:, None] * groups * N, mask=deep, other=0.0)
        values = tl.load(values_at + row[:, None] * heads * P, mask=wide, other=0.0)
        m = _within(c, keys, values, a, ax, True, LOG2E)
        y = tl.dot(m, values, y, input_precision="ieee")
    tl.store(
        Y + ((first + query) * heads + head)[:, None] * P + p[None, :],
        y.to(Y.dtype.element_ty), mask=inside[:, None] & wide,
    )  # fmt: skip


def _arrays(problem: Scan, config: ScanConfig) -> tuple[Array, ...]:
    b, t, h, g = problem.batch, problem.seq, problem.heads, problem.groups
    n, p, c = problem.state, problem.head_dim, problem.seq // problem.chunk_size
    return (
        Array("X", (b, t, h, p), problem.dtype),
        Array("B", (b, t, g, n), problem.dtype),
        Array("C", (b, t, g, n), problem.dtype),
        Array("a", (b, c, h, problem.chunk_size), "fp32", tensor="ax"),
        Array("H", (b, c, h, n, p), "fp32", "scratch"),
        Array("E", (b, c, h), "fp32", "scratch"),
        Array("P", (b, c, h, n, p), problem.dtype, "scratch"),
        Array("Y", (b, t, h, p), problem.elements()["output"].name, "output"),
        Array("F", (b, h, n, p), "fp32", "output"),
    )


def _plan(problem: Scan, config: ScanConfig) -> tuple[Launch, ...]:
    tile, rows = config.tile, config.rows
    check_powers(tile=tile, rows=rows)
    if tile < 16:
        raise ProblemError("tile must be at least 16, the least that tl.dot multiplies")
    n, p, h, chunk = problem.state, problem.head_dim, problem.heads, problem.chunk_size
    arrays, block = _arrays(problem, config), (config.warps, config.stages)
    widths = {"N": n, "P": p, "BP": padded(p)}
    within = {
        **widths, "LOG2E": LOG2E, "BN": padded(n), "TILE": tile, "chunk": chunk, "heads": h,
        "groups": problem.groups,
    }  # fmt: skip
    return (
        launch("states", ssd_states, problem.chunks * h, arrays, *block, **within),
        launch(
            "pass", ssd_pass, problem.batch * h * ceil_div(n, rows), arrays, *block, **widths,
            STARTS="P", LAST="F", ROWS=rows, chunks=problem.seq // chunk, heads=h,
        ),
        launch(
            "output", ssd_output, problem.chunks * h * ceil_div(chunk, tile), arrays, *block,
            **within, STARTS="P",
        ),
    )  # fmt: skip


def _schedule(problem: Scan, config: ScanConfig) -> Schedule:
    sequence = (Loop("b", 1, grid=True), Loop("c", 1, grid=True))
    heads = (Loop("g", 1, grid=True), Loop("r", 1, grid=True))
    keys, queries = Loop("x", config.tile), Loop("q", config.tile, grid=True)
    block = {"stages": config.stages, "threads": 32 * config.warps}
    states = Kernel(
        "states", ("ends", "weigh", "states"), (*sequence, *heads, keys),
        operand_tile=(64, 64), registers=frozenset({"W"}), **block,
    )  # fmt: skip
    rows = Loop("n", config.rows, grid=True)
    # A running state needs one pass.
    passing = Kernel(
        "pass", ("pass",), (sequence[0], *heads, rows, Loop("c", 1)), row_passes=1, **block
    )
    output = Kernel(
        "output", ("scores", "decay", "inside", "outside", "sum"),
        (*sequence, *heads, queries, keys), within=frozenset({"aq"}),
        operand_tile=(64, 64), registers=frozenset({"S", "M", "I", "O"}), **block,
    )  # fmt: skip
    return Schedule("chunks", problem.algorithm(), (states, passing, output))


def _derive(problem: Scan, tensors: Tensors) -> None:
    """Log decays summed over their chunk, and keys whose products with queries are near 1."""
    tensors["a"].copy_(-(tensors["a"].abs() / 8).cumsum(-1))
    tensors["B"].mul_(problem.state**-0.5)


def _reference(problem: Scan, tensors: Tensors) -> Tensors:
    """The recurrence, token by token."""
    x, b, c, a = (tensors[name].double().cpu() for name in ("X", "B", "C", "a"))
    each = torch.diff(a, dim=-1, prepend=torch.zeros_like(a[..., :1]))
    decay = each.transpose(2, 3).flatten(1, 2).exp()  # batch, seq, heads
    group = problem.heads // problem.groups
    b, c = (part.repeat_interleave(group, dim=2) for part in (b, c))
    state = torch.zeros(problem.batch, problem.heads, problem.state, problem.head_dim).double()
    out = torch.empty_like(x)
    for t in range(problem.seq):
        state = state * decay[:, t, :, None, None] + b[:, t, :, :, None] * x[:, t, :, None, :]
        out[:, t] = (c[:, t, :, None, :] @ state).squeeze(2)
    return {"Y": out, "F": state}


# (tile, rows, warps, stages) by target, best guess first.
_PLAIN = ((64, 16, 4, 2),)
_TILES = {
    "sm_90": ((64, 16, 4, 3), (128, 32, 8, 2)),
    "sm_100": ((128, 32, 8, 2), (64, 16, 4, 3)),
}
# fp32 is multiplied on the vector unit.
_VECTOR = ((16, 16, 8, 2),)


def _menu(problem: Scan, target: str, units: int) -> tuple[ScanConfig, ...]:
    table = _VECTOR if problem.dtype == "fp32" else _TILES.get(target, _PLAIN)
    return tuple(ScanConfig(*tile) for tile in table)


_FORMS = (
    Scan(1, 65536, 128, 8),
    Scan(1, 65536, 128, 8, dtype="fp32"),
)

KERNELS = (
    BundledKernel(
        name="ssd-scan",
        summary="Mamba-2's scan in chunks, with a running state in fp32",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=(
            (Scan(2, 48, 4, 2, 16, 24, 24, "fp32"), ScanConfig(16, 16)),
            (Scan(1, 80, 2, 1, 24, 40, 40, "fp16"), ScanConfig(32, 16)),
            (Scan(1, 64, 1, 1, 16, 32, 64, "fp16"), ScanConfig(16, 32)),
            (Scan(1, 51, 2, 1, 20, 17, 17, "fp32"), ScanConfig(32, 8)),
            (Scan(2, 33, 1, 1, 16, 16, 33, "fp16"), ScanConfig(16, 8)),
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
