"""Split-KV decoding over pages: keys and values lie in pages that a table names.

A page holds `page` keys of one sequence, head by head; the table has each sequence's pages in
order, which lie anywhere. A step is one page, and a block has `split` pages. Slices leave partial
results that `attention-decode`'s second kernel combines. All sequences are equally long; their
last page is ragged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.attention_decode import COMBINED, combine_slices
from perfmodel_kernels.attention_tile import rounded
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    check_forward,
    dims,
    forward_reference,
    padded,
    power_of_two,
    scale_of,
)
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_positive_counts, check_powers
from perfmodel_kernels.menus import buffers, every

from perfmodel.algorithms import Attention
from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.arithmetic import Number
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

NAME = "attention-paged"


@dataclass(frozen=True)
class PagedAttention(Attention):
    """Decoding of one query a sequence over pages of keys and values."""

    page: int = 64
    """Keys of a page, a power of two from 16 on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_powers(page=self.page)
        if self.page < 16:
            raise ProblemError(f"a page has at least 16 keys here, not {self.page}")
        if self.seq_q != 1 or self.window:
            raise ProblemError(f"{NAME} decodes one query over all keys; leave seq_q and window")

    @property
    def pages(self) -> int:
        """Pages of a sequence."""
        return ceil_div(int(self.seq_kv), self.page)

    def sizes(self) -> dict[str, Number]:
        """Extent of every axis: pages u, and the mean keys x of a page."""
        return {**super().sizes(), "x": self.seq_kv / self.pages, "u": self.pages}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        return {**super().elements(), "index": element("bits32")}


@dataclass(frozen=True)
class PagedConfig:
    """A tile of paged decoding."""

    split: int = 16
    """Pages of a slice."""
    pack: int = 8
    """Query heads that share a tile."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""

    @property
    def tile(self) -> int:
        """Rows of the padded tile."""
        return max(power_of_two(self.pack), 16)


@triton.jit
def paged_forward(
    Q, K, V, TABLE, OUT, L, scale, group, heads, seq_kv, split,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    PACK: tl.constexpr, TILE: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One slice of pages for PACK heads of a group; slices fastest, then packs of heads."""
    pages = tl.cdiv(seq_kv, PAGE)
    slices = tl.cdiv(pages, split)
    packs = tl.cdiv(group, PACK)
    block = tl.program_id(0)
    part = block % slices
    pack = block // slices % packs
    kv_head = block // slices // packs
    sequence = (kv_head // heads).to(tl.int64)
    stacked = tl.arange(0, TILE)
    head = pack * PACK + stacked
    alive = (stacked < PACK) & (head < group)
    at = kv_head.to(tl.int64) * group + head
    d, e, key = tl.arange(0, BD), tl.arange(0, BE), tl.arange(0, PAGE)
    present = alive[:, None] & (d < D)[None, :]
    q = tl.load(Q + at[:, None] * D + d[None, :], mask=present, other=0.0)
    top = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.full([TILE], 0.0, tl.float32)
    out = tl.full([TILE, BE], 0.0, tl.float32)
    for u in range(part * split, tl.minimum((part + 1) * split, pages)):
        page = tl.load(TABLE + sequence * pages + u).to(tl.int64)
        row = (page * heads + kv_head % heads) * PAGE
        inside = u * PAGE + key < seq_kv
        k = tl.load(
            K + row * D + (key[:, None] * D + d[None, :]),
            mask=inside[:, None] & (d < D)[None, :], other=0.0,
        )  # fmt: skip
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(inside[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))  # a page has a key, so it is finite
        p = tl.exp2(s - new[:, None])
        rescale = tl.exp2(top - new)
        total = total * rescale + tl.sum(p, 1)
        v = tl.load(
            V + row * E + (key[:, None] * E + e[None, :]),
            mask=inside[:, None] & (e < E)[None, :], other=0.0,
        )  # fmt: skip
        p = rounded(p, q.dtype, False)
        out = tl.dot(p, v, out * rescale[:, None], input_precision="ieee")
        top = new
    left = at * slices + part
    tl.store(L + left, (top + tl.log2(total)) * 0.6931471805599453, mask=alive)
    tl.store(
        OUT + left[:, None] * E + e[None, :],
        (out * (1.0 / total)[:, None]).to(OUT.dtype.element_ty),
        mask=alive[:, None] & (e < E)[None, :],
    )


def algorithm() -> Algorithm:
    """Attention over pages u of keys x; the table says where a sequence's pages lie."""
    rows, scores = ("b", "g", "r", "q"), ("b", "g", "r", "q", "u", "x")
    parts = tensors(
        Tensor("table", ("b", "u"), "index", constant=True),
        Tensor("page", ("b", "u"), "index", constant=True),
        Tensor("Q", (*rows, "d")),
        Tensor("K", ("b", "g", "u", "x", "d"), "kv"),
        Tensor("V", ("b", "g", "u", "x", "e"), "kv"),
        Tensor("S", scores),
        Tensor("P", scores),
        Tensor("O", (*rows, "e"), "output"),
        Tensor("L", rows, "statistic", constant=True),
    )
    steps = (
        Step("find", "map", ("table",), ("page",)),
        Step("scores", "contraction", ("Q", "K"), ("S",), ("d",)),
        Step("softmax", "normalisation", ("S",), ("P", "L"), along="u", vector=4, special=1),
        Step("values", "contraction", ("P", "V"), ("O",), ("u", "x")),
    )
    axes = ("b", "g", "r", "q", "u", "x", "d", "e")
    return Algorithm("paged-attention", axes, parts, steps, ("O", "L"))


def _schedule(problem: PagedAttention, config: PagedConfig) -> Schedule:
    heads = (Loop("b", 1, grid=True), Loop("g", 1, grid=True))
    kernel = Kernel(
        "paged",
        ("find", "scores", "softmax", "values"),
        (*heads, Loop("r", config.pack, grid=True), Loop("u", config.split, grid=True),
         Loop("u", 1)),
        spill={"O": "accumulator"},
        registers=frozenset({"S", "P"}),
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )  # fmt: skip
    rows = (*heads, Loop("r", 1, grid=True), Loop("q", 1, grid=True))
    combine = Kernel("combine", (), rows, combines=("O", "L"), weights=frozenset({"L"}))
    return Schedule("paged", algorithm(), (kernel, combine))


def _slices(problem: PagedAttention, config: PagedConfig) -> int:
    return ceil_div(problem.pages, config.split)


def _arrays(problem: PagedAttention, config: PagedConfig) -> tuple[Array, ...]:
    b, g, r, q, _, d, e = _dims(problem)
    pages, slices = problem.pages, _slices(problem, config)
    parts = (
        Array("parts", (b, g * r, q, slices, e), "fp32", "scratch", "O"),
        Array("logs", (b, g * r, q, slices), "fp32", "scratch", "L"),
    )
    return (
        Array("Q", (b, g * r, q, d), problem.dtype),
        Array("K", (b * pages, g, problem.page, d), problem.dtype),
        Array("V", (b * pages, g, problem.page, e), problem.dtype),
        Array("table", (b, pages), "int32", fill="derived"),
        *(parts if slices > 1 else ()),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def _dims(problem: PagedAttention) -> tuple[int, int, int, int, int, int, int]:
    """(batch, kv heads, group, queries, keys, head dim, value head dim)."""
    b, g, r, q, _, d, e = dims(problem)
    return b, g, r, q, int(problem.seq_kv), d, e


def _plan(problem: PagedAttention, config: PagedConfig) -> tuple[Launch, ...]:
    check_forward(NAME, problem)
    check_positive_counts(split=config.split, pack=config.pack)
    if problem.kv_dtype not in (None, problem.dtype):
        raise ProblemError(f"{NAME} takes keys of the queries' type, not {problem.kv_dtype}")
    b, g, r, q, x, d, e = _dims(problem)
    slices = _slices(problem, config)
    many = slices > 1
    arrays = _arrays(problem, config)
    attend = launch(
        "paged", paged_forward, b * g * ceil_div(r, config.pack) * slices, arrays,
        config.warps, config.stages,
        OUT="parts" if many else "O", L="logs" if many else "L", scale=scale_of(problem) * LOG2E,
        group=r, heads=g, seq_kv=x, split=config.split,
        D=d, E=e, BD=padded(d), BE=padded(e), PACK=config.pack, TILE=config.tile, PAGE=problem.page,
    )  # fmt: skip
    if not many:
        return (attend,)
    count = min(power_of_two(slices), max(COMBINED // padded(e), 1))
    combine = launch(
        "combine", combine_slices, b * g * r, arrays,
        OUT="O", seq_q=q, seq_kv=x, split=config.split * problem.page,
        E=e, BE=padded(e), ROWS=1, COUNT=count, CAUSAL=False, WINDOW=0,
    )  # fmt: skip
    return (attend, combine)


def _derive(problem: PagedAttention, tensors: Tensors) -> None:
    """Pages in an order that is none."""
    table = tensors["table"]
    order = torch.randperm(table.numel(), generator=torch.Generator().manual_seed(0))
    table.copy_(order.reshape(table.shape))


def _reference(problem: PagedAttention, tensors: Tensors) -> Tensors:
    table = tensors["table"].long().cpu()
    gathered = {"Q": tensors["Q"]}
    for name in ("K", "V"):
        pages = tensors[name].cpu()[table]  # batch, pages, heads, keys, head dim
        keys = pages.transpose(1, 2).flatten(2, 3)
        gathered[name] = keys[:, :, : problem.seq_kv]
    found = forward_reference(problem, gathered)
    return {"O": found["O"], "L": found["L"]}


_LEAST_PAGES = 4  # of a slice, so that its partial results are small beside its keys


def _menu(problem: PagedAttention, target: str, units: int) -> tuple[PagedConfig, ...]:
    """Slices that fill the units twice or four times."""
    b, g, r, _, _, _, e = _dims(problem)
    pack = min(r, 64)
    tiles = b * g * ceil_div(r, pack)
    # Pages of 64 keys of 256 elements leave room for two buffers.
    stages = buffers(target, 2 if e > 128 or target in ("sm_89", "sm_120") else 3)
    configs = []
    for waves in (2, 4):
        slices = max(waves * units // tiles, 1)
        split = max(ceil_div(problem.pages, slices), _LEAST_PAGES)
        configs.append(PagedConfig(split, pack, stages=stages))
    return tuple(dict.fromkeys(configs))


_FORMS = tuple(
    PagedAttention(b, 32, 8, 1, keys, d, dtype="bf16", causal=True)
    for b, keys, d in ((32, 8192, 128), (1, 131072, 128), (32, 8192, 64))
)


def _case(*shape: int, config: PagedConfig, dtype: str = "fp16", page: int = 32) -> tuple:
    return PagedAttention(*shape, dtype=dtype, page=page, causal=True), config


KERNELS = (
    BundledKernel(
        name=NAME,
        summary="split-KV decoding over pages that a table names",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=(
            _case(2, 8, 2, 1, 300, 64, config=PagedConfig(4, 4)),
            _case(3, 4, 4, 1, 100, 40, config=PagedConfig(2, 1), dtype="fp32", page=16),
            _case(1, 6, 2, 1, 257, 32, config=PagedConfig(3, 2), page=64),
            _case(2, 4, 1, 1, 90, 48, 32, config=PagedConfig(16, 4), dtype="fp32"),
            _case(1, 16, 1, 1, 128, 64, config=PagedConfig(2, 16)),
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
