"""Row-wise operators: rows on the grid, a row held on chip or streamed in tiles."""

from __future__ import annotations

from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


def elementwise(problem: Rowwise, tile: Number = 1024, threads: Number = 128) -> Schedule:
    """One kernel over the flattened tensors; a block has `tile` elements of each."""
    algorithm = problem.algorithm()
    steps = tuple(step.name for step in algorithm.steps)
    kernel = Kernel("pointwise", steps, (Loop("i", tile, grid=True),), threads=threads)
    return Schedule("elementwise", algorithm, (kernel,))


def elementwise_rows(problem: Rowwise, column_tile: Number, threads: Number) -> Schedule:
    """One kernel, one row a block, in steps of `column_tile` elements."""
    nest = (Loop("i", problem.cols, grid=True), Loop("i", column_tile))
    algorithm = problem.algorithm()
    steps = tuple(step.name for step in algorithm.steps)
    kernel = Kernel("pointwise", steps, nest, threads=threads, row_passes=1)
    return Schedule("elementwise", algorithm, (kernel,))


def rows(
    problem: Rowwise,
    rows_per_block: Number = 1,
    column_tile: Number | None = None,
    threads: Number = 128,
    row_passes: Number = 2,
    stages: Number = 3,
) -> Schedule:
    """One kernel, `rows_per_block` rows a block.

    With a `column_tile` shorter than the row, the row is streamed and read again, since its
    normaliser is known only at the end: `row_passes` reads in all. `stages` − 1 tiles are in
    flight.
    """
    algorithm = problem.algorithm()
    stream = () if column_tile is None else (Loop("c", column_tile),)
    nest = (Loop("n", rows_per_block, grid=True), *stream)
    name = algorithm.steps[0].name
    kernels = [Kernel(name, (name,), nest, threads=threads, row_passes=row_passes, stages=stages)]
    # Weight gradients reduce over rows: blocks own columns and stream rows.
    kernels += [
        Kernel(step.name, (step.name,), (Loop("c", 64, grid=True), Loop("n", 64)), threads=threads)
        for step in algorithm.steps[1:]
    ]
    return Schedule("rows", algorithm, tuple(kernels))


def norm_gradients(
    problem: Rowwise,
    rows_per_step: Number,
    threads: Number,
    *,
    span: Number,
    fused: bool,
    weight_tile: tuple[Number, Number] = (64, 64),
    fold_tile: Number = 64,
) -> Schedule:
    """A norm's gradients, with those of the weights summed over slices of `span` rows.

    Fused, a block goes through its slice `rows_per_step` rows at a time, writes their gradient and
    accumulates the weights' gradients. Otherwise a second kernel sums the weights' gradients in
    blocks of `weight_tile` (rows of a step, columns). Sums of several slices are fp32; a last
    kernel adds them up, `fold_tile` columns a block.
    """
    algorithm = problem.algorithm()
    rows, weights = algorithm.steps
    partials = dict.fromkeys(weights.outputs, "accumulator")
    slices = Loop("n", span, grid=True)
    if fused:
        kernels = [
            Kernel(
                f"{rows.name}+{weights.name}",
                (rows.name, weights.name),
                (slices, Loop("n", rows_per_step)),
                spill=partials,
                threads=threads,
            )
        ]
    else:
        step, columns = weight_tile
        row_nest = (Loop("n", rows_per_step, grid=True),)
        weight_nest = (slices, Loop("c", columns, grid=True), Loop("n", step))
        kernels = [
            Kernel(rows.name, (rows.name,), row_nest, threads=threads),
            Kernel(weights.name, (weights.name,), weight_nest, spill=partials, threads=threads),
        ]
    if problem.rows > span:
        nest = (Loop("c", fold_tile, grid=True),)
        kernels.append(Kernel("fold", (), nest, combines=weights.outputs, threads=threads))
    return Schedule("fused" if fused else "rows", algorithm, tuple(kernels))
