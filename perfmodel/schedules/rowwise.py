"""Row-wise operators: rows on the grid, a row held on chip or streamed in tiles."""

from __future__ import annotations

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


def elementwise(problem: Rowwise, tile: Number = 1024, threads: Number = 128) -> Schedule:
    """One kernel over the flattened tensors, `tile` elements of each a block."""
    kernel = Kernel("pointwise", ("combine", "map"), (Loop("i", tile, grid=True),), threads=threads)
    return Schedule("elementwise", problem.algorithm(), (kernel,))


def elementwise_rows(problem: Rowwise, column_tile: Number, threads: Number) -> Schedule:
    """One kernel, a row a block, which goes along it `column_tile` elements at a time."""
    nest = (Loop("i", problem.cols, grid=True), Loop("i", column_tile))
    kernel = Kernel("pointwise", ("combine", "map"), nest, threads=threads, row_passes=1)
    return Schedule("elementwise", problem.algorithm(), (kernel,))


def rows(
    problem: Rowwise,
    rows_per_block: Number = 1,
    column_tile: Number | None = None,
    threads: Number = 128,
    row_passes: Number = 2,
    stages: Number = 3,
) -> Schedule:
    """One kernel, `rows_per_block` rows a block.

    With a `column_tile` shorter than the row, the row is streamed and read a second time: its
    normaliser is known only at the end (`row_passes` times where a kernel makes more passes).
    `stages` − 1 of its tiles are in flight.
    """
    algorithm = problem.algorithm()
    along = () if column_tile is None else (Loop("c", column_tile),)
    nest = (Loop("n", rows_per_block, grid=True), *along)
    name = algorithm.steps[0].name
    kernels = [Kernel(name, (name,), nest, threads=threads, row_passes=row_passes, stages=stages)]
    # Weight gradients reduce over rows: blocks own columns and stream rows.
    kernels += [
        Kernel(step.name, (step.name,), (Loop("c", 64, grid=True), Loop("n", 64)), threads=threads)
        for step in algorithm.steps[1:]
    ]
    return Schedule("rows", algorithm, tuple(kernels))
