"""Architectures: facts that the chips of one family share and that datasheets do not give.

The table is `architectures.yaml`; its header has the sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from perfmodel.catalogue import Table
from perfmodel.entries import ABOVE_ZERO, Misfit, Positive, made, written
from perfmodel.errors import SpecError
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device

Instruction = Literal["none", "mma", "wgmma", "tcgen05", "mfma"]
Copies = Literal["staged", "asynchronous", "tensor"]


@dataclass(frozen=True)
class Architecture:
    """One row of the table."""

    name: str
    """Name of the row."""
    instruction: Instruction
    """The matrix instruction at the full rate; `none` before Volta."""
    node_nm: Positive
    """Process node in nanometres; the energy of an operation scales with it."""
    capabilities: tuple[str, ...] = ()
    """Compute capabilities, each exact or a major number alone; an exact match is preferred."""
    names: tuple[str, ...] = ()
    """Values of `architecture` in the specs of devices without a compute capability."""
    rows: Annotated[int, ABOVE_ZERO] = 16
    """Output rows of one matrix instruction."""
    copies: Copies = "staged"
    """How tiles reach shared memory: through registers of warps that wait (`staged`), without
    registers (`asynchronous`), or by a copy engine that one thread starts (`tensor`)."""
    clusters: bool = False
    """Whether several blocks can start together, so that one read sends a tile to all of them."""
    mma_share: Positive = 1.0
    """Share of the matrix rate that register-fed instructions reach, where the native ones are
    others."""
    stated_flops_per_clock: Positive = 2048.0
    """16-bit matrix operations a clock and unit of the device for which shares of native kernels
    are stated."""
    l2_bytes_per_clock: Positive = 24.0
    """L2 bytes a clock that a unit reads, for devices whose spec has no L2 bandwidth."""
    copied_bytes_per_clock: Positive = 64.0
    """L2 bytes a clock that tensor copies bring to a unit; plain loads bring 64."""
    l2_distinct_share: Positive = 1.0
    """Share of the L2 capacity for distinct lines. It is below 1 where the L2 has two partitions,
    and the partition near a unit keeps a copy of lines that the unit reads from the other one."""
    l2_stream_share: Positive = 1.0
    """Share of the L2's rate for lines that only one unit reads. It is below 1 where half of the
    lines lie in the far partition and no other unit has already copied them."""
    sparse_2_4: bool = False
    """Whether its matrix unit skips two of every four weights (2:4 sparsity), for at most twice the
    dense rate."""
    integer_lanes: Positive | None = None
    """Lanes of a unit for 32-bit integer operations; None where the vector lanes do them."""
    bf16_ops: float = 0.0
    """Integer instructions that round a result to bf16, where no instruction converts it."""
    dot_products: bool = False
    """Whether an integer lane adds four products of 8 bits in one instruction (DP4A)."""
    issue_lanes: Positive | None = None
    """Lanes that a unit's schedulers issue to in a clock; None where it is not documented."""
    single_issue: bool = False
    """Whether a scheduler issues at most one instruction a clock."""
    shared_kept_bytes: int = 0
    """Shared memory that cannot become L1."""
    accurate_ops: tuple[float, float] = (6.0, 1.0)
    """Floating-point and integer operations, besides the special-function one, of a library's
    exponential or of a correctly rounded division."""
    memory_family: str = ""
    """Memory family, for controllers that reach another share of their peak than usual for their
    kind of memory."""

    @property
    def feeds_registers(self) -> bool:
        """Whether warps load operands of the native instruction into registers."""
        return self.instruction in ("none", "mma", "mfma")

    @property
    def sums_apart(self) -> bool:
        """Whether the native instruction accumulates in a memory of its own, not in registers (PTX
        ISA: tensor memory)."""
        return self.instruction == "tcgen05"


# Fields that select the row of a device; a spec may not change them.
_KEYS = ("name", "capabilities", "names")


ARCHITECTURES = Table(
    "architecture", Architecture, Path(__file__).with_name("architectures.yaml"), "architectures"
)
"""The rows of the table, in its order."""


def architecture_of(device: Device, said: list[str] | None = None) -> Architecture:
    """The architecture of a device with the device's own facts; assumptions are added to `said`.

    An unknown compute capability is taken for the newest one with the same kind of memory. Raises
    `SpecError` for a fact in the spec that no architecture has, or with an impossible value.
    """
    return _spec_row(_base_row(device, said), device)


def _base_row(device: Device, assumptions: list[str] | None) -> Architecture:
    capability = device.compute_capability
    if capability is None:
        return _row_with("names", device.architecture) or ARCHITECTURES["other"]
    major = capability.split(".")[0]
    row = _row_with("capabilities", capability) or _row_with("capabilities", major)
    if row is not None:
        return row
    stacked = device.hbm_technology.upper().startswith("HBM")
    nearest = ARCHITECTURES["blackwell" if stacked else "blackwell-gb20x"]
    if assumptions is not None:
        assumptions.append(
            f"nothing is known of compute capability {capability}: {device.slug} is taken for one "
            f"of {nearest.capabilities[0]}.0"
        )
    return nearest


def _spec_row(row: Architecture, device: Device) -> Architecture:
    """The architecture with the facts that the device's spec states instead."""
    spec = device.architecture_facts
    if spec is None:
        return row
    try:
        facts = {**written(row, without=_KEYS), **spec.values}
        changed: Architecture = made(Architecture, facts, {key: getattr(row, key) for key in _KEYS})
        return changed
    except Misfit as misfit:
        raise SpecError(f"{device.slug}: architecture_facts.values.{misfit}") from None


def _row_with(key: str, value: str) -> Architecture | None:
    return next((row for row in ARCHITECTURES.values() if value in getattr(row, key)), None)
