"""Architectures by device: what the chips of one family share and a datasheet does not say.

The table is `architectures.yaml`; its header has the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError, SpecError, nearest
from perfmodel.hardware import Device
from perfmodel.plaintext import quoted

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
    pairs: bool = False
    """Whether two units multiply together, each loading half of the columns that both need."""
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
    sparse_2_4: bool = False
    """Whether its matrix unit skips two of every four weights, at twice the dense rate at most."""
    integer_lanes: float | None = None
    """Lanes of a unit for 32-bit integer operations; None where those are the vector lanes."""
    dot_products: bool = False
    """Whether an integer lane adds four products of 8 bits in one instruction (DP4A)."""
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

    @property
    def sums_apart(self) -> bool:
        """Whether the native instruction's sums lie in a memory of their own and not in registers
        (PTX ISA: tensor memory).
        """
        return self.instruction == "tcgen05"


# How a device finds its row, which it may not change.
_KEYS = ("name", "capabilities", "names")
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
    """The architecture of a device with the facts that are its own, and in `said` what was assumed.

    A compute capability of which nothing is known is taken for the newest with its kind of memory.
    Raises `SpecError` for a fact of its own that is none of an architecture's, or cannot be.
    """
    return _with_own_facts(_row_of(device, said), device)


def _row_of(device: Device, said: list[str] | None) -> Architecture:
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


def _with_own_facts(row: Architecture, device: Device) -> Architecture:
    """The architecture as this device has it: a spec may say otherwise, fact by fact."""
    own = device.architecture_facts
    if own is None:
        return row
    hints = {key: hint for key, hint in get_type_hints(Architecture).items() if key not in _KEYS}
    for key, value in own.values.items():
        if key not in hints:
            raise SpecError(
                f"{device.slug}: an architecture has no fact {quoted(key)}; {nearest(key, hints)}"
            )
        if not _fits(value, hints[key]):
            raise SpecError(f"{device.slug}: {key} must be {_wanted(hints[key])}, not {value!r}")
    facts: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in own.values.items()
    }
    return replace(row, **facts)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value of a file may stand in a field."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return value in parts
    if get_origin(hint) is tuple:
        listed = isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
        return listed and (parts[-1] is Ellipsis or len(value) == len(parts))  # type: ignore[arg-type]
    if parts:  # a number or nothing
        return any(_fits(value, part) for part in parts)
    if hint in (int, float):
        number = isinstance(value, int if hint is int else (int, float))
        return number and not isinstance(value, bool) and 0 < value < inf  # type: ignore[operator]
    return isinstance(value, hint)


def _wanted(hint: Any) -> str:
    """What `_fits` asks for, in words."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return f"one of {', '.join(parts)}"
    if get_origin(hint) is tuple:
        return f"a list, each {_wanted(parts[0])}"
    if parts:
        return _wanted(parts[0])
    numbers = {int: "a whole number above zero", float: "a number above zero"}
    return {bool: "true or false", str: "a word", **numbers}[hint]


def _found(key: str, value: str) -> Architecture | None:
    return next((row for row in architectures().values() if value in getattr(row, key)), None)
