"""Tiled matmul: an output tile per thread block, k streamed; grouped launch order and split-K.

Traffic at the L2 boundary is MNK(1/BM + 1/BN) + MN elements (the counting rule on this nest).
"""

from __future__ import annotations

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.algorithms.matmul import matmul
from perfmodel.arithmetic import Number
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


def tiled_matmul(
    bm: Number,
    bn: Number,
    bk: Number,
    *,
    group_m: Number | None = None,
    split_k: Number | None = None,
    stages: Number = 3,
    threads: Number = 128,
    operand_tile: tuple[Number, Number] | None = (64, 64),
    combine_tile: tuple[Number, Number] | None = None,
    row_tiles: Number | None = None,
    algorithm: Algorithm | None = None,
) -> Schedule:
    """C in tiles of bm × bn, streamed along k in steps of bk.

    `group_m` launches that many row blocks together, column by column, so that concurrent blocks
    share operands in L2 (Triton's grouped order). `split_k` is the extent of k that one block sums.
    Where it is less than k, a second kernel adds the partial tiles up, one block for each
    `combine_tile` of (rows, columns), bm × bn unless given.

    `row_tiles` is the mean number of tiles
    along m where products have different rows. `algorithm` is a variant of `matmul()`
    (widened weights, promoted accumulators).
    """
    algorithm = algorithm or matmul()
    groups = () if group_m is None else (Loop("m", group_m * bm, grid=True),)
    slices = () if split_k is None else (Loop("k", split_k, grid=True),)
    kernel = Kernel(
        "matmul",
        tuple(step.name for step in algorithm.steps),
        (
            Loop("b", 1, grid=True),
            *slices,
            *groups,
            Loop("n", bn, grid=True),
            Loop("m", bm, grid=True, trips=row_tiles),
            Loop("k", bk),
        ),
        spill={"C": "accumulator"},
        registers=frozenset({"Bw"}),
        operand_tile=operand_tile,
        stages=stages,
        threads=threads,
    )
    if split_k is None:
        return Schedule("tiled", algorithm, (kernel,))
    rows, columns = combine_tile or (bm, bn)
    combine = Kernel(
        "combine",
        (),
        (Loop("b", 1, grid=True), Loop("m", rows, grid=True), Loop("n", columns, grid=True)),
        combines=("C",),
    )
    return Schedule("split-k", algorithm, (kernel, combine))
