"""Cliffs: known cases where more work takes less time, or a better device takes more.

A library's rule may favour a larger problem, or a mask may cross fewer tiles (docs/model.md,
section 10). A check that exceeds its tolerance must be explained by one of these cliffs and be
within its depth; anything else is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from changes import Change
from tilings import k_of_busiest, query_slices, steps_streamed, visited

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.prediction import Predictions
from perfmodel.timing import rowwise
from perfmodel.timing.cuts import EvenCut, SmallestCut, WavesCut
from perfmodel.timing.libraries import AttentionFacts, GemmFacts
from perfmodel.timing.machine import machine

TOLERANCES = {"units": 1.05, "k": 1.10, "n": 1.10}
"""What a law may be missed by without a reason of its own.

More units hold more blocks, whose rows share one cache: 5 %. One more step of k divides what a
block fills its pipeline with: 10 %; and so for n of few columns.
"""
NEAR = 1.03
"""What all other laws may be missed by: whole tiles, rounds of blocks and loads."""

Depth = Callable[[Change], np.ndarray | float]
Where = Callable[[Change], np.ndarray | bool]


@dataclass(frozen=True)
class Cliff:
    """Where it `applies`, shape (n,); the `most` that it may cost; why, and by what source."""

    name: str
    applies: Where
    most: Depth
    why: str


def tolerance(change: Change) -> float:
    """Ratio up to which a change obeys its law."""
    return TOLERANCES.get(change.what, NEAR)


def constant(most: float) -> Depth:
    """A cliff as deep everywhere."""
    return lambda _: most


def _sliced_otherwise(change: Change) -> np.ndarray | bool:
    """Whether a library's rule cuts the keys into another number of slices."""
    kernel = change.kernel
    ruled = isinstance(kernel, AttentionFacts) and isinstance(
        kernel.cut, SmallestCut | EvenCut | WavesCut
    )
    return ruled and change.tile_changed("splits")


def heads_cut_otherwise(change: Change) -> np.ndarray | bool:
    """Whether FlashAttention-1 cuts a head's queries into another number of slices."""
    first, second = (query_slices(each)[0] for each in (change.before, change.after))
    return first != second


def longer_slices(change: Change) -> np.ndarray | bool:
    """Whether FlashAttention-1's slices of a head's queries get longer by a tile."""
    first, second = (query_slices(each)[1] for each in (change.before, change.after))
    return first != second


def _crosses_fewer(change: Change) -> np.ndarray | bool:
    """Whether a mask moves and leaves fewer tiles, in all or to the longest block."""
    moving = change.what in ("seq_q", "seq_kv", "window")
    if not (moving and isinstance(change.problem, Attention) and change.problem.mask()):
        return False
    return _times_fewer(change) > 1.0


def _times_fewer(change: Change) -> np.ndarray:
    """Times as many tiles that the mask left before, in all or to the longest block."""
    first, second = visited(change.before), visited(change.after)
    ratios = [np.asarray(a, float) / np.maximum(b, 1.0) for a, b in zip(first, second, strict=True)]
    return np.asarray(np.max(ratios, axis=0))


def _mask_moves(change: Change) -> bool:
    """Whether a size grew that moves the edges of a mask."""
    moving = change.what in ("seq_q", "seq_kv", "window")
    return moving and isinstance(change.problem, Attention) and change.problem.mask() is not None


def _more_memory_bytes(change: Change) -> np.ndarray:
    """Times as many bytes of main memory on the device with more units."""
    return 1.02 * change.after.bytes["hbm"] / change.before.bytes["hbm"]


def _fewer_on_a_unit(change: Change) -> np.ndarray | bool:
    """Whether twice the units leave each with fewer rows that find weights in its L1."""
    if change.what != "units" or not isinstance(change.problem, Rowwise):
        return False
    return change.after.bytes["l2"] > change.before.bytes["l2"]


def _more_l2_bytes(change: Change) -> np.ndarray:
    """Times as many bytes of the L2 on the device with more units."""
    return NEAR * change.after.bytes["l2"] / change.before.bytes["l2"]


def _fewer_rows_at_once(change: Change) -> np.ndarray | bool:
    """Whether rows of a row-wise kernel get longer, and less of them is read again from memory."""
    rows = isinstance(change.problem, Rowwise) and change.what == "cols"
    scores = change.before.implementation == "eager" and change.what == "seq_kv"
    return (rows or scores) & (_fewer_memory_bytes(change) > NEAR)


def _fewer_memory_bytes(change: Change) -> np.ndarray:
    """Times as many bytes of main memory before the change."""
    return NEAR * change.before.bytes["hbm"] / change.after.bytes["hbm"]


def _other_tiles(change: Change) -> np.ndarray:
    """What masks and other tiles cost, or times as many rows of a tile if more.

    Few queries leave most rows of a tile empty, which are multiplied all the same.
    """
    rows = (each.tile.get("rows", np.ones(1)) for each in (change.before, change.after))
    first, second = rows
    return np.maximum(2.6, NEAR * first / second)


def menu_left(change: Change) -> np.ndarray | bool:
    """Whether m leaves the rows that a library has a kernel or tiles of their own for."""
    kernel = change.kernel
    if change.what != "m" or not isinstance(kernel, GemmFacts):
        return False
    first, second = change.sizes("m")
    limits = {kernel.few_rows, *sorted(kernel.tiles)[:-1]} - {0}
    return np.any([(first <= rows) & (second > rows) for rows in sorted(limits)], axis=0)


def _became_batched(change: Change) -> np.ndarray | bool:
    """Whether a plain product became a batched one."""
    if not isinstance(change.problem, Matmul) or change.what != "batch":
        return False
    first, second = change.sizes("batch")
    return (first == 1) & (second > 1)


def _rows_aligned(change: Change) -> np.ndarray | bool:
    """Whether rows of a row-wise kernel come to end on a whole load of 4 elements."""
    if isinstance(change.problem, Rowwise):
        axis = "cols"
    else:
        axis = "seq_kv" if change.before.implementation == "eager" else ""
    if not axis or change.what != axis:
        return False
    first, second = change.sizes(axis)
    return (first % 4 != 0) & (second % 4 == 0)


def _window_tiles(change: Change) -> np.ndarray | bool:
    """Whether a window comes to hide nothing, or has other tiles."""
    if change.kind != "window" or change.what not in ("window", "seq_kv", "seq_q"):
        return False
    first, second = (np.asarray(each.problem.windowed()) for each in (change.before, change.after))
    return (first != second) | change.tile_changed("rows", "keys")


def _rows_spread(change: Change) -> np.ndarray | bool:
    """Whether rows become too long for four to a block, or start another block of four."""
    if isinstance(change.problem, Attention):
        columns = "seq_kv" if change.before.implementation == "eager" else ""
    else:
        columns = "cols" if isinstance(change.problem, Rowwise) else ""
    if not columns or change.what not in (columns, "rows"):
        return False
    first, second = change.sizes(change.what)
    if change.what == columns:
        return (first <= 1024) & (second > 1024)
    if not isinstance(change.problem, Rowwise):
        return False
    return (change.what == "rows") & (np.asarray(change.problem.cols) <= 1024) & (first <= 64)


def _rows_streamed(change: Change) -> np.ndarray | bool:
    """Whether rows become too long for registers, so that blocks stream them."""
    if not isinstance(change.problem, Rowwise) or change.what != "cols":
        return False
    return change.before.occupancy < change.after.occupancy


def _few_rows_rounds(change: Change) -> np.ndarray:
    """Times as many rounds of blocks of the kernel for few rows as of the one for more."""
    first, second = (np.maximum(each.waves, 1.0) for each in (change.before, change.after))
    return np.maximum(2.6, first / second)


def _few_steps(change: Change) -> np.ndarray | bool:
    """Whether blocks of one step of their stream, or two, get more."""
    if change.what == "k":
        first, second = change.sizes("k")
        return (first <= 128) & (second > 8)
    if change.what not in ("seq_kv", "seq_q", "window"):
        return False
    return np.any([(a <= 2) & (b > a) for a, b in _steps(change)], axis=0)


def _steps(change: Change) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps before and after, for every tile of either pass."""
    return list(zip(steps_streamed(change.before), steps_streamed(change.after), strict=False))


def _less_in_turn(change: Change) -> np.ndarray | float:
    """Times as much is left unhidden of a stage as long as the longest, 1 / n of it at n steps."""
    if change.what == "k":
        return 1.25
    ratios = [(1.0 + 1.0 / a) / (1.0 + 1.0 / b) for a, b in _steps(change)]
    return np.minimum(1.25, np.max(ratios, axis=0))


def _times_fewer_accesses(change: Change) -> np.ndarray:
    """Times as many integer instructions of accesses an element before; 1 of other operators."""
    kernel = change.kernel
    if not isinstance(change.problem, Rowwise) or kernel is None or kernel.rows is None:
        return np.ones(len(change.before))

    def each(found: Predictions) -> np.ndarray:
        problem = found.problem
        assert isinstance(problem, Rowwise)
        layout = rowwise._device_layout(kernel.rows, problem, machine(found.device))
        elements = np.asarray(problem.rows, float) * problem.cols
        return np.asarray(rowwise._integer_ops(problem, layout) / elements)

    return each(change.before) / each(change.after)


def _accesses_fewer(change: Change) -> np.ndarray | bool:
    """Whether rows of a gradient grow so that fewer of their elements are accessed one by one."""
    gradient = isinstance(change.problem, Rowwise) and change.problem.direction == "bwd"
    return (change.what == "cols") & gradient & (_times_fewer_accesses(change) > 1.0)


def _column_blocks(predictions: Predictions) -> np.ndarray:
    """Blocks of the kernel that sums the weights' gradients: 64 columns each."""
    return np.ceil(np.asarray(predictions.problem.cols, float) / 64)


def _more_column_blocks(change: Change) -> np.ndarray | bool:
    """Whether a row of a gradient grows into one more block of columns, of fewer than units."""
    gradient = isinstance(change.problem, Rowwise) and change.problem.direction == "bwd"
    if not gradient or change.what != "cols":
        return False
    blocks = _column_blocks(change.after)
    return (blocks > _column_blocks(change.before)) & (blocks <= machine(change.after.device).units)


def _slices_shorter(change: Change) -> np.ndarray | bool:
    """Whether k grows so that slices come out shorter and the busiest unit has less of it."""
    if change.what != "k" or not isinstance(change.problem, Matmul):
        return False
    return k_of_busiest(change.before) > k_of_busiest(change.after)


def _few_rounds(change: Change) -> np.ndarray | bool:
    """Whether twice the units hold all blocks of tiles in few rounds."""
    if change.what != "units" or isinstance(change.problem, Rowwise):
        return False
    return change.after.waves <= 8.0


CLIFFS = (
    Cliff(
        "slices of the keys by a library's rule",
        _sliced_otherwise,
        constant(2.7),
        "FlashAttention-2 and -3 choose slices by counts of blocks and units, not by time "
        "(num_splits_heuristic in flash_api.cpp and heuristics.h), FlashInfer by two blocks a unit "
        "(PrefillPlan in scheduler.cuh), so that one sequence or unit more may add or save a "
        "combining kernel.",
    ),
    Cliff(
        "slices of a head's queries by FlashAttention-1's rule",
        heads_cut_otherwise,
        constant(2.8),
        "FlashAttention-1 cuts queries by how full the last wave is, at two blocks a unit whatever "
        "the tile (num_splits_heuristic_fwd in fmha_fwd_launch_template.h).",
    ),
    Cliff(
        "slices of a head's queries in whole tiles",
        longer_slices,
        constant(1.1),
        "A slice is whole tiles of 16 queries, so that one query more may lengthen most slices and "
        "leave little for the last one.",
    ),
    Cliff(
        "a mask that crosses fewer tiles",
        _crosses_fewer,
        lambda change: 1.1 * _times_fewer(change),
        "Kernels visit whole tiles, and an edge of the mask that comes to lie on their borders "
        "cuts fewer of them.",
    ),
    Cliff(
        "a kernel for few rows",
        menu_left,
        _few_rows_rounds,
        "TensorRT-LLM has a kernel on the vector unit for up to 4 rows of int8 "
        "(int8SQ.cu: smoothQuantGemmPlugin), in blocks of 8 columns: short k does not pay for so "
        "many, and a few units start them in turn. vLLM has tiles by rows of fp8 "
        "(scaled_mm_sm89_fp8_dispatch.cuh).",
    ),
    Cliff(
        "products that become batched",
        _became_batched,
        constant(1.3),
        "cuBLAS has other kernels for strided batches.",
    ),
    Cliff(
        "rows that come to end on a whole load",
        _rows_aligned,
        constant(1.35),
        "What is left of a row after loads of 4 elements goes one element at a time.",
    ),
    Cliff(
        "more blocks than the cache holds rows of",
        lambda change: change.what == "units",
        _more_memory_bytes,
        "Twice the units stream twice the rows at once, which no longer fit in the chip's cache "
        "between two passes over them.",
    ),
    Cliff(
        "fewer rows on a unit than share its weights",
        _fewer_on_a_unit,
        _more_l2_bytes,
        "A row of a normalisation finds the weights in its unit's L1 that the row before read; on "
        "twice the units there is no row before, and all read them from the L2, whose rate is the "
        "chip's.",
    ),
    Cliff(
        "fewer rows at once between two passes",
        _fewer_rows_at_once,
        _fewer_memory_bytes,
        "One element more may take twice the threads for a row, so that a unit streams half as "
        "many rows at once, and the cache holds more of them until the next pass (PyTorch, "
        "SoftMax.cu: SoftMax_getBlockSize).",
    ),
    Cliff(
        "tiles of another kernel behind a window",
        _window_tiles,
        _other_tiles,
        "FlashAttention-3 has tiles of its own where a window hides keys, and its kernel for few "
        "queries where none does, whose tile has a third of the rows (tile_size.h, "
        "flash_api.cpp); masks with two edges are compared with twice.",
    ),
    Cliff(
        "four short rows to a block",
        _rows_spread,
        constant(2.1),
        "Rows of up to 1,024 elements, of a softmax over scores as well, go a warp each, four to a "
        "block, longer ones a block each: few of them spread over four times the units (PyTorch, "
        "PersistentSoftmax.cuh).",
    ),
    Cliff(
        "ragged rows that get longer",
        _accesses_fewer,
        _times_fewer_accesses,
        "A row of no whole loads starts with a round of single elements, a smaller share of a "
        "longer one. A limit of the model: the kernel of the weights' gradients is charged as many "
        "accesses an element, and where it has fewer blocks than there are units they show.",
    ),
    Cliff(
        "one block of columns more",
        _more_column_blocks,
        lambda change: _column_blocks(change.after) / _column_blocks(change.before),
        "The kernel of the weights' gradients has a block for 64 columns that streams all rows. "
        "A column more than whole blocks gives it another unit: its time falls by that share.",
    ),
    Cliff(
        "slices of k in whole pairs of steps",
        _slices_shorter,
        lambda change: NEAR * k_of_busiest(change.before) / k_of_busiest(change.after),
        "Libraries cut k into slices from a short list, each a whole number of pairs of steps: one "
        "k more may be the first to come out as shorter slices that still fill as many rounds.",
    ),
    Cliff(
        "rows that registers no longer hold",
        _rows_streamed,
        constant(1.4),
        "A block that holds a long row leaves no room for another; streamed rows take two blocks "
        "a unit, which wait for each other's loads.",
    ),
    Cliff(
        "a pipeline of few steps",
        _few_steps,
        _less_in_turn,
        "A block of one step loads, multiplies and stores in turn; with two steps half of that "
        "goes on side by side, with three two thirds. A limit of the model: the store of the "
        "result does not.",
    ),
    Cliff(
        "what a mask costs beside its tiles",
        _mask_moves,
        constant(1.1),
        "A limit of the model: compares and pipeline fill go by the mean row of tiles times the "
        "longest row's share, though every row has as many of them.",
    ),
    Cliff(
        "few rounds of blocks",
        _few_rounds,
        constant(1.12),
        "Blocks of one round load their tiles while those before them store; the fewer rounds, the "
        "less of that. A limit of the model: memory that is busy all the time is as fast either "
        "way.",
    ),
)
"""The first that applies takes a check."""
