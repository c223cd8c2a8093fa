"""Plans for matmul: tiles × slices of k from the class's menu."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.matmul import Matmul, is_widened, matmul, matmul_format
from perfmodel.arithmetic import Number, as_floats
from perfmodel.errors import PerfmodelError
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import GemmFacts, resolve
from perfmodel.timing.machine import DOT_PRODUCTS, Machine
from perfmodel.timing.menu import (
    GROUP,
    Candidates,
    candidates,
    own_menu,
    slice_k,
    stages_held,
    step_depth,
    thread_tile,
)
from perfmodel.timing.plan import Estimate, Part, Plan, time_plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.shares import hidden_share, matrix_share
from perfmodel.timing.style import Block, Code, LargeProduct, Style, Turns

# Rows, columns and depth of a product that is large on every device.
_LARGE = 8192
# Large products that were asked for last, by device, constants, type and activity of the data.
_ASKED: list[tuple[Machine, Constants, tuple[str, float], LargeProduct]] = []


def compute_type(problem: Matmul, kernel: GemmFacts, machine: Machine) -> str:
    """The type at whose rate the product runs."""
    compute = matmul_format(problem.dtype).compute
    if compute == "int8" and kernel.instruction == "vector":
        return DOT_PRODUCTS
    return machine.multiplied_as(compute)


def plan(problem: Matmul, kernel: GemmFacts, setting: Setting) -> Plan:
    """Every column of the menu; the caller takes the fastest.

    Where the caller sets a tile, it is the only column.
    """
    machine = setting.machine
    elements, sizes = problem.elements(), as_floats(problem.sizes())
    width = max(elements["data"].bytes, elements["weights"].bytes)
    style = products(kernel, compute_type(problem, kernel, machine), setting)
    dims = setting.tile
    menu = own_menu(dims, setting.own_threads) if dims else candidates(kernel)
    menu = menu.by_columns() if kernel.caller.column_major and not dims else menu
    depth = dims.get("k", step_depth(kernel, menu, width, elements["weights"].bytes))
    slices = slice_k(np.asarray(sizes["k"]), menu.slices, depth)
    allowed = menu.serves(sizes["m"], sizes["n"])
    allowed = allowed & menu.fits(sizes, np.inf if dims else kernel.sliced_waves * machine.units)
    row_tiles = problem.row_tiles(menu.rows)
    schedule = tiled_matmul(
        menu.rows,
        menu.columns,
        depth,
        group_m=dims.get("group", GROUP) if row_tiles is None else None,
        row_tiles=row_tiles,
        split_k=slices if len(kernel.splits) > 1 or np.any(menu.slices > 1) else None,
        stages=dims.get(
            "stages",
            stages_held(machine, (menu.rows + menu.columns) * depth * width, kernel.held_steps),
        ),
        threads=menu.threads,
        operand_tile=_operand_tile(kernel, style.compute, machine, menu),
        algorithm=matmul(
            dequantise=max(kernel.widening_ops, 1) if is_widened(problem.dtype) else 0,
            promote_every=128 if kernel.promoted else None,
        ),
    )
    if kernel.group_waits:
        group_tiles = np.ceil(sizes["m"] / menu.rows) if row_tiles is None else row_tiles
        tiles = sizes["b"] * group_tiles * np.ceil(sizes["n"] / menu.columns)
        changes = np.minimum(sizes["b"] * machine.units / tiles, 1.0)  # of a unit's tiles
        style = replace(style, block=replace(style.block, waits=kernel.group_waits * changes))
    part = Part(schedule, sizes, elements, style)
    tile = {"m": menu.rows, "n": menu.columns, "slices": menu.slices, **dims}
    preparation = kernel.prepares * setting.small_kernel_seconds(steps=2)
    return Plan(schedule.name, (part,), tile, beside=preparation, allowed=allowed)


def products(kernel: GemmFacts, compute: str, setting: Setting) -> Style:
    """The style of products at the rate of `compute`, for any operands."""
    machine, constants, run = setting.machine, setting.constants, setting.run
    on_vector = kernel.instruction == "vector"
    default = constants["vector_loop_share" if on_vector else "matrix_share"]
    share = default if kernel.share is None else kernel.share
    issue_bound = on_vector and machine.issue_bound(compute)
    if issue_bound:
        share /= 1.0 + constants["issue_share"]
    architecture = machine.architecture
    native = kernel.instruction == "native" and architecture.copies == "tensor"
    specialised = kernel.specialises and native
    staged = on_vector and machine.staged
    ahead = architecture.instruction in kernel.starts_ahead
    if kernel.caller.activity is not None:
        run = replace(run, activity=kernel.caller.activity)
    if kernel.caller.turns is not None:
        run = replace(run, turns=kernel.caller.turns)
    return Style(
        compute=compute,
        matrix_share=share * matrix_share(kernel, machine),
        overlap=hidden_share(kernel, constants),
        multicast=2.0 if architecture.clusters else 1.0,
        persistent=specialised,
        tensor_copies=specialised,
        overlap_power=constants["staged_overlap_power"] if staged else None,
        combining_seconds=constants["split_price"],
        code=Code(vector_share=constants["vector_share"]),
        block=Block(
            turn_seconds=kernel.step_cycles / machine.clock_hz,
            # The first blocks start while the kernel before is still running.
            setup_seconds=-constants["block_price"] if ahead else 0.0,
        ),
        stream_share=constants["stream_share_tiles"],
        # One warp stages operands in its registers while another one multiplies.
        turns=Turns(
            warps=2 if staged else 1,
            fetched_by=constants["overlap_power"] if issue_bound else None,
        ),
        run=run,
    )


def _operand_tile(
    kernel: GemmFacts, compute: str, machine: Machine, menu: Candidates
) -> tuple[Number, Number]:
    """Warp tile where registers feed the unit, instruction shape where shared memory does.

    Where arithmetic fills every issue slot, a thread's own loads count. Where fp32 lanes are half
    as many as issue lanes, loads issue in between, and only what a warp shares counts.
    """
    rows, columns = menu.rows, menu.columns
    if kernel.instruction == "vector" and machine.issue_bound(compute):
        return thread_tile(rows, columns, menu.threads)
    if kernel.instruction == "vector":
        return np.minimum(rows, 64), np.minimum(columns, 32)
    if kernel.instruction == "register" or machine.architecture.feeds_registers:
        return np.minimum(rows, 64), np.minimum(columns, 64)
    return np.minimum(rows, machine.architecture.rows), columns


def large_product(compute: str, setting: Setting) -> LargeProduct:
    """The usual library's product of 8192³ in a type, of the setting's data.

    Two chained products do the same operations with less to overlap them with. In the table of
    measured runs, the fastest product is faster than the fastest attention on every device and in
    every type that has both: bf16 on A100, H100, H200, B200 and L40S, fp8 on all but A100. Zeros
    where no library multiplies the type.
    """
    machine, constants, activity = setting.machine, setting.constants, setting.run.activity
    for device, values, key, answer in _ASKED:
        if device is machine and values is constants and key == (compute, activity):
            return answer
    flops = 2.0 * float(_LARGE) ** 3
    try:
        problem = Matmul(_LARGE, _LARGE, _LARGE, dtype=compute)
        kernel, _ = resolve("gemm", None, compute, machine)
        base = Setting(machine, constants, Circumstances(activity=activity))
        boosted = replace(base, constants=constants.without("power"))
        boost, sustained = (_best(problem, kernel, one) for one in (boosted, base))
        power = sustained.terms["power"] + sustained.terms["blocks"]
        product = LargeProduct(float(boost.seconds[0]) / flops, float(power[0]) / flops)
    except PerfmodelError:
        product = LargeProduct(0.0, 0.0)
    _ASKED[:] = [(machine, constants, (compute, activity), product), *_ASKED[:7]]
    return product


def _best(problem: Matmul, kernel: GemmFacts, setting: Setting) -> Estimate:
    """The product in the fastest column of the menu."""
    choices = plan(problem, kernel, setting)
    shape = np.broadcast_shapes(*(np.shape(size) for size in choices.tile.values()))
    timing = time_plan(setting.machine, setting.constants, choices, shape)
    return timing.at(np.argmin(timing.seconds, axis=1))
