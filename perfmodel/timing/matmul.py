"""Plans for matmul: tiles × slices of k from the class's menu."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms.matmul import WIDENED, Matmul, matmul, matmul_format
from perfmodel.arithmetic import Number, ceil_div
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing.classes import KernelClass, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Row blocks launched together so that their columns are shared in L2 (theory: √(slots·BN/BM)).
_GROUP = 8


def compute_type(problem: Matmul, machine: Machine) -> str:
    """Rate the matrix unit runs at; a device without bf16 runs it as fp16, without fp16 as fp32."""
    wanted = matmul_format(problem.dtype).compute
    types = machine.device.matrix_types
    if wanted == "bf16" and "bf16" not in types and "fp16" in types:
        return "fp16"
    return wanted


def plan(
    problem: Matmul, kernel: KernelClass, machine: Machine, constants: Constants, warm: float
) -> Plan:
    """Every tile of the menu with every slicing of k; the caller takes the fastest."""
    menu = kernel.menu(0, decode=False)
    each, slices = np.meshgrid(np.arange(len(menu)), np.array(kernel.splits), indexing="ij")
    rows, columns, threads = (np.array(c)[each.ravel()][None] for c in zip(*menu, strict=True))
    slices = slices.ravel()[None]
    elements = problem.elements()
    on_vector = kernel.instruction == "vector"
    # A step of k is a 128-byte line of the wider operand; vector kernels take 16.
    width = max(elements["data"].bytes, elements["weights"].bytes)
    depth = 16 if on_vector else int(128 // width)
    slice_k = ceil_div(ceil_div(problem.k, slices), 2 * depth) * 2 * depth
    schedule = tiled_matmul(
        rows,
        columns,
        depth,
        group_m=_GROUP,
        split_k=slice_k if len(kernel.splits) > 1 else None,
        stages=_stages(machine, (rows + columns) * depth * width),
        threads=threads,
        operand_tile=_operand_tile(kernel, machine, rows, columns),
        algorithm=matmul(
            dequantise=problem.dtype in WIDENED,
            promote_every=128 if kernel.promoted else None,
        ),
    )
    share = constants["vector_gemm_share" if on_vector else "matrix_share"]
    how = Style(
        compute=compute_type(problem, machine),
        matrix_share=share * matrix_share(kernel, machine),
        overlap=constants[kernel.overlap],
        multicast=2.0 if machine.generation >= 9 and kernel.instruction == "native" else 1.0,
        warm=warm,
        vector_share=constants["vector_share"],
        stream_share=constants["stream_share_tiles"],
    )
    part = Part(schedule, problem.sizes(), elements, how)
    return Plan(schedule.name, (part,), {"m": rows, "n": columns, "slices": slices})


def _stages(machine: Machine, stage_bytes: Number) -> Number:
    """Buffers of k steps in flight: double buffering through registers before Ampere, then as many
    asynchronous copies as half (Ampere) or all (Hopper on, one block a unit) of shared memory holds.
    """
    if 0 < machine.generation < 8:
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
