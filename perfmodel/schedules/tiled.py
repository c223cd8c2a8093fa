"""Tiled (Flash) attention: one kernel that never writes the scores to memory.

Loop orders: FlashAttention-1 streams queries under an outer loop over keys, so Q and the unfinished
O cross the boundary once per key tile. FlashAttention-2 and later put query tiles on the grid and
stream keys, so K and V cross once per query tile and O once. FlashAttention-3 has the same order
with overlapped units. Split-KV also spreads the keys over the grid and adds a combining kernel
(Flash-Decoding).
"""

from __future__ import annotations

from typing import Literal

from perfmodel.algorithms import attention
from perfmodel.algorithms.algorithm import Band
from perfmodel.arithmetic import Number, ceil_div, maximum
from perfmodel.errors import ProblemError
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

Accounting = Literal["paper", "literal", "impl"]
Order = Literal[1, 2, 3]

_HEADS = (Loop("b", 1, grid=True), Loop("g", 1, grid=True), Loop("r", 1, grid=True))


def flash1_block(memory_elements: int, head_dim: int) -> tuple[int, int]:
    """(Br, Bc) of FlashAttention Algorithm 1, line 1: Bc = ⌈M/4d⌉, Br = min(⌈M/4d⌉, d)."""
    columns = ceil_div(memory_elements, 4 * head_dim)
    return min(columns, head_dim), columns


def tiled(
    mask: Band | None,
    br: Number,
    bc: Number,
    *,
    order: Order = 2,
    accounting: Accounting = "impl",
    pack: Number = 1,
    query_slice: Number | None = None,
    stages: Number = 2,
    threads: Number = 128,
    operand_tile: tuple[Number, Number] | None = (64, 64),
    score_vector: float = 0.0,
    held: frozenset[str] = frozenset(),
    within: frozenset[str] = frozenset(),
) -> Schedule:
    """Forward attention in tiles of br query rows by bc keys.

    - `pack`: query heads of one key-value head that share a tile of br rows
    - `accounting`, of order 1: "paper" keeps the unfinished O in the data type and skips its first
      read (3Tc + 1 passes of N·d, FlashAttention Figure 2), "literal" reads it back on the first
      pass too (Algorithm 1: 3Tc + 2), "impl" keeps it in fp32 as the released kernel does
    - `query_slice`, of order 1: query rows of a block, where rows are spread as in later releases
    - `score_vector`: vector operations a score besides the softmax: padding masks, dropout
    - `held`, of orders 2 and 3: inputs that stay in registers, besides scores and probabilities
    - `within`, of orders 2 and 3: inputs that another input's tile brings along
    """
    if order == 1:
        return _outer_keys(
            mask, br, bc, accounting, query_slice, threads, operand_tile, score_vector
        )
    heads = (_HEADS[0], _HEADS[1], Loop("r", pack, grid=True))
    rows = Loop("q", _packed_rows(br, pack), grid=True)
    kernel = Kernel(
        "tiled-forward",
        ("scores", "softmax", "values"),
        (*heads, rows, Loop("x", bc)),
        within=within,
        registers=frozenset({"S", "P"}) | held,
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
    return Schedule(f"tiled-{order}", attention.forward(mask, score_vector=score_vector), (kernel,))


def _packed_rows(br: Number, pack: Number) -> Number:
    """Query rows of a tile when `pack` heads share it: at least one."""
    if isinstance(pack, int) and pack == 1:
        return br
    return maximum(br // pack, 1)


def _outer_keys(
    mask: Band | None,
    br: Number,
    bc: Number,
    accounting: Accounting,
    query_slice: Number | None,
    threads: Number,
    operand_tile: tuple[Number, Number] | None,
    score_vector: float,
) -> Schedule:
    """FlashAttention-1's loop order: keys outside, queries inside, one block per head or slice."""
    if accounting not in ("paper", "literal", "impl"):
        raise ProblemError(f"accounting must be paper, literal or impl, not {accounting!r}")
    slices = () if query_slice is None else (Loop("q", query_slice, grid=True),)
    # The released kernel keeps keys and values in registers while queries stream past.
    resident = {"K", "V"} if accounting == "impl" else set()
    kernel = Kernel(
        "tiled-forward-1",
        ("scores", "softmax", "values"),
        (*_HEADS, *slices, Loop("x", bc), Loop("q", br)),
        zeroed=frozenset({"O"}) if accounting == "literal" else frozenset(),
        spill={"O": "accumulator"} if accounting == "impl" else {},
        registers=frozenset({"S", "P", *resident}),
        operand_tile=operand_tile,
        threads=threads,
    )
    algorithm = attention.forward(mask, statistics=("m", "l"), score_vector=score_vector)
    return Schedule("tiled-1", algorithm, (kernel,))


def split_kv(
    mask: Band | None,
    br: Number,
    split_keys: Number,
    bc: Number,
    *,
    pack: Number = 1,
    stages: Number = 2,
    threads: Number = 128,
    operand_tile: tuple[Number, Number] | None = (64, 64),
    score_vector: float = 0.0,
    within: frozenset[str] = frozenset(),
) -> Schedule:
    """Decode with the keys cut into grid slices of `split_keys`, then a combining kernel.

    Each slice leaves an fp32 partial O and its log-sum-exp L. The second kernel weights them by
    exp(L − L_max) (Flash-Decoding). With one slice there is nothing to combine.
    """
    heads = (_HEADS[0], _HEADS[1], Loop("r", pack, grid=True))
    rows = Loop("q", _packed_rows(br, pack), grid=True)
    kernel = Kernel(
        "split-kv",
        ("scores", "softmax", "values"),
        (*heads, rows, Loop("x", split_keys, grid=True), Loop("x", bc)),
        spill={"O": "accumulator"},
        within=within,
        registers=frozenset({"S", "P"}),
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
    combine = Kernel(
        "combine",
        (),
        (*_HEADS, Loop("q", 1, grid=True)),
        combines=("O", "L"),
        weights=frozenset({"L"}),
    )
    return Schedule(
        "split-kv", attention.forward(mask, score_vector=score_vector), (kernel, combine)
    )


def tiled_backward(
    mask: Band | None,
    br: Number,
    bc: Number,
    *,
    order: Order = 2,
    accounting: Accounting = "impl",
    key_slice: Number | None = None,
    stages: Number = 2,
    threads: Number = 256,
    operand_tile: tuple[Number, Number] | None = (64, 64),
    score_vector: float = 0.0,
    converted: bool = False,
    spread: bool = False,
) -> Schedule:
    """Backward attention with recomputed scores: one block per key tile, queries streamed.

    Order 2 adds dQ atomically in fp32 and takes D = rowsum(dO ∘ O) from a separate kernel. With
    `converted` that kernel zeroes the sums first, and a last kernel converts them to the output's
    type. A block loops over the query heads of its group. With `spread` it has one query head and
    writes partial dK and dV, which a combining kernel adds up.

    Order 1 has one block per head, rewrites dQ on every key tile and touches O on the first only
    ((4Tc + 4)·N·d by the "paper" accounting, (5Tc + 4) by "literal"). `key_slice` spreads the keys
    over blocks of that many keys, which add dQ atomically, as in later releases.
    """
    last = converted and order != 1
    algorithm = attention.backward(mask, score_vector=score_vector, converted=last)
    summed = "dQ32" if last else "dQ"
    by_rows = (*_HEADS, Loop("q", 128, grid=True))
    clears = (summed,) if last else ()
    delta = Kernel("delta", ("delta",), by_rows, masked=False, clears=clears)
    steps = (
        "scores", "probabilities", "dvalues", "dprobabilities", "dscores", "dqueries", "dkeys",
    )  # fmt: skip
    keys, rows = Loop("x", bc, grid=order != 1), Loop("q", br)
    if order == 1:
        slices = () if key_slice is None else (Loop("x", key_slice, grid=True),)
        kernel = Kernel(
            "tiled-backward-1",
            ("delta", *steps),
            (*_HEADS, *slices, keys, rows),
            first_pass={} if accounting == "literal" else {"O": "x"},
            zeroed=frozenset({"dQ"}) if accounting == "literal" else frozenset(),
            atomic=frozenset({"dQ"}) if slices else frozenset(),
            spill={"dQ": "accumulator"} if accounting == "impl" else {},
            registers=frozenset({"S", "P", "dP", "dkeys.dS"}),
            operand_tile=operand_tile,
            threads=threads,
        )
        return Schedule("tiled-backward-1", algorithm, (kernel,))
    kernel = Kernel(
        "tiled-backward",
        steps,
        (*_HEADS, keys, rows) if spread else (*_HEADS[:2], keys, Loop("r", 1), rows),
        atomic=frozenset({summed}),
        spill={summed: "accumulator"},
        registers=frozenset({"S", "P", "dP", "dkeys.dS"}),
        staged=frozenset({summed}),
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
    kernels = [delta, kernel]
    if spread:
        sums = (*_HEADS[:2], Loop("x", 32, grid=True))
        kernels.append(Kernel("combine", (), sums, combines=("dK", "dV")))
    if last:
        kernels.append(Kernel("conversion", ("conversion",), by_rows, masked=False))
    return Schedule(f"tiled-backward-{order}", algorithm, tuple(kernels))


def tiled_gradients(
    mask: Band | None,
    br: Number,
    bc: Number,
    *,
    queries: tuple[Number, Number] | None = None,
    spread: bool = False,
    stages: Number = 2,
    threads: Number = 256,
    query_stages: Number = 2,
    query_threads: Number = 256,
    operand_tile: tuple[Number, Number] | None = (64, 64),
) -> Schedule:
    """Backward attention in the bundled kernels' order: all gradients in the problem's type.

    A block has `bc` keys and streams query tiles of `br`. It loops over the query heads of its
    group. With `spread` it has one query head and writes fp32 partial dK and dV, which a combining
    kernel adds up. dQ is added atomically in fp32 and converted by a separate kernel.

    With `queries` = (rows, keys) a second kernel computes dQ: a block has `rows` query rows,
    streams tiles of `keys` keys and recomputes the scores, so nothing is atomic.
    """
    delta = Kernel("delta", ("delta",), (*_HEADS, Loop("q", 32, grid=True)), masked=False)
    split = queries is not None
    keys, rows, group = Loop("x", bc, grid=True), Loop("q", br), Loop("r", 1, grid=spread)
    nest = (*_HEADS, keys, rows) if spread else (*_HEADS[:2], keys, group, rows)
    scores = ("scores", "probabilities", "dprobabilities", "dscores")
    key_kernel = Kernel(
        "key-gradients",
        (*scores, "dvalues", "dkeys", *(() if split else ("dqueries",))),
        nest,
        atomic=frozenset() if split else frozenset({"dQ32"}),
        spill={"dK": "accumulator", "dV": "accumulator"} if spread else {},
        registers=frozenset({"S", "P", "dP", "dkeys.dS"}),
        staged=frozenset() if split else frozenset({"dQ32"}),
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
    kernels = [delta, key_kernel]
    if spread:
        sums = (*_HEADS[:2], Loop("x", 32, grid=True))
        kernels.append(Kernel("combine", (), sums, combines=("dK", "dV")))
    if queries is None:
        tile = (*_HEADS, Loop("q", 32, grid=True))
        kernels.append(Kernel("conversion", ("conversion",), tile, masked=False))
    else:
        kernels.append(_query_gradients(queries, operand_tile, query_stages, query_threads))
    algorithm = attention.backward_in_kernels(mask, again=split)
    return Schedule("tiled-gradients", algorithm, tuple(kernels))


def _query_gradients(
    tile: tuple[Number, Number],
    operand_tile: tuple[Number, Number] | None,
    stages: Number,
    threads: Number,
) -> Kernel:
    """dQ of one tile of query rows: keys streamed, scores recomputed."""
    rows, keys = tile
    steps = ("scores", "probabilities", "dprobabilities", "dscores")
    return Kernel(
        "query-gradients",
        (*(f"{step}_again" for step in steps), "dqueries"),
        (*_HEADS, Loop("q", rows, grid=True), Loop("x", keys)),
        registers=frozenset({"S_again", "P_again", "dP_again", "dS_again"}),
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
