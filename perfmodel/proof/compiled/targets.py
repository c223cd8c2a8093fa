"""Compile targets, and the occupancy of a compiled kernel on a device.

Occupancy is the smallest of four limits (CUDA Occupancy Calculator, `cuda_occupancy.h`; AMD CDNA3
ISA guide §3.6): blocks, warps, shared memory, registers; on Blackwell tensor memory is a fifth.
Registers are allocated to whole warps, in multiples of a granule, from the register file of one of
the unit's four partitions (SIMDs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.plaintext import whole_number

if TYPE_CHECKING:
    from perfmodel.hardware import Device

PARTITIONS = 4  # schedulers of an SM, SIMDs of a CU
# Columns of 128 lanes of 32 bits in an SM's tensor memory (PTX ISA, Tensor Memory).
TENSOR_MEMORY_COLUMNS = 512


@dataclass(frozen=True)
class Target:
    """One compiler target."""

    name: str
    """sm_90, gfx942, ..."""
    backend: str
    """Triton's name of the backend."""
    arch: int | str
    """Triton's name of the architecture."""
    warp_size: int
    """Threads of a warp."""
    shared_per_block: int
    """The most bytes of shared memory that a block may have."""
    device: str
    """The target's default device, used where none is named."""

    @property
    def nvidia(self) -> bool:
        """Whether binaries are SASS, NVIDIA's machine code."""
        return self.backend == "cuda"


# Shared memory per block: CUDA C++ Programming Guide, compute capabilities (opt-in maximum); LDS of
# CDNA3: AMD CDNA3 ISA guide.
TARGETS = {
    target.name: target
    for target in (
        Target("sm_80", "cuda", 80, 32, 163 * 1024, "a100-sxm4-80gb"),
        Target("sm_89", "cuda", 89, 32, 99 * 1024, "l40s"),
        Target("sm_90", "cuda", 90, 32, 227 * 1024, "h100-sxm"),
        Target("sm_100", "cuda", 100, 32, 227 * 1024, "b200"),
        Target("sm_120", "cuda", 120, 32, 99 * 1024, "rtx-pro-6000-server"),
        Target("gfx942", "hip", "gfx942", 64, 64 * 1024, "mi300x"),
    )
}


def target(name: str) -> Target:
    """The target called `name` ("sm90" and "SM_90" too); raises `UnknownName` with the nearest."""
    slug = name.strip().lower()
    spellings = {spelling.replace("_", ""): entry for spelling, entry in TARGETS.items()}
    entry = TARGETS.get(slug) or spellings.get(slug.replace("_", ""))
    if entry is None:
        raise UnknownName("target", slug, TARGETS)
    return entry


def nearest(name: str) -> str:
    """The target whose binaries run on architecture `name`: its own, else the newest older one of
    its family (sm_80 code runs on sm_86); `name` itself where there is none."""
    number = whole_number(name.removeprefix("sm_"))
    if name in TARGETS or not name.startswith("sm_") or number is None:
        return name
    older = [
        t
        for t in TARGETS.values()
        if t.nvidia and int(t.arch) // 10 == number // 10 and int(t.arch) <= number
    ]
    return max(older, key=lambda t: int(t.arch)).name if older else name


def target_of(device: Device) -> Target:
    """The target to compile for on a device: its own, else an older one of its family.

    Raises `ProblemError` for a device that has none.
    """
    name = nearest(device.binary_target or "")
    if name not in TARGETS:
        raise ProblemError(
            f"{device.slug} has no compile target here; targets: {', '.join(TARGETS)}"
        )
    return TARGETS[name]


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident on one compute unit."""

    blocks: int
    """Blocks; 0: a single one does not fit."""
    warps: int
    """Warps."""
    max_warps: int
    """Warps that it could hold."""
    limit: str
    """The resource that limits the number of blocks."""

    @property
    def share(self) -> float:
        """Occupancy: resident warps over the most possible."""
        return self.warps / self.max_warps if self.max_warps else 0.0


def allocated_registers(registers: int, warp_size: int = 32) -> int:
    """Registers per thread as allocated: in multiples of 8, for warps of 32 and of 64 alike.

    256 registers per warp of 32 (CUDA Occupancy Calculator), 8 vector registers per lane of a
    wavefront (LLVM AMDGPU usage guide, gfx90a and later).
    """
    del warp_size
    return -(-max(registers, 1) // 8) * 8


def occupancy_of(
    device: Device, registers: int, shared_bytes: int, threads: int, tensor_memory_columns: int = 0
) -> Occupancy:
    """Blocks of `threads` threads with `registers` each that a unit holds.

    A block also uses `shared_bytes` and `tensor_memory_columns`. Two blocks that need more than
    half of the columns each run one after the other (PTX ISA: tcgen05.alloc blocks until enough are
    free). Raises `ProblemError` for a device whose spec states no such limits.
    """
    if not device.registers or not device.max_threads or device.kind != "gpu":
        raise ProblemError(f"{device.slug} states no occupancy limits; name a GPU that does")
    lanes = device.warp_size
    warps = -(-threads // lanes)
    max_warps = device.max_warps or device.max_threads // lanes
    per_partition = device.registers // PARTITIONS
    by_file = per_partition // (allocated_registers(registers, lanes) * lanes)
    if device.max_registers_per_thread and registers > device.max_registers_per_thread:
        by_file = 0
    limits = {
        "registers": PARTITIONS * by_file // warps,
        "shared memory": _shared_blocks(device, shared_bytes),
        "threads": max_warps // warps,
    }
    if device.max_blocks:
        limits["blocks"] = device.max_blocks
    if tensor_memory_columns:
        limits["tensor memory"] = TENSOR_MEMORY_COLUMNS // tensor_memory_columns
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return Occupancy(blocks, blocks * warps, max_warps, limit)


def _shared_blocks(device: Device, shared_bytes: int) -> int:
    """Blocks that fit in shared memory, allocated in 128 bytes on NVIDIA and in 512 on AMD."""
    capacity = device.shared_capacity_bytes
    if capacity is None:
        return 1 << 20
    if shared_bytes > (device.shared_max_per_block_bytes or capacity):
        return 0
    granule = 128 if device.warp_size == 32 else 512
    size = -(-shared_bytes // granule) * granule + int(device.shared_reserved_bytes)
    return int(capacity) // size if size else 1 << 20
