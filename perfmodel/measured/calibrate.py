"""Readings of this machine as a hardware spec, with a `measured` block beside the datasheet values.

A device with a shipped spec keeps its datasheet values and gets the readings as `measured`. For any
other device, a datasheet field is what the system reports, or what follows from instruction sets
and clocks, or else the best measured value. Each field states which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.catalogue import normalise
from perfmodel.entries import made, written
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, loads
from perfmodel.hardware.catalogue import load, shipped
from perfmodel.measured.microbench import Readings
from perfmodel.measured.plateaus import (
    Judged,
    disturbed,
    judged,
    own_product,
    streams,
    used,
)
from perfmodel.units import exact

_CALIBRATED = "calibrate"  # the source of what was measured here
_DIGITS = 4
_ADDED = "; other programs ran meanwhile"
_MOST_OVER_PEAK = 1.05  # times the stated peak: a reading above this is not plausible

# FLOP per clock per core in fp32 by instruction set: vectors × lanes × 2 for a multiply-add.
_VECTOR = (("avx512f", 64), ("fma", 32), ("avx", 16), ("asimd", 16), ("sse2", 8))
# Matrix rate over the fp32 vector rate, by type and the flag that brings it.
_MATRIX = {
    "bf16": (("amx_bf16", 16), ("avx512_bf16", 2), ("bf16", 2)),
    "int8": (("amx_int8", 32), ("avx512_vnni", 4), ("avx_vnni", 4), ("i8mm", 8), ("asimddp", 4)),
}


def calibrated(readings: Readings, slug: str) -> Device:
    """The device of `readings`, called `slug`; the machine's own name becomes an alias."""
    spec = _shipped_spec(readings.slug)
    # Of a shipped spec, latencies and rates that are not measured here are kept.
    data = written(spec, without=("measured",)) if spec else _machine_data(readings)
    name = normalise(slug)
    spellings = (readings.slug, *data.get("aliases", ()), *([spec.slug] if spec else []))
    aliases = {normalise(spelling) for spelling in spellings} - {name}
    data |= {"slug": name, "aliases": tuple(sorted(aliases))}
    data["sources"] = {**data.get("sources", {}), **_sources(readings)}
    peak = _si(data["memory"]["hbm"]["bandwidth"], "bandwidth")
    verdict = judged(readings, max(peak, *_rates_below(streams(readings), peak).values()))
    data["measured"] = _measured_block(readings, verdict, data)
    data["latency"] = {**(data.get("latency") or {}), **_latencies(readings, verdict)} or None
    data["notes"] = (*data.get("notes", ()), *_notes(readings, verdict, spec is None))
    return _device(data)


def _notes(readings: Readings, verdict: Judged, unknown: bool) -> tuple[str, ...]:
    """Notes in the spec about how it was made."""
    notes = list(verdict.said)
    if readings.busy:
        notes.append(f"calibrated on a busy machine: {readings.busy}")
    if unknown and readings.kind == "cuda":
        notes.append("not in the catalogue: peaks are what was measured")
    return tuple(notes)


def _device(data: dict[str, Any]) -> Device:
    """The device, written as YAML text and read back, so that the file is known to be readable."""
    from perfmodel.hardware import writer

    device: Device = made(Device, {k: v for k, v in data.items() if v not in (None, {}, ())})
    return loads(writer.dump(device), "the calibrated spec")


def _shipped_spec(slug: str) -> Device | None:
    """The shipped spec of a device; for a calibrated spec, the shipped one that it was made
    from."""
    try:
        device = load(slug)
    except PerfmodelError:
        return None
    if _CALIBRATED not in device.sources:
        return device
    origins = (shipped() / f"{name}.yaml" for name in device.aliases)
    return next((load(path) for path in origins if path.is_file()), None)


def _sources(readings: Readings) -> dict[str, str]:
    versions = ", ".join(
        f"{name} {readings.versions[name]}"
        for name in ("torch", "triton", "driver", "git_revision")
        if readings.versions.get(name)
    )
    return {
        _CALIBRATED: f"perfmodel calibrate, {readings.timestamp_utc}, {versions}",
        "system": "as the operating system or driver reports it",
        "formula": "computed from other facts of the same file; the note says how",
    }


def _fact(value: float, unit: str, status: str, note: str = "", **extra: Any) -> dict[str, Any]:
    source = {"measured": _CALIBRATED, "config": "system", "derived": "formula"}.get(
        status, "system"
    )
    fact = {
        "value": exact(float(f"{value:.{_DIGITS}g}"), unit),
        "source": (source,),
        "status": status,
        **extra,
    }
    return fact | ({"note": note} if note else {})


def _count(value: int, note: str = "", status: str = "config") -> dict[str, Any]:
    source = "system" if status != "unverified" else _CALIBRATED
    return {"value": value, "source": (source,), "status": status} | (
        {"note": note} if note else {}
    )


# ---- The measured block --------------------------------------------------------------------------


def _measured_block(readings: Readings, verdict: Judged, data: Mapping[str, Any]) -> dict[str, Any]:
    """Achieved rates. A reading above the stated peak is left out, since it cannot be right."""
    peak = _si(data["memory"]["hbm"]["bandwidth"], "bandwidth")
    block: dict[str, Any] = {
        "hbm_bandwidth": {
            name: _fact(rate, "B/s", "measured", _stream_note(readings, name))
            for name, rate in _rates_below(streams(readings), peak).items()
        },
    }
    outer, inner = _outer(readings), readings.levels[0][0] if len(readings.levels) > 1 else None
    for name, level, place in (("l2", outer, f"in {outer}"), ("l1", inner, "in L1, all cores")):
        if level in verdict.bandwidth:
            note = _note(readings, "read", level, f"reads that hit {place}")
            block[f"{name}_bandwidth"] = _fact(verdict.bandwidth[level], "B/s", "measured", note)
    for unit in ("matrix", "vector"):
        block[unit] = _unit_rates(readings, verdict, unit, data["compute"].get(unit, {}))
    block["special_function"] = _rate(readings, verdict, "special", "exp/s")
    block["launch"] = {
        name: _rate(readings, verdict, f"launch.{name}", "s")
        for name in ("stream", "graph")
        if f"launch.{name}" in verdict.rates
    }
    return {name: value for name, value in block.items() if value}


def _rates_below(rates: Mapping[str, float], peak: float) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate <= peak * _MOST_OVER_PEAK}


def _unit_rates(
    readings: Readings, verdict: Judged, unit: str, peaks: Mapping[str, Any]
) -> dict[str, Any]:
    """Rates of a unit by type, none above its stated peak."""
    rates = {}
    for name, rate in verdict.rates.items():
        kind, _, dtype = name.partition(".")
        if kind == unit and rate <= _MOST_OVER_PEAK * _peak(peaks, dtype, rate):
            rates[dtype] = _rate(readings, verdict, name, _rate_unit(dtype))
    return rates


def _rate(readings: Readings, verdict: Judged, name: str, unit: str) -> dict[str, Any] | None:
    """A rate as a fact; None where it was not measured."""
    if name not in verdict.rates:
        return None
    methods = readings.methods
    note = methods.get(name, methods.get(name.partition(".")[0], ""))
    return _fact(
        verdict.rates[name], unit, "measured", note + _ADDED * (name in readings.disturbed)
    )


def _note(readings: Readings, curve: str, level: str | None, note: str) -> str:
    return note + _ADDED * disturbed(readings, curve, level)


def _stream_note(readings: Readings, name: str) -> str:
    """How main memory's bandwidth was measured, and how far beyond the last cache."""
    last = max((total for _, total, _ in readings.levels), default=0.0)
    size = used(readings, name, None)[0][0]
    beyond = f", {size / last:.2g} times the last cache or more" if last else ""
    note = f"{readings.curves[name].method}{beyond}"
    return _note(readings, name, None, note)


def _peak(peaks: Mapping[str, Any], dtype: str, otherwise: float) -> float:
    return _si(peaks[dtype], "compute rate") if dtype in peaks else otherwise


def _rate_unit(dtype: str) -> str:
    return "OP/s" if dtype.startswith("int") else "FLOP/s"


def _si(fact: Mapping[str, Any], dimension: str) -> float:
    from perfmodel.units import parse

    return parse(str(fact["value"]), dimension)


def _latencies(readings: Readings, verdict: Judged) -> dict[str, Any]:
    """Latency by the roles that caches have in a spec; none from a method that measures
    throughput."""
    if "latency" not in readings.curves:
        return {}
    method = readings.curves["latency"].method
    outer, inner = _outer(readings), _inner(readings)
    roles: dict[str, str | None] = {"l2": outer, "hbm": None}
    if inner is not None and readings.kind == "cpu":
        roles = {"shared": inner, **roles}
        if readings.levels[0][0] != inner:
            roles = {"l1": readings.levels[0][0], **roles}
    return {
        role: _fact(
            verdict.latency[level], "s", "measured", _note(readings, "latency", level, method)
        )
        for role, level in roles.items()
        if level in verdict.latency and (level is not None or role == "hbm")
    }


def _outer(readings: Readings) -> str | None:
    """The last cache."""
    return readings.levels[-1][0] if readings.levels else None


def _inner(readings: Readings) -> str | None:
    """The cache that programs tile for: L2 if there is an L3, else L1."""
    names = [name for name, _, _ in readings.levels]
    return names[-2] if len(names) > 1 else None


# ---- Machines without a spec ---------------------------------------------------------------------


def _machine_data(readings: Readings) -> dict[str, Any]:
    year = int(readings.timestamp_utc[:4])
    units = readings.units
    is_cpu = readings.kind == "cpu"
    return {
        "schema_version": 1,
        "name": f"{readings.name}, {units} {'cores' if is_cpu else 'units'}",
        "vendor": _vendor(readings.name),
        "kind": "cpu" if is_cpu else "gpu",
        "architecture": "not detected",
        "launch_year": _count(year, "year of the calibration; not detected", "unverified"),
        "compute": {
            "units": _count(units),
            "unit_name": "core" if is_cpu else "unit",
            "clocks": {"boost": _clock(readings)},
            **_peaks(readings),
        },
        "memory": _memory(readings),
        "peak_notes": {} if is_cpu else {"matrix": "measured", "vector": "measured"},
    }


def _vendor(name: str) -> str:
    makers = ("AMD", "Intel", "NVIDIA", "Apple", "Ampere", "Neoverse")
    return next((maker for maker in makers if maker.lower() in name.lower()), "not detected")


def _clock_hz(readings: Readings) -> float:
    return readings.rates.get("clock") or 2e9


def _clock(readings: Readings) -> dict[str, Any]:
    if "clock" in readings.rates:
        note = readings.methods.get("clock", "")
        return _fact(readings.rates["clock"], "Hz", "measured", note)
    return _fact(2e9, "Hz", "unverified", "not detected; 2 GHz taken")


def _peaks(readings: Readings) -> dict[str, Any]:
    """Peaks from instruction set and clock on a CPU, else the measured rates."""
    if readings.kind != "cpu":
        peaks: dict[str, Any] = {"matrix": {}, "vector": {}}
        for name, rate in readings.rates.items():
            unit, _, dtype = name.partition(".")
            if unit in peaks:
                fact = _fact(rate, _rate_unit(dtype), "measured", "best found; no datasheet value")
                peaks[unit][dtype] = fact
        return peaks
    per_clock, flag = _vector_width(readings)
    peak = readings.units * per_clock * _clock_hz(readings)
    formula = f"{readings.units} cores x {per_clock} FLOP/clk ({flag}) x the clock"
    matrix = {}
    for dtype, options in _MATRIX.items():
        factor = next((times for name, times in options if name in readings.flags), None)
        achieved = readings.rates.get(f"matrix.{dtype}", 0.0)
        if factor is not None and achieved <= factor * peak:
            note = f"{factor} times the fp32 rate, by instruction set"
            matrix[dtype] = _fact(factor * peak, _rate_unit(dtype), "derived", note)
    compute: dict[str, Any] = {
        "matrix": matrix,
        "vector": {"fp32": _fact(peak, "FLOP/s", "derived", formula)},
        "vector_flop_per_clock_per_unit": {
            "values": {"fp32": per_clock},
            "source": ("system",),
            "status": "derived",
            "note": f"instruction set {flag}",
        },
    }
    special = readings.rates.get("special")
    if special:
        exp_rate = min(special / readings.units / _clock_hz(readings), per_clock / 2)
        fact = _fact(exp_rate, "/clk", "measured", readings.methods.get("special", ""))
        compute["special_function"] = {"per_clock_per_unit": fact}
    return compute


def _vector_width(readings: Readings) -> tuple[int, str]:
    """FLOP per clock per core: by the widest instruction set, more where more was measured."""
    flag, per_clock = next(
        ((name, width) for name, width in _VECTOR if name in readings.flags), ("scalar", 4)
    )
    best = max(readings.rates.get("vector.fp32", 0.0), own_product(readings))
    achieved = best / readings.units / _clock_hz(readings)
    while achieved > 1.03 * per_clock:
        per_clock *= 2
        flag = "as measured"
    return per_clock, flag


def _memory(readings: Readings) -> dict[str, Any]:
    rates = streams(readings)
    best = max(rates, key=lambda name: rates[name])
    note = f"the best stream measured ({best}); no datasheet value is known"
    memory: dict[str, Any] = {
        "hbm": {
            "technology": "system memory" if readings.kind == "cpu" else "device memory",
            "capacity": _fact(readings.memory_bytes, "B", "config"),
            "bandwidth": _fact(rates[best], "B/s", "measured", note),
        }
    }
    sizes = {name: (total, size) for name, total, size in readings.levels}
    outer, inner = _outer(readings), _inner(readings)
    if outer is not None:
        memory["l2"] = {"label": outer, "capacity": _bytes(sizes[outer][0]), "shared_by_all": True}
    if inner is not None and readings.kind == "cpu" and sizes[inner][1] < sizes[outer or ""][0]:
        memory["shared"] = _shared_memory(readings, rates[best], inner)
    return memory


def _shared_memory(readings: Readings, memory_bytes_per_s: float, inner: str) -> dict[str, Any]:
    """The spec's shared memory: the cache that the programs of one core tile for."""
    sizes = {name: size for name, _, size in readings.levels}
    shared: dict[str, Any] = {
        "label": f"{inner} of one core",
        "capacity_per_unit": _bytes(sizes[inner]),
    }
    rate = judged(readings, memory_bytes_per_s).bandwidth.get(inner)
    if rate is not None:
        shared["bandwidth_per_unit"] = _fact(
            rate / readings.units / _clock_hz(readings), "B/clk", "measured",
            _note(readings, "read", inner, f"reads that hit in {inner}"),
        )  # fmt: skip
    first = readings.levels[0][0]
    if first != inner:
        shared["l1_capacity_per_unit"] = _bytes(sizes[first])
    return shared


def _bytes(value: float) -> dict[str, Any]:
    """A cache's size, in KiB or MiB where it is a whole number of them."""
    size = int(value)
    unit, scale = ("MiB", 2**20) if size % 2**20 == 0 else ("KiB", 2**10)
    text = f"{size // scale} {unit}" if size % scale == 0 else f"{size} B"
    return {"value": text, "source": ("system",), "status": "config"}
