"""Tables of hardware specs: devices and systems listed, the facts of one, two compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perfmodel.hardware import Device, Level, System, SystemLevel
from perfmodel.hardware.facts import SOURCE_FIELDS, Sourced, items, walk
from perfmodel.render.report import Column, Report, Row, binary, quantity, text
from perfmodel.units import seconds, si


def _rates(unit: str, *types: str) -> Callable[[Device], float | None]:
    """The peak rate of a unit in the first of some types that it has."""

    def rate(device: Device) -> float | None:
        rates = {str(name): rate.si for name, rate in getattr(device.compute, unit).items()}
        return next((rates[name] for name in types if name in rates), None)

    return rate


_DEVICES = (
    text("device", "slug"),
    text("name", "name", rank=7),
    Column(key="vendor"),
    Column(key="kind"),
    Column(key="architecture"),
    Column("year", "launch_year", of="launch_year.value", rank=5),
    Column("units", "units", rank=4),
    text("memory", "memory", of="hbm_technology", rank=3),
    Column("bandwidth", "hbm_bytes_per_s", rank=1),
    Column("capacity", "hbm_capacity_bytes", rank=1),
    Column("L2", "l2_capacity_bytes", "binary", rank=6),
    Column("16-bit matrix", "matrix_flops_16", "flops_per_s", of=_rates("matrix", "bf16", "fp16"),
           rank=1),
    Column(key="matrix_flops_8", of=_rates("matrix", "fp8", "int8")),
    Column("fp8 matrix", "matrix_flops_fp8", "flops_per_s", of=_rates("matrix", "fp8"), rank=2),
    Column("int8 matrix", "matrix_ops_int8", quantity("OP/s"), of=_rates("matrix", "int8"), rank=8),
    Column("fp32 vector", "vector_flops_fp32", "flops_per_s", of=_rates("vector", "fp32"), rank=6),
    Column(key="aliases"),
)  # fmt: skip
_FACTS = (
    text("fact", "fact"),
    text("value", "value"),
    text("status", "status", rank=1),
    Column("sources", lambda row: ", ".join(row["sources"]), number=False, fold=12, rank=2),
    text("note", "note", fold=24, rank=3),
)
_SYSTEMS = (
    text("system", "slug"),
    text("name", "name"),
    text("device", "device"),
    Column("a node", "node_devices"),
    Column("devices", "devices", "{:,}"),
    Column(key="levels", of=lambda spec: [_link(level) for level in spec.levels]),
)


def devices(specs: Iterable[Device]) -> Report:
    """One line for each device."""
    return Report.of("devices", specs, _DEVICES)


def systems(specs: Iterable[System]) -> Report:
    """One line for each system."""
    return Report.of("systems", specs, _SYSTEMS)


def facts(spec: Device | System) -> Report:
    """Every fact of a device or system, and its levels."""
    if isinstance(spec, System):
        head: dict[str, Any] = {"system": spec.slug}
        title = f"{spec.name}, of {spec.device}"
        lines = [_link(level) for level in spec.levels]
    else:
        head = {"device": spec.slug}
        title = f"{spec.name} ({spec.vendor}, {spec.architecture})"
        lines = [_line(level) for level in spec.levels()]
    head |= {"name": spec.name, "sources": dict(spec.sources)}
    if isinstance(spec, Device):
        head["levels"] = [_level(level) for level in spec.levels()]
    notes = lines + [f"note: {note}" for note in spec.notes]
    return Report("facts", list(fact_rows(spec)), _FACTS, title, head, notes)


def differences(left: Device, right: Device) -> Report:
    """The facts in which two devices differ, with the ratio of the second to the first."""
    lefts, rights = ({row["fact"]: row for row in fact_rows(spec)} for spec in (left, right))
    rows = []
    for fact in dict.fromkeys([*lefts, *rights]):
        a, b = (table.get(fact, {}) for table in (lefts, rights))
        first, second = a.get("si"), b.get("si")
        if a.get("value") != b.get("value"):
            ratio = second / first if first and second else None
            rows.append({"fact": fact, "a": a.get("value"), "b": b.get("value"), "ratio": ratio})
    columns = [
        text("fact", "fact", fold=36),
        text(left.slug, "a"),
        text(right.slug, "b"),
        Column("B/A", "ratio", "{:.3g}", rank=1),
    ]
    return Report("differences", rows, columns, head={"a": left.slug, "b": right.slug})


def fact_rows(spec: Device | System) -> Iterator[Row]:
    """One row per fact: its path, value as written, SI value, status, sources."""
    for path, fact in walk(spec):
        for name, value, number in _values(fact):
            yield {
                "fact": ".".join((*path, *name)),
                "value": value,
                "si": number,
                "status": fact.status,
                "sources": list(fact.source),
                "note": fact.note or "",
            }


def _values(fact: Sourced) -> Iterator[tuple[tuple[str, ...], str, float | None]]:
    """The values of a fact: one, or several under names (occupancy limits, rates per clock)."""
    if hasattr(fact, "text"):
        yield (), fact.text, getattr(fact, "si", None)
        return
    for name, value in items(fact):
        if name in SOURCE_FIELDS:
            continue
        table = value if isinstance(value, dict) else {None: value}
        for key, item in table.items():
            path = (name,) if key is None else (name, str(key))
            number = isinstance(item, int | float) and not isinstance(item, bool)
            yield path, str(item), float(item) if number else None


def _level(level: Level) -> Row:
    """The values of a level, as plain data."""
    names = ("name", "label", "scope", "bytes_per_s", "measured_bytes_per_s", "capacity_bytes",
             "latency_seconds", "instances", "shared_by", "status")  # fmt: skip
    return {**{name: getattr(level, name) for name in names}, "sources": list(level.source)}


def _line(level: Level) -> str:
    """A level, in one line: its description first, its source last."""
    rate, measured, size = level.bytes_per_s, level.measured_bytes_per_s, level.capacity_bytes
    decimal = level.name == "hbm" or level.scope == "link"  # a capacity in its maker's unit
    parts = [
        level.label,
        si(rate, "B/s") if rate is not None else "",
        f"{si(measured, 'B/s')} measured" if measured is not None else "",
        "" if size is None else si(size, "B") if decimal else binary(size),
        seconds(level.latency_seconds) if level.latency_seconds is not None else "",
        f"{level.instances} of them" if level.instances > 1 else "",
    ]
    sources = f" [{', '.join(level.source)}]" if level.source else ""
    return f"level {level.name}: {', '.join(filter(None, parts))}{sources}"


def _link(level: SystemLevel) -> str:
    """A link, in one line."""
    adds_up = ", adds up in the switch" if level.reduces else ""
    return (
        f"level {level.name}: {level.label}, {level.devices.value:,} devices, {level.topology}, "
        f"{si(level.bytes_per_s, 'B/s')} a direction, {seconds(level.latency.si)}{adds_up}"
    )
