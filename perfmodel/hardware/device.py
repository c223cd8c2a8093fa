"""A device: the parsed spec, and the numbers that the model reads from it, in SI units.

Fields mirror the file; properties give plain floats. L2 bandwidth has one method on all devices,
because methods differ by more than chips do. `l2_bytes_per_s` is the theoretical peak, given only
where a document states it. `measured_l2_bytes_per_s` is a read microbenchmark (gpu-benches wherever
it has the chip).
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Annotated, Literal

from perfmodel.entries import Rule, like
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.hardware.blocks import (
    DTYPES,
    ArchitectureFacts,
    Compute,
    Latencies,
    Links,
    Measured,
    Memory,
    Occupancy,
)
from perfmodel.hardware.facts import Count, Label, Line, Power, si_of, walk
from perfmodel.hardware.levels import Level, levels

Timed = Literal["shared", "l1", "l2", "llc", "hbm"]
_STREAMS = ("read", "copy", "triad", "scale", "stream", "mixed", "write")


def _peak_key(key: str) -> None:
    unit, _, dtype = key.partition(".")
    if unit not in ("matrix", "vector") or (dtype and dtype not in DTYPES):
        raise ValueError(f"peak note {key!r} must be matrix, vector, or with a type: matrix.fp8")


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device as its spec file describes it."""

    schema_version: Literal[1]
    """Version of this format."""
    slug: Label
    """Short name, which is also the file's name."""
    name: Label
    """Full name."""
    aliases: tuple[Label, ...] = ()
    """Other spellings; case, spaces and underscores do not matter."""
    vendor: Label
    """Manufacturer."""
    kind: Literal["gpu", "cpu", "accelerator"]
    """Kind of device."""
    architecture: Label
    """Generation and die."""
    launch_year: Count
    """Year of announcement."""
    compute_capability: Annotated[str, like(r"^\d+\.\d$", "9.0")] | None = None
    """CUDA compute capability, in quotes."""
    target: Label | None = None
    """Compiler target of other vendors: gfx942."""
    compute: Compute
    """Compute units and their rates."""
    memory: Memory
    """The memory hierarchy."""
    occupancy: Occupancy | None = None
    """Limits per unit."""
    latency: Latencies | None = None
    """Latencies, measured by one method per device."""
    links: Links | None = None
    """Links out of the device."""
    tdp: Power | None = None
    """Power limit as shipped."""
    architecture_facts: ArchitectureFacts | None = None
    """Facts in which this device differs from its architecture."""
    measured: Measured | None = None
    """Achieved rates."""
    peak_notes: dict[Annotated[str, Rule(_peak_key)], Line] = field(default_factory=dict)
    """Why a peak differs from units × rate × clock: by `matrix`, `vector` or `matrix.fp8`."""
    notes: tuple[Line, ...] = ()
    """Further remarks."""
    sources: dict[Line, Line] = field(default_factory=dict)
    """Source keys used above, with title and address; keys of `sources.yaml` need no entry here."""

    def _repr_html_(self) -> str:
        """What a notebook shows: every fact with its value, its status and its sources."""
        from perfmodel.hypertext import table

        rows = [
            (".".join(path), str(value), fact.status, ", ".join(fact.source))
            for path, fact in walk(self)
            if (value := getattr(fact, "text", None) or getattr(fact, "value", None)) is not None
        ]
        header = ("fact", "value", "status", "sources")
        return table(f"{self.name} ({self.slug})", header, rows)

    @cached_property
    def published(self) -> Device:
        """The spec that this is a what-if copy of (`scaled`); the device itself if it is none."""
        return self

    @property
    def units(self) -> int:
        """Number of SMs, CUs or cores."""
        return self.compute.units.value

    @property
    def warp_size(self) -> int:
        """Threads that issue together; 1 where the machine has no warps."""
        return self.compute.warp_size.value if self.compute.warp_size else 1

    @property
    def base_hz(self) -> float | None:
        """Guaranteed clock."""
        return si_of(self.compute.clocks.base)

    @property
    def binary_target(self) -> str | None:
        """Compiler target of the device's code: sm_90, gfx942; None where there is none."""
        if self.target or not self.compute_capability:
            return self.target
        return f"sm_{self.compute_capability.replace('.', '')}"

    @property
    def boost_hz(self) -> float:
        """Highest clock (base where no boost is known)."""
        return si_of(self.compute.clocks.boost or self.compute.clocks.base) or 0.0

    @property
    def beyond_boost(self) -> float:
        """Clock that the board reaches over its boost clock, at which the peaks are rated."""
        return (si_of(self.compute.clocks.reached) or self.boost_hz) / self.boost_hz

    @property
    def tensor_hz(self) -> float:
        """Clock at which the matrix peaks are rated."""
        return si_of(self.compute.clocks.tensor) or self.boost_hz

    @property
    def matrix_types(self) -> tuple[str, ...]:
        """Types that the matrix unit multiplies."""
        return tuple(self.compute.matrix)

    def matrix_flops(self, dtype: str) -> float:
        """Dense peak of the matrix unit in FLOP/s; `ProblemError` if it lacks the type."""
        for name, rate in self.compute.matrix.items():
            if name == dtype:
                return rate.si
        types = ", ".join(self.compute.matrix) or "no matrix unit"
        raise ProblemError(f"{self.slug} has no {dtype} matrix rate; it has: {types}")

    @property
    def vector_types(self) -> tuple[str, ...]:
        """Types that the vector unit has a rate for."""
        return tuple(self.compute.vector)

    def vector_flops(self, dtype: str = "fp32") -> float:
        """Peak of the vector unit in FLOP/s; types below fp32 without a rate run at fp32 rate."""
        rates: dict[str, float] = {name: rate.si for name, rate in self.compute.vector.items()}
        kind = dtype if dtype in rates or dtype == "fp64" else "fp32"
        if kind not in rates:
            types = ", ".join(rates) or "none"
            raise ProblemError(f"{self.slug} has no {dtype} vector rate; it has: {types}")
        return rates[kind]

    @property
    def special_per_clock(self) -> float | None:
        """Exponentials per clock per unit."""
        special = self.compute.special_function
        return special.per_clock_per_unit.si if special else None

    @property
    def hbm_technology(self) -> str:
        """Technology of the main memory."""
        return self.memory.hbm.technology

    @property
    def hbm_capacity_bytes(self) -> float:
        """Capacity of the main memory on the label."""
        return self.memory.hbm.capacity.si

    @property
    def memory_bytes(self) -> float:
        """Main memory that the driver reports: 2³⁰ bytes for each whole gigabyte on the label,
        since DRAM is made in binary sizes (an H100 of 80 GB has 79.6 GiB). SRAM is as labelled."""
        label = self.hbm_capacity_bytes
        binary = label % 1e9 == 0 and "SRAM" not in self.hbm_technology
        return label / 1e9 * 2**30 if binary else label

    @property
    def hbm_bytes_per_s(self) -> float:
        """Theoretical bandwidth of the main memory."""
        return self.memory.hbm.bandwidth.si

    @property
    def measured_hbm_bytes_per_s(self) -> float | None:
        """Achieved bandwidth of the main memory: a read stream where known, else the next best."""
        streams = self.measured.hbm_bandwidth if self.measured else {}
        rates = {str(name): rate.si for name, rate in streams.items()}
        return next((rates[name] for name in _STREAMS if name in rates), None)

    @property
    def copied_hbm_bytes_per_s(self) -> float | None:
        """Achieved bandwidth of the main memory in benchmarks that read and write: the best of
        them."""
        streams = self.measured.hbm_bandwidth if self.measured else {}
        rates = [rate.si for name, rate in streams.items() if name not in ("read", "write")]
        return max(rates, default=None)

    @property
    def l2_capacity_bytes(self) -> float | None:
        """Capacity of the last cache, all partitions together."""
        return self.memory.l2.capacity.si if self.memory.l2 else None

    @property
    def l2_bytes_per_s(self) -> float | None:
        """Documented peak bandwidth of the last cache."""
        return si_of(self.memory.l2.bandwidth) if self.memory.l2 else None

    @property
    def measured_l2_bytes_per_s(self) -> float | None:
        """Achieved read bandwidth of the last cache."""
        return si_of(self.measured.l2_bandwidth) if self.measured else None

    @property
    def l2_partitions(self) -> int | None:
        """Parts of the last cache."""
        l2 = self.memory.l2
        return l2.partitions.value if l2 and l2.partitions else None

    @property
    def shared_capacity_bytes(self) -> float | None:
        """Shared memory per unit."""
        return self.memory.shared.capacity_per_unit.si if self.memory.shared else None

    @property
    def shared_max_per_block_bytes(self) -> float | None:
        """Most shared memory that one block may have."""
        return si_of(self.memory.shared.max_per_block) if self.memory.shared else None

    @property
    def shared_reserved_bytes(self) -> float:
        """Shared memory that the system reserves for each block."""
        reserve = si_of(self.memory.shared.reserved_per_block) if self.memory.shared else None
        return reserve or 0.0

    @property
    def shared_bytes_per_clock(self) -> float | None:
        """Shared-memory bytes per clock per unit."""
        return si_of(self.memory.shared.bandwidth_per_unit) if self.memory.shared else None

    @property
    def max_threads(self) -> int | None:
        """Resident threads per unit."""
        return self.occupancy.max_threads_per_unit if self.occupancy else None

    @property
    def max_warps(self) -> int | None:
        """Resident warps per unit."""
        return self.occupancy.max_warps_per_unit if self.occupancy else None

    @property
    def max_blocks(self) -> int | None:
        """Resident blocks per unit."""
        return self.occupancy.max_blocks_per_unit if self.occupancy else None

    @property
    def registers(self) -> int | None:
        """32-bit registers per unit."""
        return self.occupancy.registers_per_unit if self.occupancy else None

    @property
    def max_registers_per_thread(self) -> int | None:
        """32-bit registers that one thread may use."""
        return self.occupancy.max_registers_per_thread if self.occupancy else None

    def latency_seconds(self, level: Timed) -> float | None:
        """Latency of one dependent access to `level`, unloaded."""
        return si_of(getattr(self.latency, level)) if self.latency else None

    @property
    def tdp_watts(self) -> float | None:
        """Power limit as shipped."""
        return si_of(self.tdp)

    def levels(self) -> tuple[Level, ...]:
        """Its memory levels from the core outwards, then its links; see `hardware.levels`."""
        return self._levels

    @cached_property
    def _levels(self) -> tuple[Level, ...]:
        return levels(self)

    def level(self, name: str) -> Level | None:
        """The level with that name; None where the spec has none."""
        return next((found for found in self._levels if found.name == name), None)

    @cached_property
    def level_names(self) -> dict[str, str]:
        """Names of the levels in tables: `Level.short` by name."""
        return {level.name: level.short for level in self._levels}

    def scaled(self, **factors: float) -> Device:
        """A what-if copy with some quantities multiplied; see `perfmodel.hardware.scaling`."""
        from perfmodel.hardware.scaling import scaled

        return scaled(self, factors)

    def dump(self) -> str:
        """The spec as YAML; `loads` gives the same device back."""
        from perfmodel.hardware.writer import dump

        return dump(self)
