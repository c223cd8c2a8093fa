"""The numbers that the time model takes from a device, each with a stated fallback.

A spec has documented values only. Where one is missing, the value of the nearest documented
relative is used, and the prediction carries a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable

from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.timing.architectures import Architecture, architecture_of
from perfmodel.units import seconds, si

# Stand-ins for an unknown power limit (watts) and an unknown capacity of a unit (bytes).
_ANY_POWER = 1e9
_UNLIMITED = 1e18

DOT_PRODUCTS = "dp4a"
"""The type that 8-bit products run as without a matrix unit: DP4A, four products in an integer
lane."""
# Reference clock in hertz: constants that are cycles of the device are stated in seconds at it.
_CLOCK = 1.75e9
# Threads of a warp for devices without warps.
_WARP = 32


@dataclass(frozen=True)
class LastCache:
    """A memory-side cache between L2 and memory."""

    bytes_per_s: float
    """Bandwidth; the measured one where it is known."""
    capacity_bytes: float
    """Capacity."""
    latency_seconds: float
    """Seconds of one dependent access, unloaded."""


@dataclass(frozen=True)
class Link:
    """A level outside the device's own memory that kernels read over a link."""

    name: str
    """Name of the level: host, peer, network."""
    bytes_per_s: float
    """Documented peak of one direction."""
    latency_seconds: float
    """Seconds of one dependent load, unloaded."""


@dataclass(frozen=True)
class Machine:
    """A device as the time model uses it: SI units, no missing values. A unit is a compute unit."""

    device: Device
    """The device."""
    units: int
    """Compute units: SMs, CUs, cores. A large systolic unit counts as several of the size of a
    GPU's."""
    clock_hz: float
    """Clock under load, in hertz."""
    architecture: Architecture
    """Facts that all chips of the family share."""
    vector_ops_per_unit: float
    """fp32 multiply-adds a second of a unit."""
    integer_per_unit: float
    """Integer operations a second of a unit."""
    issue_per_unit: float
    """Lanes that a unit issues to a second: its instructions a second times the threads of a warp.
    """
    special_per_unit: float
    """Special functions a second of a unit."""
    shared_bytes_per_unit: float
    """Bytes a second of shared memory of a unit."""
    shared_capacity: float
    """Bytes of shared memory of a unit."""
    shared_per_block: float
    """Most bytes of shared memory that a block may have."""
    shared_reserved: float
    """Bytes of shared memory that the system reserves for each block."""
    registers_bytes: float
    """Bytes of registers of a unit."""
    thread_registers_bytes: float
    """Most bytes of registers of a thread."""
    max_threads: float
    """Most threads of a unit."""
    max_blocks: float
    """Most blocks of a unit."""
    l2_bytes_per_s: float
    """Bandwidth of the L2, measured where the spec has that."""
    l2_capacity: float
    """Bytes of the L2."""
    llc: LastCache | None
    """The memory-side cache; None where there is none."""
    hbm_bytes_per_s: float
    """Bandwidth of the device's memory."""
    hbm_latency: float
    """Seconds of a load from memory."""
    l2_latency: float
    """Seconds of a load from the L2."""
    l1_capacity: float
    """Bytes of the L1 of a unit."""
    l1_latency: float
    """Seconds of a load from the L1."""
    node_nm: float
    """Process node in nanometres; the energy of an operation scales with it."""
    tdp_watts: float
    """Board power limit in watts."""
    base_share: float
    """Guaranteed base clock over `clock_hz`; 0 where it is not known."""
    memory_family: str
    """Kind of the memory: HBM, GDDR, ..."""
    inline_ecc: bool
    """Whether error correction takes part of the memory bandwidth (inline ECC)."""
    hbm_is_measured: bool
    """Whether the spec's memory bandwidth is a measured one."""
    copy_bytes_per_s: float | None
    """Measured bandwidth of a copy on the device; None where none was measured."""
    assumptions: tuple[str, ...]
    """Values that the spec lacks and what was taken instead, a sentence each."""

    @property
    def l2_distinct_bytes(self) -> float:
        """Capacity of the L2 for distinct lines, in bytes."""
        return self.l2_capacity * self.architecture.l2_distinct_share

    @property
    def warp_threads(self) -> int:
        """Threads that execute an instruction together."""
        return self.device.warp_size if self.device.warp_size > 1 else _WARP

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The levels whose traffic is counted, from the core outwards."""
        return ("shared", "l2", *(("llc",) if self.llc is not None else ()), "hbm")

    def at_clock(self, seconds: Number) -> Number:
        """Seconds on this device of a duration that is given at the reference clock of 1.75 GHz."""
        return seconds * (_CLOCK / self.clock_hz)

    def issue_bound(self, dtype: str = "fp32") -> bool:
        """Whether arithmetic fills every issue slot, so that any other instruction costs a slot.

        GA10x, Ada, Hopper and Blackwell have as many fp32 lanes as issue lanes. V100, T4 and A100
        have half as many, and Pascal issues a load beside an operation. For dot products the
        integer lanes are compared.
        """
        lanes = self.integer_per_unit if dtype == DOT_PRODUCTS else self.vector_ops_per_unit
        return self.architecture.single_issue and lanes > 0.75 * self.issue_per_unit

    @property
    def staged(self) -> bool:
        """Whether warps copy operands to shared memory through registers, and wait for the loads.

        Asynchronous copies came with Ampere; devices of other vendors are assumed to have none.
        """
        return self.architecture.copies == "staged"

    def on_vector(self, dtype: str) -> bool:
        """Whether products of a type run on the vector unit. fp32 does on all devices but AMD's."""
        types = self.device.matrix_types
        return dtype not in types or (dtype == "fp32" and self.device.vendor != "AMD")

    def multiplied_as(self, dtype: str) -> str:
        """The type that `dtype` is multiplied in: itself, or fp32 for a 16-bit type that the device
        lacks.

        Volta and Turing multiply fp16 but not bf16, and Pascal's libraries sum both in fp32: values
        are widened, and the vector unit multiplies them. Raises `ProblemError`, naming the
        available types, for a device with neither.
        """
        if dtype not in ("fp16", "bf16") or dtype in self.device.matrix_types:
            return dtype
        if "fp32" not in self.device.vector_types and "fp32" not in self.device.matrix_types:
            self.device.matrix_flops(dtype)  # raises
        return "fp32"

    def matrix_per_unit(self, dtype: str) -> float:
        """FLOP/s of one unit for products of a type; of the vector unit where no matrix unit takes
        it.

        Raises `ProblemError` naming the types of the device.
        """
        device = self.device
        measured = device.measured.matrix if device.measured and device.kind == "cpu" else None
        if measured and dtype in measured:
            return float(measured[dtype].si) / self.units
        if dtype in device.matrix_types and not self.on_vector(dtype):
            return device.beyond_boost * device.matrix_flops(dtype) / self.units
        if dtype in ("fp32", "tf32"):
            return 2.0 * self.vector_ops_per_unit
        if dtype == "fp64":
            return device.beyond_boost * device.vector_flops(dtype) / self.units
        if dtype == DOT_PRODUCTS and self.architecture.dot_products:
            return self._dot_products_per_unit()
        return device.matrix_flops(dtype) / self.units  # raises, naming what there is

    def _dot_products_per_unit(self) -> float:
        """Operations a second of 8-bit dot products: four multiply-adds a lane and clock."""
        if "int8" in self.device.vector_types:
            return self.device.beyond_boost * self.device.vector_flops("int8") / self.units
        return 8.0 * self.integer_per_unit


# Cache of one entry: a sweep requests the same device once a chunk. Devices are frozen, so the same
# object always gives the same machine.
_LATEST: list[Machine] = []


def machine(device: Device) -> Machine:
    """The device with missing values filled in. Raises `ProblemError` for a device without a
    clock."""
    for latest in _LATEST:
        if latest.device is device:
            return latest
    model = _machine(device)
    _LATEST[:] = [model]
    return model


def _machine(device: Device) -> Machine:
    notes: list[str] = []

    def fact(value: float | None, otherwise: float, quantity: str, unit: str) -> float:
        if value is not None:
            return float(value)
        text = seconds(otherwise) if unit == "s" else si(otherwise, unit)
        notes.append(f"{quantity} is not in the spec: {text if otherwise else 'none'} taken")
        return otherwise

    architecture = architecture_of(device, notes)
    clock = device.boost_hz
    if not clock:
        raise ProblemError(f"{device.slug} has no clock, so nothing can be timed on it")
    parts = _parts(device.published)
    clock *= device.beyond_boost
    units = device.units * parts
    if parts > 1:
        notes.append(f"each of its {device.units} units is modelled as {parts} of a GPU's size")
    by_clock = _part_share(device.shared_bytes_per_clock, parts)
    shared = fact(by_clock, 128.0, "bandwidth of shared memory", "B/clk")
    vector = fact(_vector_ops(device), _widest_matrix(device) / 32, "fp32 vector rate", "FMA/s")
    if not vector:
        raise ProblemError(
            f"{device.slug} has no rate of any unit, so nothing can be timed on it; give "
            "compute.vector.fp32"
        )
    vector = vector * device.beyond_boost / units
    lanes = vector / clock
    per_clock = architecture.l2_bytes_per_clock
    l2 = device.measured_l2_bytes_per_s or device.l2_bytes_per_s
    hbm = device.hbm_bytes_per_s
    l2_rate = max(fact(l2, per_clock * units * clock, "L2 bandwidth", "B/s"), 1.05 * hbm)
    return Machine(
        device=device,
        units=units,
        clock_hz=clock,
        architecture=architecture,
        vector_ops_per_unit=vector,
        integer_per_unit=(architecture.integer_lanes or lanes) * clock,
        issue_per_unit=(architecture.issue_lanes or lanes) * clock,
        special_per_unit=fact(
            _part_share(device.special_per_clock, parts),
            vector / clock / 8,
            "special-function rate",
            "/clk",
        )
        * clock,
        shared_bytes_per_unit=shared * clock,
        shared_capacity=_part_share(device.shared_capacity_bytes, parts) or _UNLIMITED,
        shared_per_block=_part_share(device.shared_max_per_block_bytes, parts) or _UNLIMITED,
        shared_reserved=float(device.shared_reserved_bytes or 0),
        registers_bytes=float(4 * device.registers) if device.registers else _UNLIMITED,
        # Registers are allocated in multiples of eight: 255 take 256.
        thread_registers_bytes=4.0 * (device.max_registers_per_thread or 255) + 4.0,
        max_threads=float(device.max_threads or 2048),
        max_blocks=float(device.max_blocks or 32),
        l2_bytes_per_s=l2_rate,
        l2_capacity=fact(device.l2_capacity_bytes, 0.0, "L2 capacity", "B"),
        llc=_last_cache(device, l2_rate, fact),
        hbm_bytes_per_s=hbm,
        hbm_latency=fact(device.latency_seconds("hbm"), 650 / _CLOCK, "memory latency", "s"),
        l2_latency=fact(device.latency_seconds("l2"), 260 / _CLOCK, "L2 latency", "s"),
        l1_capacity=_l1_capacity(device, architecture),
        l1_latency=device.latency_seconds("l1") or 34 / _CLOCK,
        node_nm=architecture.node_nm,
        tdp_watts=_board_power(device, notes),
        base_share=min((device.base_hz or 0.0) / clock, 1.0),
        memory_family=architecture.memory_family or _family(device),
        inline_ecc=device.memory.hbm.ecc == "inline",
        hbm_is_measured=device.memory.hbm.bandwidth.status == "measured",
        copy_bytes_per_s=device.copied_hbm_bytes_per_s,
        assumptions=tuple(notes),
    )


def _last_cache(
    device: Device, l2_rate: float, fact: Callable[[float | None, float, str, str], float]
) -> LastCache | None:
    """The memory-side cache. Values missing in the spec are those of MI300X: half of the L2's rate
    (64 bytes a clock and channel against 128, CDNA 3 white paper) and 218 ns."""
    level = device.level("llc")
    if level is None or level.total_bytes is None:
        return None
    rate = fact(
        level.measured_bytes_per_s or level.bytes_per_s,
        l2_rate / 2.0,
        f"bandwidth of {level.label}",
        "B/s",
    )
    return LastCache(
        bytes_per_s=max(rate, 1.05 * device.hbm_bytes_per_s),
        capacity_bytes=level.total_bytes,
        latency_seconds=fact(level.latency_seconds, 218e-9, f"latency of {level.label}", "s"),
    )


def _board_power(device: Device, notes: list[str]) -> float:
    """Board power limit in watts; practically infinite where the spec has none."""
    if device.tdp_watts is None:
        notes.append("board power is not in the spec: no limit taken")
        return _ANY_POWER
    return float(device.tdp_watts)


def _parts(device: Device) -> int:
    """Number of SM-sized parts that a unit of a systolic accelerator is modelled as.

    A few such units have the matrix rate of hundreds of SMs, and need as many tiles in flight and
    as much bandwidth. One part has the rate of an A100 SM: 1,024 multiply-adds of 16 bits a clock.
    A what-if copy has as many parts as its published spec: faster units are no more units.
    """
    if device.kind != "accelerator":
        return 1
    rates = [device.matrix_flops(name) for name in ("bf16", "fp16") if name in device.matrix_types]
    return max(round(max(rates, default=0.0) / device.units / device.boost_hz / 2048.0), 1)


def _part_share(total: float | None, parts: int) -> float | None:
    """One part's share of a unit's value."""
    return None if total is None else total / parts


def _l1_capacity(device: Device, architecture: Architecture) -> float:
    """Bytes of a unit's L1 for a kernel that uses no shared memory.

    L1 and shared memory are one memory since Volta; all of it can be L1 except `shared_kept_bytes`.
    Where the spec has no L1 capacity, that of shared memory is taken.
    """
    shared = device.memory.shared
    l1 = shared.l1_capacity_per_unit if shared is not None else None
    capacity = float(l1.si if l1 is not None else device.shared_capacity_bytes or 0)
    return capacity - architecture.shared_kept_bytes


def _vector_ops(device: Device) -> float | None:
    """fp32 multiply-adds a second of the whole device's vector unit; None where the spec has no
    rate."""
    try:
        return device.vector_flops("fp32") / 2
    except ProblemError:
        return None


def _widest_matrix(device: Device) -> float:
    """FLOP/s of the widest matrix type (the slowest one the device lists)."""
    return min((device.matrix_flops(dtype) for dtype in device.matrix_types), default=0.0)


def _family(device: Device) -> str:
    """Memory family, whose members reach about the same share of their peak bandwidth.

    It is used where the architecture names none; Maxwell and Pascal have their own, since their
    controllers reach less than later ones. GDDR6, GDDR7 and HBM since Volta are a family each.
    AMD's boards reach less of HBM. Host memory and on-package memory of other vendors reach the
    least.
    """
    technology = device.hbm_technology.upper()
    if technology.startswith("GDDR"):
        return "gddr7" if technology.startswith("GDDR7") else "gddr"
    if technology.startswith("HBM") and device.vendor == "AMD":
        return "amd"
    if technology.startswith("HBM"):
        return "stacked"
    return "other"
