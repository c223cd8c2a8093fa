"""Plans for row-wise and element-wise operators."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from perfmodel.algorithms.rowwise import VARIANTS, Rowwise
from perfmodel.arithmetic import Number, product
from perfmodel.frozen import dataclass
from perfmodel.schedules import rowwise
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.libraries import RowFacts, kernel_facts
from perfmodel.timing.libraries.facts import Chain, Pieces, Rows
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Block, Code, Style
from perfmodel.timing.traffic import held_share

# Dependent reductions across a block that each row waits for, within warps and then across them:
# one for a norm, two (maximum and sum) for softmax.
_REDUCTIONS = {"softmax": 4, "layernorm": 2, "rmsnorm": 2, "quantise": 2}

# Vectors of a row's length that scale and shift every row.
_WEIGHTS = {"layernorm": 2, "rmsnorm": 1}

# Elements of one load of a thread where the class states none, and in a row held in registers.
_LOAD = 4
# Share of an operator's vector operations that run on integer lanes: the maximum of a softmax;
# maximum, clamps and conversion of a quantisation (CUDA C++ Programming Guide: compare, minimum,
# maximum).
_INTEGER = {"softmax": 1 / 4, "quantise": 5 / 6}
# Shared memory of a launch without opt-in on NVIDIA's devices (CUDA C++ Programming Guide: 48 KiB a
# block); AMD's runtime gives the full limit of a block.
_PLAIN_SHARED = 49152
# Integer instructions of an access: load or store, address, bound, branch.
_ACCESS = 4.0


def plan(problem: Rowwise, kernel: RowFacts, setting: Setting) -> Plan:
    """The plan of a row-wise operator: a row per warp while a warp can hold it, else a row per
    block, streamed as the class does.

    It has one kernel, and one before it where the class first multiplies gradient and result. Each
    row costs a chain of dependent reductions, `row_price` each, whatever its length.
    """
    machine, constants = setting.machine, setting.constants
    problem = _group_rows(_whole_tensors(problem, kernel), kernel.rows)
    if kernel.rows is None and problem.op != "pointwise":
        problem = _flat_map(problem, kernel.chain)
    # Kernels for general rows flatten operators without rows.
    flat = problem.op == "pointwise" and kernel.operator != "pointwise"
    layout = None if flat else _device_layout(kernel.rows, problem, machine)
    if layout is not None and setting.tile:
        layout = _tile_layout(layout, setting)
    schedule, steps = _schedule(problem, layout)
    streams = _maps(layout)
    style = Style(
        compute="fp32",
        overlap=1.0,
        overlap_power=constants["map_overlap_power" if streams else "row_overlap_power"],
        streams=streams,
        resident=_most_resident(problem, layout, machine),
        code=_code(problem, kernel, layout, setting),
        block=Block(
            price=0.0,
            chain_seconds=steps * constants["row_price"],
            waits=layout.waits if layout is not None else 0.0,
        ),
        run=setting.run,
    )
    # Sizes meet arrays of tiles here, which a Python int beyond 64 bits cannot.
    sizes = {axis: np.asarray(size, dtype=np.float64) for axis, size in problem.sizes().items()}
    part = Part(schedule, sizes, problem.elements(), style)
    extra = kernel.chain.kernels - 1 if kernel.chain is not None else 0
    gaps = extra * setting.small_kernel_seconds(steps=2)
    lead: tuple[Part, ...] = ()
    if kernel.gradient_product and problem.direction == "bwd":
        multiply = Rowwise("pointwise", problem.rows, problem.cols, problem.dtype, "mul", inputs=2)
        lead = plan(multiply, kernel_facts("torch-pointwise"), setting).parts
    if kernel.pieces is not None and problem.op != "pointwise" and problem.direction != "bwd":
        return _cut(Plan(schedule.name, (part,), {}, beside=gaps), problem, kernel, setting)
    return Plan(schedule.name, (*lead, part), setting.tile, beside=gaps)


def _cut(base: Plan, problem: Rowwise, kernel: RowFacts, setting: Setting) -> Plan:
    """The plan with rows cut into pieces where `base` has long rows but too few for the units;
    else `base`.

    Pieces are reduced in a pass over all rows, then their results are reduced, for each normaliser.
    The last kernel is an element-wise map over the rows. It goes row by row, and reads the weights
    again for each row, as far as one row's bytes evict them from the L2.
    """
    assert kernel.pieces is not None
    rows, columns = np.asarray(problem.rows), np.asarray(problem.cols)
    few = rows < kernel.pieces.rows * setting.machine.units
    cut = (few & (columns > kernel.pieces.columns)).astype(np.float64)
    machine, width = setting.machine, problem.elements()["data"].bytes
    weights = _WEIGHTS.get(problem.op, 0)
    distance = (2 + weights) * width * np.asarray(problem.cols, dtype=np.float64)
    hits = held_share(distance, machine.l2_capacity, setting.constants["l2_knee"])
    map_ = plan(_flat_map(problem, kernel.pieces), kernel, setting)
    extra = (kernel.pieces.kernels - 2) * setting.small_kernel_seconds(steps=2)
    code, part = base.parts[0].style.code, map_.parts[0]
    # The class's operations beyond the algorithm's run on pieces too.
    piece_code = replace(code, integer_ops=part.style.code.integer_ops)
    sizes = {**part.sizes, "j": part.sizes["j"] + weights * (1.0 - hits)}
    pieces = replace(
        part, sizes=sizes, used=cut, stands_in=True, style=replace(part.style, code=piece_code)
    )
    rest = replace(base.parts[0], used=1.0 - cut)
    return replace(
        base,
        parts=(rest, pieces),
        # The second part already counts one gap.
        beside=base.beside + cut * extra,
        calls=cut * kernel.pieces.kernels,
    )


def _whole_tensors(problem: Rowwise, kernel: RowFacts) -> Rowwise:
    """The element-wise map without the operands that are scalars in the class's calls."""
    if problem.op != "pointwise" or problem.variant not in kernel.tensors:
        return problem
    return replace(problem, inputs=np.minimum(problem.inputs, kernel.tensors[problem.variant]))


def _group_rows(problem: Rowwise, layout: Rows | None) -> Rowwise:
    """The problem with each group of a row as its own row, where groups have their own scales."""
    if layout is None or not layout.group:
        return problem
    groups = np.ceil(np.asarray(problem.cols) / layout.group)
    return replace(problem, rows=whole(problem.rows * groups), cols=layout.group)


def _flat_map(problem: Rowwise, chain: Chain | Pieces | None) -> Rowwise:
    """The operator as an element-wise map, for a class without rows or a chain."""
    inputs = chain.streams if chain is not None else 1
    output = problem.elements()["output"].name
    return replace(problem, op="pointwise", inputs=inputs, outputs=1, output_dtype=output)


@dataclass(frozen=True)
class _Layout(Rows):
    """A row layout on a device."""

    shared_columns: float = 0.0
    """Elements from which a row no longer fits in shared memory."""
    rows_per_block: int = 4
    """Rows of a block, where each warp has one."""
    tile_columns: Number = 0.0
    """Elements of a row that a block takes at once, where the caller sets a tile."""


def _extra_ops(problem: Rowwise, layout: _Layout | None, warp: int) -> dict[str, Number]:
    """Operations of the class's code beyond the algorithm's, with warps of `warp` threads."""
    if layout is None or problem.op == "pointwise":
        return {}
    elements = np.asarray(product([problem.rows, problem.cols]), dtype=np.float64)
    long_rows = np.asarray(problem.cols) > layout.held_columns
    special = layout.special_ops + long_rows * layout.again_special_ops
    folds = np.log2(warp) * problem.rows * _threads(np.asarray(problem.cols), layout)
    return {
        "vector_ops": folds * layout.folded_vector_ops,
        "special_ops": elements * special,
    }


def _code(problem: Rowwise, kernel: RowFacts, layout: _Layout | None, setting: Setting) -> Code:
    """The `Code` of the class for a problem.

    Gradients sum plainly, so the forward pass's extra operations do not apply to them.
    """
    forward_layout = layout if problem.direction != "bwd" else None
    code = Code(
        # Elements of a map are independent: its instructions issue in every slot.
        vector_share=1.0 if _maps(layout) else setting.constants["vector_share"],
        integer_ops=_integer_ops(problem, layout),
        integer_share=_INTEGER.get(problem.op, 0.0),
        accurate=kernel.accurate,
        **_extra_ops(problem, forward_layout, setting.machine.warp_threads),
    )
    return _compiled_code(code, problem, kernel) if problem.variant in kernel.compiled else code


def _compiled_code(code: Code, problem: Rowwise, kernel: RowFacts) -> Code:
    """The code of a map whose compiled operations differ from the textbook's."""
    elements = np.asarray(product([problem.rows, problem.cols]), dtype=np.float64)
    vector, integer, special = kernel.compiled[problem.variant]
    operations, functions = VARIANTS.get(problem.variant, (0.0, 0.0))
    return replace(
        code,
        accurate=False,
        vector_ops=elements * (vector - operations - problem.inputs),
        special_ops=elements * (special - functions),
        integer_ops=code.integer_ops + elements * integer,
    )


def _integer_ops(problem: Rowwise, layout: _Layout | None) -> Number:
    """Integer instructions of loads and stores: `_ACCESS` each, once per stream and pass.

    A kernel that loads single elements may spend more on accesses than on its arithmetic.
    """
    elements = product([problem.rows, problem.cols])
    if problem.op == "pointwise" or layout is None:
        load: Number = layout.load if layout is not None else _LOAD
        return _ACCESS / load * elements * problem.accesses()
    columns = np.asarray(problem.cols)
    threads = _threads(columns, layout)
    # A row that is not a multiple of a load starts unaligned; a first round of single elements
    # aligns it.
    span = np.maximum(columns - threads * (columns % layout.load != 0), 0)
    load_share = span // (threads * layout.load) * (threads * layout.load) / columns
    load_share = np.where(_in_shared(columns, layout), 1.0, load_share)
    load_share = columns // layout.load * layout.load / columns if layout.strided else load_share
    stream_cost = (layout.passes + 1) * (load_share / layout.load + (1.0 - load_share))
    held_cost = 2.0 / _LOAD
    fits = columns <= layout.held_columns
    accesses = _ACCESS * np.where(fits, held_cost, stream_cost)
    return elements * (accesses + layout.integer_ops)


def _maps(layout: _Layout | None) -> bool:
    """Whether elements are independent: there are no rows, or a row is one pass of whole loads."""
    return layout is None or (layout.strided and layout.passes == 1)


def _threads(columns: np.ndarray, layout: _Layout) -> np.ndarray:
    """Threads of a row, at most `elements_per_thread` elements each, within the class's limits."""
    threads = np.ceil(columns / layout.elements_per_thread)
    if layout.power_of_two:
        threads = np.exp2(np.ceil(np.log2(threads)))
    return np.clip(threads, layout.least_threads, layout.most_threads)


def _rounds(columns: np.ndarray, layout: _Layout) -> np.ndarray:
    """Dependent loads of a thread in a pass over a streamed row.

    Where the rest after whole rounds goes element by element, that takes up to `load` more rounds,
    and one before them in a row that starts unaligned.
    """
    threads = _threads(columns, layout)
    rounds = np.ceil(columns / (threads * layout.load))
    if not layout.leftover:
        return np.asarray(rounds)
    first = (columns % layout.load != 0) & (columns > threads)
    rest = columns - threads * first
    loads = rest // (threads * layout.load)
    single = first + loads + np.ceil((rest - loads * threads * layout.load) / threads)
    return np.asarray(np.where(_in_shared(columns, layout), rounds, single))


def _in_shared(columns: np.ndarray, layout: _Layout) -> np.ndarray:
    """Whether a row stays in shared memory: it consists of whole loads and fits there."""
    divides = columns % layout.load == 0
    return np.asarray((columns > layout.held_columns) & (columns < layout.shared_columns) & divides)


def _plain_shared(machine: Machine) -> float:
    """Bytes of shared memory that a block has without opting in to more."""
    is_amd = machine.device.vendor == "AMD"
    return machine.shared_per_block if is_amd else min(_PLAIN_SHARED, machine.shared_per_block)


def _most_resident(problem: Rowwise, layout: _Layout | None, machine: Machine) -> Number:
    """Most resident blocks of a unit: blocks with rows in shared memory request all of a plain
    launch's."""
    if layout is None or not layout.shared_columns:
        return np.inf
    most = machine.shared_capacity // (_plain_shared(machine) + machine.shared_reserved)
    return np.where(_in_shared(np.asarray(problem.cols), layout), np.maximum(most, 1.0), np.inf)


def _device_layout(layout: Rows | None, problem: Rowwise, machine: Machine) -> _Layout | None:
    """The layout on a device, for the problem's type."""
    if layout is None:
        return None
    room = _plain_shared(machine) / problem.elements()["data"].bytes if layout.shared_rows else 0.0
    facts = {field.name: getattr(layout, field.name) for field in fields(Rows)}
    # Four warps share a unit. A core or a systolic unit has no warps: it takes a row at a time.
    rows = 128 // machine.warp_threads if machine.device.kind == "gpu" else 1
    return _Layout(**facts, shared_columns=room, rows_per_block=rows)


def _tile_layout(layout: _Layout, setting: Setting) -> _Layout:
    """The layout with one row per block, and the threads and elements of the caller's own tile."""
    columns, threads = setting.tile["columns"], setting.own_threads
    return replace(
        layout,
        held_columns=columns,  # type: ignore[arg-type]
        tile_columns=columns,
        least_threads=threads,  # type: ignore[arg-type]
        most_threads=threads,  # type: ignore[arg-type]
    )


def _schedule(problem: Rowwise, layout: _Layout | None) -> tuple[Schedule, Number]:
    """The class's loop nest, and the number of dependent reductions that a row waits for."""
    if layout is None:
        return rowwise.elementwise(problem), 0.0
    single = layout.passes == 1 and layout.held_columns == 0
    columns = np.asarray(problem.cols)
    in_registers, threads = columns <= layout.held_columns, _threads(columns, layout)
    tile_columns = layout.tile_columns
    stream_tile = np.where(tile_columns > 0, tile_columns, threads * layout.load)
    tile = np.where(in_registers, columns, np.minimum(stream_tile, columns))
    if layout.leftover:
        # Slightly more than its share, so that rounding errors do not add a tile.
        tile = np.where(in_registers, tile, columns / _rounds(columns, layout) * (1.0 + 1e-9))
    if problem.op == "pointwise":
        return rowwise.elementwise_rows(problem, tile, np.maximum(threads, 64)), 1.0
    by_warp = in_registers & (columns <= 1024) & (tile_columns == 0)
    schedule = rowwise.rows(
        problem,
        np.where(by_warp, layout.rows_per_block, 1),
        tile,
        threads=np.where(by_warp, 128, np.maximum(threads, 64)),
        row_passes=np.where(in_registers | _in_shared(columns, layout), 1, layout.passes),
        stages=layout.stages,
    )
    steps = 1.0 if single else _REDUCTIONS[problem.op]
    # A warp that holds a whole row needs no reduction across warps.
    return schedule, steps * np.where(by_warp | layout.shuffles, 0.5, 1.0)


def whole(count: Number) -> Number:
    """A product of sizes as an integer; arrays are clipped to what 64 bits hold."""
    if not isinstance(count, np.ndarray):
        return int(count)
    return np.minimum(count, 2.0**62).astype(np.int64)
