"""Architectures by device: what the chips of one family share and a datasheet does not say.

The table is `architectures.yaml`; its header has the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device

Instruction = Literal["none", "mma", "wgmma", "tcgen05", "mfma"]
Copies = Literal["staged", "asynchronous", "tensor"]


@dataclass(frozen=True)
class Architecture:
    """One row of the table."""

    name: str
    """What the program calls it."""
    instruction: Instruction
    """The matrix instruction at the full rate; `none` before Volta."""
    node_nm: float
    """Process node in nanometres: the energy of an operation falls with it."""
    capabilities: tuple[str, ...] = ()
    """Compute capabilities, exact or a major number alone; the exact one is taken first."""
    names: tuple[str, ...] = ()
    """`architecture` of the specs of devices that have no compute capability."""
    rows: int = 16
    """Rows of output of one matrix instruction."""
    copies: Copies = "staged"
    """How tiles reach shared memory: through registers of warps that wait (`staged`), without them
    (`asynchronous`), or by a copy engine that one thread starts (`tensor`)."""
    clusters: bool = False
    """Whether several blocks start together, so that a tile is sent to all of them at once."""
    mma_share: float = 1.0
    """Share of the matrix rate that instructions fed from registers reach, where those are not the
    native ones."""
    stated_flops_per_clock: float = 2048.0
    """16-bit matrix operations a clock and unit for which shares of native kernels are stated."""
    l2_bytes_per_clock: float = 24.0
    """L2 reads of a unit in a clock, for devices whose spec has no bandwidth of L2."""
    l2_distinct_share: float = 1.0
    """Share of the L2 that distinct lines get: less than all where it has two partitions, and the
    one next to a unit keeps a copy of what the unit reads from the other."""
    l2_stream_share: float = 1.0
    """Share of the L2's rate for lines of which each is read by one unit: less than all where half
    of them lie in the further partition, and none has a copy that another unit asked for."""
    integer_lanes: float | None = None
    """Lanes of a unit for 32-bit integer operations; None where those are the vector lanes."""
    issue_lanes: float | None = None
    """Lanes of a unit that its schedulers issue to in a clock; None where it is not documented."""
    single_issue: bool = False
    """Whether a scheduler issues one instruction a clock, whatever the instruction."""
    pages_at_hand: float = float("inf")
    """Pages of 2 MiB whose addresses a unit has at hand before its L1 is looked up."""
    shared_kept_bytes: int = 0
    """Shared memory that cannot become L1."""
    accurate_ops: tuple[float, float] = (6.0, 1.0)
    """Floating-point and integer operations beside the special one in a library's exponential, and
    in a division to the last digit."""
    memory_family: str = ""
    """Memory controllers that reach another share of their peak than the memory's kind says."""

    @property
    def feeds_registers(self) -> bool:
        """Whether warps load operands of the native instruction into registers."""
        return self.instruction in ("none", "mma", "mfma")


_PATH = Path(__file__).with_name("architectures.yaml")


@lru_cache(maxsize=1)
def architectures() -> Mapping[str, Architecture]:
    """All architectures by name; raises `PerfmodelError` where the table is damaged."""
    try:
        document = yamltable.read(_PATH)
        rows = {**document["architectures"], "other": document["other"]}
        return {name: _made(name, entry) for name, entry in rows.items()}
    except (OSError, KeyError, TypeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{_PATH}: no table of architectures ({line}); reinstall perfmodel"
        ) from None


def _made(name: str, entry: Mapping[str, Any]) -> Architecture:
    unknown = entry.keys() - {field.name for field in fields(Architecture)}
    if unknown:
        raise PerfmodelError(f"architectures.yaml: {name}: no such field as {sorted(unknown)[0]}")
    for key, known in (("instruction", Instruction), ("copies", Copies)):
        if key in entry and entry[key] not in get_args(known):
            said = ", ".join(get_args(known))
            raise PerfmodelError(f"architectures.yaml: {name}: {key} must be one of {said}")
    listed = ("capabilities", "names", "accurate_ops")
    lists = {key: tuple(entry[key]) for key in listed if key in entry}
    return Architecture(**{"name": name, **entry, **lists})


def architecture_of(device: Device, said: list[str] | None = None) -> Architecture:
    """The architecture of a device, and in `said` what was assumed.

    A compute capability of which nothing is known is taken for the newest with its kind of memory.
    """
    capability = device.compute_capability
    if capability is None:
        return _found("names", device.architecture) or architectures()["other"]
    major = capability.split(".")[0]
    found = _found("capabilities", capability) or _found("capabilities", major)
    if found is not None:
        return found
    stacked = device.hbm_technology.upper().startswith("HBM")
    nearest = architectures()["blackwell" if stacked else "blackwell-gb20x"]
    if said is not None:
        said.append(
            f"nothing is known of compute capability {capability}: {device.slug} is taken for one "
            f"of {nearest.capabilities[0]}.0"
        )
    return nearest


def _found(key: str, value: str) -> Architecture | None:
    return next((row for row in architectures().values() if value in getattr(row, key)), None)
