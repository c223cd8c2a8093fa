"""Cycles for which one pass of a loop keeps each pipe of a compute unit busy.

It counts issue slots, not stalls: a pipe needs at least these cycles for one block's pass, and with
enough resident blocks the busiest pipe limits. Rates per clock and unit:

    matrix   the device's dense peak for the instruction's type (its spec), by operations
    special  the spec's special-function rate; conversions share it (CUDA C++ Programming Guide,
             arithmetic instructions: 16 results per clock for both)
    fma      the spec's fp32 rate for add, multiply and multiply-add; integer multiply-adds at 64
             (same table); packed pairs (FMUL2, v_pk_*) count twice
    alu      64 for integers, logic, comparisons, selections, minima and conversions (same table)
    lsu      32 lanes of a shared or global access or shuffle, no more bytes than the spec's shared
             memory moves (data path of load and store units)
    issue    one instruction for each of four schedulers (CUDA C++ Programming Guide, SM 8.x, 9.x)

On AMD's CDNA `valu` replaces fma and alu: four SIMDs of 16 lanes, with transcendentals at a quarter
of that rate on the same SIMDs. `lds` and `vmem` are the two kinds of memory, and `scalar` is one
scalar instruction per clock (AMD Instinct MI300 ISA guide; CDNA 3 white paper: 64 B/clk of vector
L1).

Operands that matrix instructions read from shared memory themselves (HGMMA, UTCHMMA) and transfers
of the copy engine (UTMALDG) use no slot of these pipes and are not counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.proof.compiled.disassembly import Instruction
from perfmodel.proof.compiled.instructions import Product, product, unit_of
from perfmodel.proof.compiled.targets import PARTITIONS

_ALU_LANES = 64.0
_LSU_LANES = 32.0
_CDNA_LANES = 64.0  # four SIMDs of 16
_CDNA_L1_BYTES = 64.0
_WARPGROUP = 4


@dataclass(frozen=True)
class IssueSlots:
    """Busy cycles of each pipe in one pass of a block's loop; `limiter` is the busiest pipe."""

    cycles: Mapping[str, float]
    """Cycles of each pipe; NaN where the work of an instruction is not known."""

    @property
    def limiter(self) -> str:
        """The pipe with the most cycles; "none" where nothing is issued, "unknown" with a NaN."""
        if any(math.isnan(amount) for amount in self.cycles.values()):
            return "unknown"
        return max(self.cycles, key=lambda pipe: self.cycles[pipe]) if self.cycles else "none"


def operations(program: Sequence[Instruction], body: Iterable[int], warps: int) -> float | None:
    """Matrix operations of a block of `warps` warps in one pass over `body`.

    None where an instruction does not say its shape.
    """
    counts = products(program, body)
    if None in counts:
        return None
    return float(sum(_issues(item, warps) * item.flops * n for item, n in counts.items() if item))


def products(program: Sequence[Instruction], body: Iterable[int]) -> Counter[Product | None]:
    """The matrix instructions of `body` by what they multiply."""
    return Counter(product(program, i) for i in body if unit_of(program[i]) == "matrix")


def _issues(item: Product, warps: int) -> float:
    """How many times a block issues an instruction that is once in the listing."""
    return {"warp": warps, "warpgroup": warps / _WARPGROUP, "block": 1.0}[item.scope]


def issue_slots(
    device: Device, program: Sequence[Instruction], body: Iterable[int], warps: int
) -> IssueSlots:
    """Cycles of each pipe of one unit of `device` for one pass of a block of `warps` warps."""
    body = tuple(body)
    cycles: defaultdict[str, float] = defaultdict(float)
    cdna = device.warp_size == 64
    for i in body:
        for pipe, amount in (_cdna if cdna else _nvidia)(device, program[i]):
            cycles[pipe] += amount * warps
    if not cdna and body:
        cycles["issue"] = len(body) * warps / PARTITIONS
    counts = products(program, body)
    if None in counts:
        cycles["matrix"] = math.nan
    elif counts:
        cycles["matrix"] = sum(
            _issues(item, warps) * item.flops * n / matrix_per_clock(device, item.dtype)
            for item, n in counts.items()
            if item
        )
    return IssueSlots({pipe: amount for pipe, amount in cycles.items() if amount})


def matrix_per_clock(device: Device, dtype: str) -> float:
    """Operations per clock and unit; a type that the device does not list runs at the fp16 rate."""
    kind = dtype if dtype in device.matrix_types else "fp16"
    return device.matrix_flops(kind) / device.units / device.tensor_hz


def _nvidia(device: Device, item: Instruction) -> Iterable[tuple[str, float]]:
    """(pipe, cycles for one warp) of an instruction, without the scheduler's issue slot."""
    unit = unit_of(item)
    lanes = device.warp_size
    if unit == "special":
        yield "special", lanes / _special_rate(device)
    elif unit in ("global", "shared", "spill") or item.stem == "LDGSTS":
        floor = lanes / _LSU_LANES
        yield "lsu", max(floor, lanes * _width(item) / (device.shared_bytes_per_clock or 128.0))
    elif item.stem in ("IMAD", "FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "HFMA2"):
        pair = 2 if item.stem in ("FADD2", "FMUL2", "FFMA2") else 1
        rate = _ALU_LANES if item.stem == "IMAD" else fma_lanes(device)
        yield "fma", pair * lanes / rate
    elif unit in ("vector", "integer") and not item.stem.startswith("U"):
        yield "alu", lanes / _ALU_LANES


def fma_lanes(device: Device) -> float:
    """fp32 multiply-adds per clock and unit."""
    return device.vector_flops("fp32") / 2 / device.units / device.boost_hz


def _special_rate(device: Device) -> float:
    rate = device.special_per_clock
    if not rate:
        raise ProblemError(f"{device.slug} states no special-function rate")
    return rate


def _cdna(device: Device, item: Instruction) -> Iterable[tuple[str, float]]:
    unit = unit_of(item)
    lanes = device.warp_size
    if unit == "shared":
        yield "lds", max(1.0, lanes * _width(item) / (device.shared_bytes_per_clock or 128.0))
    elif unit in ("global", "copy", "spill"):
        yield "vmem", max(1.0, lanes * _width(item) / _CDNA_L1_BYTES)
    elif unit == "special":
        yield "valu", lanes / _special_rate(device)
    elif item.opcode.startswith("s_"):
        if unit != "control":
            yield "scalar", 1.0
    elif unit != "matrix":
        yield "valu", lanes / _CDNA_LANES


_PAIR = re.compile(r"(?:read|write)2")
_DWORDS = re.compile(r"dword(?:x(\d+))?$")


def _width(item: Instruction) -> float:
    """Bytes that one lane moves."""
    parts = item.opcode.split(".")
    if item.opcode[:1].islower():
        match = _DWORDS.search(item.opcode)
        if match:
            return 4.0 * int(match[1] or 1)
        bits = re.search(r"_[bui](\d+)", item.opcode)
        return (int(bits[1]) / 8 if bits else 4.0) * (2 if _PAIR.search(item.opcode) else 1)
    if item.stem in ("LDSM", "STSM"):  # eight by eight 16-bit matrices: 128 bytes over 32 lanes
        return 4.0 * int(next((part for part in parts if part in ("2", "4")), "1"))
    for part, width in (("128", 16.0), ("64", 8.0), ("U16", 2.0), ("U8", 1.0), ("S8", 1.0)):
        if part in parts:
            return width
    return 4.0
