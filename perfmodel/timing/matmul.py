"""Plans for matmul: tiles × slices of k from the class's menu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from perfmodel.algorithms.matmul import WIDENED, Matmul, matmul, matmul_format
from perfmodel.arithmetic import Number, as_floats, ceil_div
from perfmodel.elements import ElementType
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import KernelClass, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Row blocks launched together so that their columns are shared in L2 (theory: √(slots·BN/BM)).
_GROUP = 8

# Columns of the menu that are timed in full.
KEEP = 8


def compute_type(problem: Matmul, machine: Machine) -> str:
    """Rate the matrix unit runs at; a device without bf16 runs it as fp16, without fp16 as fp32."""
    wanted = matmul_format(problem.dtype).compute
    types = machine.device.matrix_types
    if wanted == "bf16" and "bf16" not in types and "fp16" in types:
        return "fp16"
    return wanted


@dataclass(frozen=True)
class Candidates:
    """Columns of the menu: tile rows, tile columns, threads, slices of k; (1, c) or (n, c)."""

    rows: np.ndarray
    columns: np.ndarray
    threads: np.ndarray
    slices: np.ndarray

    def take(self, index: np.ndarray) -> Candidates:
        """The columns `index` (n, c) of a (1, m) menu."""
        return Candidates(*(getattr(self, f.name)[0][index] for f in fields(self)))


def candidates(kernel: KernelClass) -> Candidates:
    """Every tile of the class with every slicing of k."""
    menu = np.array(kernel.menu(0, decode=False), dtype=np.float64)
    each, slices = np.meshgrid(np.arange(len(menu)), np.array(kernel.splits, float), indexing="ij")
    rows, columns, threads = menu[each.ravel()].T[:, None]
    return Candidates(rows, columns, threads, slices.ravel()[None])


def plan(
    problem: Matmul,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
    *,
    keep: int = KEEP,
) -> Plan:
    """The `keep` most promising columns of the menu; the caller takes the fastest."""
    elements, sizes = problem.elements(), as_floats(problem.sizes())
    on_vector = kernel.instruction == "vector"
    # A step of k is a 128-byte line of the wider operand; vector kernels take 16.
    width = max(elements["data"].bytes, elements["weights"].bytes)
    depth = 16 if on_vector else int(128 // width)
    how = _style(problem, kernel, machine, constants, around)
    menu = candidates(kernel)
    if menu.rows.size > keep:
        menu = menu.take(_promising(sizes, elements, menu, how, machine, constants, depth, keep))
    slice_k = ceil_div(ceil_div(sizes["k"] * np.ones(1), menu.slices), 2 * depth) * 2 * depth
    schedule = tiled_matmul(
        menu.rows,
        menu.columns,
        depth,
        group_m=_GROUP,
        split_k=slice_k if len(kernel.splits) > 1 else None,
        stages=_stages(machine, (menu.rows + menu.columns) * depth * width),
        threads=menu.threads,
        operand_tile=_operand_tile(kernel, machine, menu.rows, menu.columns),
        algorithm=matmul(
            dequantise=problem.dtype in WIDENED,
            promote_every=128 if kernel.promoted else None,
        ),
    )
    part = Part(schedule, sizes, elements, how)
    tile = {"m": menu.rows, "n": menu.columns, "slices": menu.slices}
    return Plan(schedule.name, (part,), tile)


def _promising(
    sizes: Mapping[str, Number],
    elements: Mapping[str, ElementType],
    menu: Candidates,
    how: Style,
    machine: Machine,
    constants: Constants,
    depth: int,
    keep: int,
) -> np.ndarray:
    """Columns of the menu that can be fastest, by the few terms that tell them apart.

    Quantised matrix time, L2 and least memory time, latency, the price of a round of blocks and
    the partial sums, joined much as the full model joins them. Tests hold the choice against the
    whole menu.
    """
    b, m, n, k = (sizes[axis] * np.ones((1, 1)) for axis in "bmnk")
    data, weights = elements["data"].bytes, elements["weights"].bytes
    stages = _stages(machine, (menu.rows + menu.columns) * depth * max(data, weights))
    across, down = np.ceil(n / menu.columns), np.ceil(m / menu.rows)
    grid = b * across * down * menu.slices
    busiest = np.ceil(grid / machine.units)
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    matrix = busiest * menu.rows * menu.columns * (2 * np.ceil(k / menu.slices) / rate)
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    l2 = b * k * (m * across * data + n * down * weights) / (l2_rate * how.multicast)
    port = (menu.rows * data + menu.columns * weights) * np.ceil(k / menu.slices) * busiest
    l2 = np.maximum(l2, port / (64.0 * machine.clock_hz * how.multicast))
    partial = np.where(menu.slices > 1, 8.0 * b * m * n * menu.slices / l2_rate, 0.0)
    price = constants["block_price"] * 1.75e9 / machine.clock_hz
    latency = machine.hbm_latency * constants["latency_share"]
    second = np.where(menu.slices > 1, price + latency + constants["split_price"], 0.0)
    # Blocks that share a unit start together.
    held = (menu.rows + menu.columns) * depth * max(data, weights) * stages
    together = np.minimum(machine.max_threads // menu.threads, machine.shared_capacity // held)
    accumulators = 4.0 * menu.rows * menu.columns + 160.0 * menu.threads
    together = np.minimum(together, machine.registers_bytes // accumulators)
    together = np.clip(together, 1.0, machine.max_blocks)
    serial = price * np.maximum(busiest / together, 1.0) + second + partial
    least = b * (m * k * data + k * n * weights) / machine.hbm_bytes_per_s
    steps = np.ceil(k / menu.slices) / depth * np.maximum(busiest / together, 1.0)
    waiting = steps * (latency / (stages - 1.0))
    score = serial + np.sqrt(matrix * matrix + l2 * l2 + least * least + waiting * waiting)
    score = np.where(held > machine.shared_per_block, np.inf, score)
    return np.argpartition(score, keep, axis=1)[:, :keep]


def _style(
    problem: Matmul,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Style:
    on_vector = kernel.instruction == "vector"
    share = constants["vector_gemm_share" if on_vector else "matrix_share"]
    if on_vector and machine.lanes_shared:
        share /= 1.0 + constants["integer_share"]
    return Style(
        compute=compute_type(problem, machine),
        matrix_share=share * matrix_share(kernel, machine),
        overlap=constants[kernel.overlap],
        multicast=2.0 if machine.generation >= 9 and kernel.instruction == "native" else 1.0,
        warm=around.warm,
        activity=around.activity,
        vector_share=constants["vector_share"],
        stream_share=constants["stream_share_tiles"],
    )


def _stages(machine: Machine, stage_bytes: Number) -> Number:
    """Buffers of k steps in flight.

    Double buffering through registers before Ampere and on other makes; then as many asynchronous
    copies as half (Ampere) or all (Hopper on, one block a unit) of the shared memory holds.
    """
    if machine.generation < 8:
        return 2
    if machine.generation < 9:
        return np.clip(machine.shared_per_block / 2 // stage_bytes, 3, 5)
    return np.clip(machine.shared_per_block // stage_bytes, 3, 8)


def _operand_tile(
    kernel: KernelClass, machine: Machine, rows: Number, columns: Number
) -> tuple[Number, Number]:
    """Warp tile where registers feed the unit, instruction shape where shared memory does."""
    if kernel.instruction == "vector":
        return np.minimum(rows, 64), np.minimum(columns, 32)
    if kernel.instruction == "register" or machine.generation < 9:
        return np.minimum(rows, 64), np.minimum(columns, 64)
    return np.minimum(rows, 128 if machine.generation >= 10 else 64), columns
