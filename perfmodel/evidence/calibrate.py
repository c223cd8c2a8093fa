"""Readings of this machine as a hardware spec, with a `measured` block beside what is documented.

A device that has a shipped spec keeps its datasheet and gets the readings as `measured`. For any
other the fields that a datasheet would hold are what the system reports, what follows from
instruction sets and clocks, or, where nothing says it, the best that was measured; each says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.evidence.microbench import Readings
from perfmodel.hardware import Device, loads
from perfmodel.hardware.catalogue import load, normalise, shipped
from perfmodel.units import exact

_CALIBRATED = "calibrate"  # the source of what was measured here
_DIGITS = 4
_MOST_OVER_PEAK = 1.05  # what a spec may show above its own peak
_BEYOND = 4.0  # times the last cache: a working set that only main memory holds
_LEVEL_LOW, _LEVEL_HIGH = 2.0, 0.6  # a level shows between 2 × the inner and 0.6 × its own size

# FLOP per clock per core in fp32 by instruction set: vectors × lanes × 2 for a multiply-add.
_VECTOR = (("avx512f", 64), ("fma", 32), ("avx", 16), ("asimd", 16), ("sse2", 8))
# Matrix rate over the fp32 vector rate, by type and the flag that brings it.
_MATRIX = {
    "bf16": (("amx_bf16", 16), ("avx512_bf16", 2), ("bf16", 2)),
    "int8": (("amx_int8", 32), ("avx512_vnni", 4), ("avx_vnni", 4), ("i8mm", 8), ("asimddp", 4)),
}


def calibrated(readings: Readings, slug: str) -> Device:
    """The device of `readings`, called `slug`; the machine's own name becomes an alias."""
    known = _shipped(readings.slug)
    data = _from_spec(known) if known else _from_machine(readings)
    name = normalise(slug)
    spellings = (readings.slug, *data.get("aliases", ()), *([known.slug] if known else []))
    own = {normalise(spelling) for spelling in spellings} - {name}
    data |= {"slug": name, "aliases": tuple(sorted(own))}
    data["sources"] = {**data.get("sources", {}), **_sources(readings)}
    data["measured"] = _measured(readings, data)
    data["latency"] = {**(data.get("latency") or {}), **_latencies(readings)} or None
    if not known and readings.kind == "cuda":
        data["notes"] = (
            *data.get("notes", ()),
            "not in the catalogue: peaks are what was measured",
        )
    return _sound(data)


def _sound(data: dict[str, Any]) -> Device:
    """The device, through its text: what is written can be read again."""
    from perfmodel.hardware import writer

    device = Device.model_validate({k: v for k, v in data.items() if v not in (None, {}, ())})
    return loads(writer.dump(device), "the calibrated spec")


def _shipped(slug: str) -> Device | None:
    """The datasheet of a device; of one that was calibrated before, the one that it came from."""
    try:
        found = load(slug)
    except PerfmodelError:
        return None
    if _CALIBRATED not in found.sources:
        return found
    origins = (shipped() / f"{name}.yaml" for name in found.aliases)
    return next((load(path) for path in origins if path.is_file()), None)


def _from_spec(device: Device) -> dict[str, Any]:
    """A shipped spec as data; latencies and rates that are measured elsewhere stay."""
    data = device.model_dump(mode="python", exclude_none=True)
    return {name: value for name, value in data.items() if name != "measured"}


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


def _fact(value: float, unit: str, status: str, note: str = "", **more: Any) -> dict[str, Any]:
    source = {"measured": _CALIBRATED, "config": "system", "derived": "formula"}.get(
        status, "system"
    )
    fact = {
        "value": exact(float(f"{value:.{_DIGITS}g}"), unit),
        "source": (source,),
        "status": status,
        **more,
    }
    return fact | ({"note": note} if note else {})


def _count(value: int, note: str = "", status: str = "config") -> dict[str, Any]:
    source = "system" if status != "unverified" else _CALIBRATED
    return {"value": value, "source": (source,), "status": status} | (
        {"note": note} if note else {}
    )


# ---- What a level reached ------------------------------------------------------------------------


def plateau(readings: Readings, curve: str, level: str | None) -> float | None:
    """What a curve shows for a cache level (its name), or for main memory (None).

    Bandwidth is compared with all instances together, latency with one: one core runs that. The
    median stands for a level, but for latency of a cache the least: other users of a shared cache
    can only add to it.
    """
    if curve not in readings.curves:
        return None
    one = curve in ("latency", "gather")
    sizes = {name: (each if one else total) for name, total, each in readings.levels}
    names = list(sizes)
    if level is None:
        low = _BEYOND * max(sizes.values(), default=0.0)
        values = readings.curves[curve].within(low * 0.99, float("inf"))
        values = values or [value for _, value in readings.curves[curve].points[-1:]]
    else:
        inner = sizes[names[names.index(level) - 1]] if names.index(level) else 0.0
        values = readings.curves[curve].within(_LEVEL_LOW * inner, _LEVEL_HIGH * sizes[level])
    if not values:
        return None
    if one and level is not None:
        return min(values)
    # Small working sets of a GPU show the launch, so its best is what the level reaches.
    return max(values) if readings.kind == "cuda" and not one else median(values)


def _memory_streams(readings: Readings) -> dict[str, float]:
    found = {name: plateau(readings, name, None) for name in ("read", "copy", "triad")}
    return {name: rate for name, rate in found.items() if rate is not None}


def _outer(readings: Readings) -> str | None:
    """The last cache."""
    return readings.levels[-1][0] if readings.levels else None


def _inner(readings: Readings) -> str | None:
    """The cache next to the core that programs block for: L2 where there is an L3, else L1."""
    names = [name for name, _, _ in readings.levels]
    return names[-2] if len(names) > 1 else None


# ---- The measured block --------------------------------------------------------------------------


def _measured(readings: Readings, data: Mapping[str, Any]) -> dict[str, Any]:
    """Achieved rates; a reading above the stated peak is left out, for the peak says why."""
    rates, methods = readings.rates, readings.methods
    streams = _memory_streams(readings)
    peak = _si(data["memory"]["hbm"]["bandwidth"], "bandwidth")
    fits = {name: rate for name, rate in streams.items() if rate <= peak * _MOST_OVER_PEAK}
    block: dict[str, Any] = {
        "hbm_bandwidth": {
            name: _fact(rate, "B/s", "measured", _curve_note(readings, name))
            for name, rate in fits.items()
        },
    }
    outer, inner = _outer(readings), readings.levels[0][0] if len(readings.levels) > 1 else None
    slower = max((peak, *fits.values()))
    last = plateau(readings, "read", outer) if outer else None
    if last is not None and last > 1.01 * slower:
        block["l2_bandwidth"] = _fact(last, "B/s", "measured", f"reads that hit in {outer}")
    first = plateau(readings, "read", inner) if inner else None
    if first is not None:
        block["l1_bandwidth"] = _fact(first, "B/s", "measured", "reads that hit in L1, all cores")
    for unit in ("matrix", "vector"):
        peaks = data["compute"].get(unit, {})
        block[unit] = {
            dtype: _fact(
                rate, _rate_unit(dtype), "measured", methods.get(name, methods.get(unit, ""))
            )
            for name, rate in rates.items()
            if (dtype := name.removeprefix(f"{unit}.")) != name
            and rate <= _MOST_OVER_PEAK * _peak(peaks, dtype, rate)
        }
    if "special" in rates:
        block["special_function"] = _fact(
            rates["special"], "exp/s", "measured", methods.get("special", "")
        )
    launch = {
        name: _fact(rates[f"launch.{name}"], "s", "measured", methods.get(f"launch.{name}", ""))
        for name in ("stream", "graph")
        if f"launch.{name}" in rates
    }
    return {name: value for name, value in {**block, "launch": launch}.items() if value}


def _curve_note(readings: Readings, name: str) -> str:
    return f"{readings.curves[name].method}, working set beyond the last cache"


def _peak(peaks: Mapping[str, Any], dtype: str, otherwise: float) -> float:
    return _si(peaks[dtype], "compute rate") if dtype in peaks else otherwise


def _rate_unit(dtype: str) -> str:
    return "OP/s" if dtype.startswith("int") else "FLOP/s"


def _si(fact: Mapping[str, Any], dimension: str) -> float:
    from perfmodel.units import parse

    return parse(str(fact["value"]), dimension)


def _latencies(readings: Readings) -> dict[str, Any]:
    """Latency by the roles that caches have in a spec; none from a method that is not one."""
    if "latency" not in readings.curves:
        return {}
    method = readings.curves["latency"].method
    outer, inner = _outer(readings), _inner(readings)
    roles: dict[str, str | None] = {"l2": outer, "hbm": None}
    if inner is not None and readings.kind == "cpu":
        roles = {"shared": inner, **roles}
        if readings.levels[0][0] != inner:
            roles = {"l1": readings.levels[0][0], **roles}
    found = {}
    for role, level in roles.items():
        value = plateau(readings, "latency", level)
        if value is not None:
            found[role] = _fact(value, "s", "measured", method)
    return found


# ---- Machines without a spec ---------------------------------------------------------------------


def _from_machine(readings: Readings) -> dict[str, Any]:
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
    known = ("AMD", "Intel", "NVIDIA", "Apple", "Ampere", "Neoverse")
    return next((maker for maker in known if maker.lower() in name.lower()), "not detected")


def _clock_hz(readings: Readings) -> float:
    return readings.rates.get("clock") or 2e9


def _clock(readings: Readings) -> dict[str, Any]:
    if "clock" in readings.rates:
        note = readings.methods.get("clock", "")
        return _fact(readings.rates["clock"], "Hz", "measured", note)
    return _fact(2e9, "Hz", "unverified", "not detected; 2 GHz taken")


def _peaks(readings: Readings) -> dict[str, Any]:
    """Peaks by instruction set and clock on a CPU, else what was measured."""
    if readings.kind != "cpu":
        found: dict[str, Any] = {"matrix": {}, "vector": {}}
        for name, rate in readings.rates.items():
            unit, _, dtype = name.partition(".")
            if unit in found:
                fact = _fact(rate, _rate_unit(dtype), "measured", "best found; no datasheet value")
                found[unit][dtype] = fact
        return found
    per_clock, flag = _vector_width(readings)
    peak = readings.units * per_clock * _clock_hz(readings)
    said = f"{readings.units} cores x {per_clock} FLOP/clk ({flag}) x the clock"
    matrix = {}
    for dtype, options in _MATRIX.items():
        factor = next((times for name, times in options if name in readings.flags), None)
        achieved = readings.rates.get(f"matrix.{dtype}", 0.0)
        if factor is not None and achieved <= factor * peak:
            note = f"{factor} times the fp32 rate, by instruction set"
            matrix[dtype] = _fact(factor * peak, _rate_unit(dtype), "derived", note)
    compute: dict[str, Any] = {
        "matrix": matrix,
        "vector": {"fp32": _fact(peak, "FLOP/s", "derived", said)},
        "vector_flop_per_clock_per_unit": {
            "values": {"fp32": per_clock},
            "source": ("system",),
            "status": "derived",
            "note": f"instruction set {flag}",
        },
    }
    special = readings.rates.get("special")
    if special:
        each = min(special / readings.units / _clock_hz(readings), per_clock / 2)
        fact = _fact(each, "/clk", "measured", readings.methods.get("special", ""))
        compute["special_function"] = {"per_clock_per_unit": fact}
    return compute


def _vector_width(readings: Readings) -> tuple[int, str]:
    """FLOP per clock per core: by the widest instruction set, more where more was measured."""
    flag, per_clock = next(
        ((name, width) for name, width in _VECTOR if name in readings.flags), ("scalar", 4)
    )
    achieved = readings.rates.get("vector.fp32", 0.0) / readings.units / _clock_hz(readings)
    while achieved > 1.03 * per_clock:
        per_clock *= 2
        flag = "as measured"
    return per_clock, flag


def _memory(readings: Readings) -> dict[str, Any]:
    best = max(_memory_streams(readings).values())
    memory: dict[str, Any] = {
        "hbm": {
            "technology": "system memory" if readings.kind == "cpu" else "device memory",
            "capacity": _fact(readings.memory_bytes, "B", "config"),
            "bandwidth": _fact(
                best, "B/s", "measured", "the best stream measured; no datasheet value is known"
            ),
        }
    }
    sizes = {name: (total, each) for name, total, each in readings.levels}
    outer, inner = _outer(readings), _inner(readings)
    if outer is not None:
        memory["l2"] = {"label": outer, "capacity": _bytes(sizes[outer][0]), "shared_by_all": True}
    if inner is not None and readings.kind == "cpu":
        memory["shared"] = {
            "label": f"{inner} of one core",
            "capacity_per_unit": _bytes(sizes[inner][1]),
        }
        rate = plateau(readings, "read", inner)
        outside = plateau(readings, "read", outer) or 0.0
        if rate is not None and rate > 1.01 * outside:
            memory["shared"]["bandwidth_per_unit"] = _fact(
                rate / readings.units / _clock_hz(readings), "B/clk", "measured",
                f"reads that hit in {inner}",
            )  # fmt: skip
        first = readings.levels[0][0]
        if first != inner:
            memory["shared"]["l1_capacity_per_unit"] = _bytes(sizes[first][1])
    return memory


def _bytes(value: float) -> dict[str, Any]:
    """A cache's size, in KiB or MiB where it is a whole number of them."""
    whole = int(value)
    unit, scale = ("MiB", 2**20) if whole % 2**20 == 0 else ("KiB", 2**10)
    text = f"{whole // scale} {unit}" if whole % scale == 0 else f"{whole} B"
    return {"value": text, "source": ("system",), "status": "config"}
