"""Architectures: facts that the chips of one family share and that datasheets do not give.

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
    """Name of the row."""
    instruction: Instruction
    """The matrix instruction at the full rate; `none` before Volta."""
    node_nm: float
    """Process node in nanometres; the energy of an operation scales with it."""
    capabilities: tuple[str, ...] = ()
    """Compute capabilities, each exact or a major number alone; an exact match is preferred."""
    names: tuple[str, ...] = ()
    """Values of `architecture` in the specs of devices without a compute capability."""
    rows: int = 16
    """Output rows of one matrix instruction."""
    copies: Copies = "staged"
    """How tiles reach shared memory: through registers of warps that wait (`staged`), without
    registers (`asynchronous`), or by a copy engine that one thread starts (`tensor`)."""
    clusters: bool = False
    """Whether several blocks can start together, so that one read sends a tile to all of them."""
    pairs: bool = False
    """Whether two units can multiply together, each loading half of the columns that both need."""
    mma_share: float = 1.0
    """Share of the matrix rate that register-fed instructions reach, where the native ones are
    others."""
    stated_flops_per_clock: float = 2048.0
    """16-bit matrix operations a clock and unit of the device for which shares of native kernels
    are stated."""
    l2_bytes_per_clock: float = 24.0
    """L2 bytes a clock that a unit reads, for devices whose spec has no L2 bandwidth."""
    copied_bytes_per_clock: float = 64.0
    """L2 bytes a clock that tensor copies bring to a unit; plain loads bring 64."""
    l2_distinct_share: float = 1.0
    """Share of the L2 capacity for distinct lines. It is below 1 where the L2 has two partitions,
    and the partition near a unit keeps a copy of lines that the unit reads from the other one."""
    l2_stream_share: float = 1.0
    """Share of the L2's rate for lines that only one unit reads. It is below 1 where half of the
    lines lie in the far partition and no other unit has already copied them."""
    sparse_2_4: bool = False
    """Whether its matrix unit skips two of every four weights (2:4 sparsity), for at most twice the
    dense rate."""
    integer_lanes: float | None = None
    """Lanes of a unit for 32-bit integer operations; None where the vector lanes do them."""
    bf16_ops: float = 0.0
    """Integer instructions that round a result to bf16, where no instruction converts it."""
    dot_products: bool = False
    """Whether an integer lane adds four products of 8 bits in one instruction (DP4A)."""
    issue_lanes: float | None = None
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
_PATH = Path(__file__).with_name("architectures.yaml")


@lru_cache(maxsize=1)
def architectures() -> Mapping[str, Architecture]:
    """All architectures by name. Raises `PerfmodelError` where the table is damaged."""
    try:
        document = yamltable.read(_PATH)
        rows = {**document["architectures"], "other": document["other"]}
        return {name: _architecture(name, entry) for name, entry in rows.items()}
    except (OSError, KeyError, TypeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{_PATH}: no table of architectures ({line}); reinstall perfmodel"
        ) from None


def _architecture(name: str, entry: Mapping[str, Any]) -> Architecture:
    unknown = entry.keys() - {field.name for field in fields(Architecture)}
    if unknown:
        raise PerfmodelError(f"architectures.yaml: {name}: no such field as {sorted(unknown)[0]}")
    for key, choices in (("instruction", Instruction), ("copies", Copies)):
        if key in entry and entry[key] not in get_args(choices):
            texts = ", ".join(get_args(choices))
            raise PerfmodelError(f"architectures.yaml: {name}: {key} must be one of {texts}")
    list_keys = ("capabilities", "names", "accurate_ops")
    lists = {key: tuple(entry[key]) for key in list_keys if key in entry}
    return Architecture(**{"name": name, **entry, **lists})


def architecture_of(device: Device, said: list[str] | None = None) -> Architecture:
    """The architecture of a device with the device's own facts; assumptions are added to `said`.

    An unknown compute capability is taken for the newest one with the same kind of memory. Raises
    `SpecError` for a fact in the spec that no architecture has, or with an impossible value.
    """
    return _spec_row(_base_row(device, said), device)


def _base_row(device: Device, assumptions: list[str] | None) -> Architecture:
    capability = device.compute_capability
    if capability is None:
        return _row_with("names", device.architecture) or architectures()["other"]
    major = capability.split(".")[0]
    row = _row_with("capabilities", capability) or _row_with("capabilities", major)
    if row is not None:
        return row
    stacked = device.hbm_technology.upper().startswith("HBM")
    nearest = architectures()["blackwell" if stacked else "blackwell-gb20x"]
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
    hints = {key: hint for key, hint in get_type_hints(Architecture).items() if key not in _KEYS}
    for key, fact in spec.values.items():
        if key not in hints:
            raise SpecError(
                f"{device.slug}: an architecture has no fact {quoted(key)}; {nearest(key, hints)}"
            )
        if not _fits(fact, hints[key]):
            raise SpecError(f"{device.slug}: {key} must be {_type_words(hints[key])}, not {fact!r}")
    facts: dict[str, Any] = {
        key: tuple(fact) if isinstance(fact, list) else fact for key, fact in spec.values.items()
    }
    return replace(row, **facts)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value of a file has the type of a field."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return value in parts
    if get_origin(hint) is tuple:
        is_list = isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
        return is_list and (parts[-1] is Ellipsis or len(value) == len(parts))  # type: ignore[arg-type]
    if parts:  # a number or nothing
        return any(_fits(value, part) for part in parts)
    if hint in (int, float):
        number = isinstance(value, int if hint is int else (int, float))
        return number and not isinstance(value, bool) and 0 < value < inf  # type: ignore[operator]
    return isinstance(value, hint)


def _type_words(hint: Any) -> str:
    """What `_fits` accepts, in words."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return f"one of {', '.join(parts)}"
    if get_origin(hint) is tuple:
        return f"a list, each {_type_words(parts[0])}"
    if parts:
        return _type_words(parts[0])
    numbers = {int: "a whole number above zero", float: "a number above zero"}
    return {bool: "true or false", str: "a word", **numbers}[hint]


def _row_with(key: str, value: str) -> Architecture | None:
    return next((row for row in architectures().values() if value in getattr(row, key)), None)
