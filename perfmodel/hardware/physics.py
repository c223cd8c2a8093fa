"""Physical checks of a spec, some of which a stated reason overrides.

peak       = units × FLOP per clock per unit × clock, within 3 % or with a stated reason;
           about twice that is a figure for 2:4 structured sparsity and always wrong
bandwidth  rises toward the core: main memory < memory-side cache < L2 < shared, all units
capacity   falls toward the core: main memory > L2 > shared of one unit
measured   stays below its peak (5 % are allowed for clocks above the rated one)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from perfmodel.hardware.blocks import DType, FlopPerClock
from perfmodel.hardware.device import Device
from perfmodel.hardware.facts import Quantity, walk
from perfmodel.units import binary, si

PEAK_TOLERANCE = 0.03
MEASURED_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in a spec."""

    level: Literal["error", "warning"]
    """An error makes the spec unusable; a warning does not."""
    message: str
    """What is wrong, and what would be right."""
    where: tuple[str | int, ...] = ()
    """Path of keys in the file."""


def check(device: Device) -> list[Finding]:
    """Every fault in `device`, errors first."""
    findings = [
        *_peaks(device),
        *_bandwidths(device),
        *_capacities(device),
        *_measurements(device),
        *_occupancy(device),
        *_special(device),
        *_sources(device),
    ]
    return sorted(findings, key=lambda finding: finding.level != "error")


def _error(message: str, *path: str | int) -> Finding:
    return Finding("error", message, path)


@dataclass(frozen=True, slots=True)
class _Peak:
    """A peak beside what units, rate and clock give."""

    unit: Literal["matrix", "vector"]
    dtype: str
    peak: Quantity
    per_clock: int
    """FLOP of one unit in a clock."""
    clock: float
    built: float
    """units × rate × clock in FLOP/s."""

    @property
    def ratio(self) -> float:
        """The peak over what the structure gives."""
        return self.peak.si / self.built


def _peaks(device: Device) -> Iterator[Finding]:
    compute = device.compute
    structure = compute.matrix_flop_per_clock_per_unit
    matrix = list(_unit_peaks(device, "matrix", compute.matrix, structure, device.tensor_hz))
    structure = compute.vector_flop_per_clock_per_unit
    vector = list(_unit_peaks(device, "vector", compute.vector, structure, device.boost_hz))
    ratio = _common_ratio(device, [*matrix, *vector]) if vector else None
    if ratio is None:
        yield from _departures(device, [*matrix, *vector])
        return
    yield _error(
        f"every peak is {ratio:.3g} x what {device.units} units × rate × clock give: did you "
        "change the units or the clock? peaks follow them; perfmodel hardware new --like NAME "
        f'-c "SM {device.units}" changes all of them',
        *("compute", "units"),
    )


def _common_ratio(device: Device, peaks: list[_Peak]) -> float | None:
    """The factor by which all peaks without a reason depart alike; None if they do not. A sparse
    figure is one of the matrix unit alone, so some of the peaks must be the vector unit's."""
    ratios = [one.ratio for one in peaks if not _reason(device, one.unit, one.dtype)]
    if not ratios or max(ratios) > (1 + 2 * PEAK_TOLERANCE) * min(ratios):
        return None
    return ratios[0] if min(abs(ratio - 1) for ratio in ratios) > PEAK_TOLERANCE else None


def _unit_peaks(
    device: Device,
    name: Literal["matrix", "vector"],
    peaks: Mapping[DType, Quantity],
    structure: FlopPerClock | None,
    clock: float,
) -> Iterator[_Peak]:
    """The peaks whose structure is known."""
    per_clock: dict[str, int] = (
        {str(k): v for k, v in structure.values.items()} if structure else {}
    )
    for dtype, peak in peaks.items():
        if dtype in per_clock:
            rate = per_clock[dtype]
            yield _Peak(name, dtype, peak, rate, clock, device.units * rate * clock)


def _departures(device: Device, peaks: list[_Peak]) -> Iterator[Finding]:
    for row in peaks:
        name, dtype, peak, ratio = row.unit, row.dtype, row.peak, row.ratio
        path = ("compute", name, dtype)
        finding = (
            f"{name} {dtype} peak {peak.text} is {ratio - 1:+.0%} from {device.units} units × "
            f"{row.per_clock} FLOP/clk × {si(row.clock, 'Hz')} = {si(row.built, 'FLOP/s')}"
        )
        if 1.85 < ratio < 2.15:
            yield _error(f"{finding}: looks like a 2:4-sparse figure; peaks are dense", *path)
        elif abs(ratio - 1) > PEAK_TOLERANCE and not _reason(device, name, dtype):
            yield _error(f"{finding}; give the reason in peak_notes: {name}.{dtype}", *path)


def _reason(device: Device, name: str, dtype: str) -> bool:
    return name in device.peak_notes or f"{name}.{dtype}" in device.peak_notes


def _bandwidths(device: Device) -> Iterator[Finding]:
    """Each level compared with the next one outwards that has a bandwidth: peaks, or the measured
    one for an L2 without a peak."""
    memory = device.memory
    l2 = device.l2_bytes_per_s or device.measured_l2_bytes_per_s
    shared = device.shared_bytes_per_clock
    total = shared * device.units * device.boost_hz if shared else None
    llc = memory.llc.bandwidth.si if memory.llc and memory.llc.bandwidth else None
    levels = [
        ("hbm", device.hbm_bytes_per_s, ("memory", "hbm", "bandwidth")),
        ("llc", llc, ("memory", "llc", "bandwidth")),
        ("l2", l2, ("memory", "l2", "bandwidth")),
        ("shared, all units,", total, ("memory", "shared", "bandwidth_per_unit")),
    ]
    rows = [(name, rate, path) for name, rate, path in levels if rate is not None]
    for (outer, slow, path), (inner, fast, _) in pairwise(rows):
        if slow >= fast:
            message = f"bandwidth rises away from the core: {outer} {si(slow, 'B/s')} is not below "
            yield _error(f"{message}{inner} {si(fast, 'B/s')}", *path)
    if memory.l2 and memory.l2.bandwidth and memory.l2.bytes_per_clock:
        ratio = memory.l2.bandwidth.si / (memory.l2.bytes_per_clock.si * device.boost_hz)
        if abs(ratio - 1) > PEAK_TOLERANCE:
            message = f"l2 bandwidth is {ratio - 1:+.0%} from its bytes per clock × boost clock"
            yield Finding("warning", message, ("memory", "l2", "bandwidth"))


def _capacities(device: Device) -> Iterator[Finding]:
    memory = device.memory
    levels = [
        ("hbm", device.hbm_capacity_bytes, ("memory", "hbm", "capacity")),
        ("l2", device.l2_capacity_bytes, ("memory", "l2", "capacity")),
        ("shared of one unit", device.shared_capacity_bytes, ("memory", "shared")),
    ]
    rows = [(name, size, path) for name, size, path in levels if size is not None]
    for (outer, large, path), (inner, small, _) in pairwise(rows):
        if large <= small:
            message = f"capacity falls away from the core: {outer} {binary(large)} is not above "
            yield _error(f"{message}{inner} {binary(small)}", *path)
    if memory.llc and not memory.llc.capacity.si < device.hbm_capacity_bytes:
        yield _error("llc is not smaller than hbm", "memory", "llc", "capacity")
    block, unit = device.shared_max_per_block_bytes, device.shared_capacity_bytes
    if block and unit and block + device.shared_reserved_bytes > unit:
        message = f"a block may have {binary(block)} plus what is reserved, but the unit has only "
        yield _error(f"{message}{binary(unit)}", "memory", "shared", "max_per_block")


def _measurements(device: Device) -> Iterator[Finding]:
    if device.measured is None:
        return
    measured, memory, compute = device.measured, device.memory, device.compute
    pairs: list[tuple[str, Quantity, Quantity]] = [
        ("hbm_bandwidth", rate, memory.hbm.bandwidth) for rate in measured.hbm_bandwidth.values()
    ]
    for name, level, rate in (
        ("l2_bandwidth", memory.l2, measured.l2_bandwidth),
        ("llc_bandwidth", memory.llc, measured.llc_bandwidth),
    ):
        if rate and level and level.bandwidth:
            pairs.append((name, rate, level.bandwidth))
    for name, rates, peaks in (
        ("matrix", measured.matrix, compute.matrix),
        ("vector", measured.vector, compute.vector),
    ):
        pairs += [(name, rate, peaks[dtype]) for dtype, rate in rates.items() if dtype in peaks]
    for name, achieved, peak in pairs:
        if achieved.si > peak.si * (1 + MEASURED_TOLERANCE):
            message = f"measured {name} {achieved.text} is above its peak {peak.text}"
            yield _error(message, "measured", name)


def _occupancy(device: Device) -> Iterator[Finding]:
    threads, warps = device.max_threads, device.max_warps
    if threads and warps and threads != warps * device.warp_size:
        message = f"{warps} warps × {device.warp_size} are not {threads} threads"
        yield Finding("warning", message, ("occupancy",))


def _special(device: Device) -> Iterator[Finding]:
    """Exponentials per clock of a unit, at most its number of fp32 lanes."""
    structure = device.compute.vector_flop_per_clock_per_unit
    lanes = structure.values.get("fp32") if structure else None
    rate = device.special_per_clock
    if rate and lanes and rate > lanes / 2:
        message = f"{rate:g} special functions per clock, but only {lanes // 2} fp32 lanes per unit"
        yield _error(message, "compute", "special_function")


def unexplained(spec: Any) -> Iterator[Finding]:
    """The first fact of a device or a system whose source it does not explain."""
    for path, fact in walk(spec):
        for key in fact.source:
            if key not in spec.sources:
                yield _error(f"source {key!r} is not explained under sources", *path)
                return


def _sources(device: Device) -> Iterator[Finding]:
    yield from unexplained(device)
    keys = {key for _, fact in walk(device) for key in fact.source}
    for key in device.sources.keys() - keys:
        yield Finding("warning", f"source {key!r} is not used", ("sources", key))
