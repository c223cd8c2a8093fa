"""`perfmodel hardware list | show | new | validate | diff | schema`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known
from perfmodel.cli.hardwarenew import new
from perfmodel.cli.output import Format, Output, chosen_format, emit, say, to_stdout
from perfmodel.errors import UnknownName
from perfmodel.formats.readers import hardware as problems_of
from perfmodel.hardware import (
    Device,
    Level,
    System,
    SystemLevel,
    check,
    load,
    names,
    systems,
)
from perfmodel.hardware.facts import SOURCE_FIELDS, Sourced, items, walk
from perfmodel.render import Column, Report
from perfmodel.render.report import Row, binary, quantity, text
from perfmodel.units import seconds, si

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _argument(metavar: str) -> Any:
    """A device as an argument."""
    return typer.Argument(
        metavar=metavar,
        help="Slug, alias or spec file (perfmodel hardware list).",
        autocompletion=completing.devices,
    )


@app.callback()
def hardware() -> None:
    """Hardware specs: one YAML file a device, every number with its source.

    \b
        perfmodel hardware list
        perfmodel hardware show h100-sxm
        perfmodel hardware systems
        perfmodel hardware new my-gpu.yaml --like l40s
        perfmodel hardware validate my-gpu.yaml
        perfmodel hardware diff a100-sxm4-80gb h100-sxm

    Your own specs are found by path, or by name in the folders listed in PERFMODEL_HARDWARE_PATH.
    """


@app.command("list")
def list_(
    vendor: Annotated[
        str | None,
        typer.Option(
            "--vendor",
            metavar="NAMES",
            help="Only devices of these vendors, with commas: amd,intel.",
            autocompletion=completing.vendors,
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """List the devices that specs describe.

    \b
        perfmodel hardware list --vendor amd,intel
        perfmodel hardware list --format csv --output devices.csv
    """
    chosen_format(format, output)
    devices = [load(name) for name in names()]
    if vendor is not None:
        vendors = {item.vendor.lower(): item.vendor for item in devices}
        choices = [name.lower() for name in known.names(vendor)]
        for name in choices:
            if name not in vendors:
                raise UnknownName("vendor", name, vendors.values())
        devices = [item for item in devices if item.vendor.lower() in choices]
    emit(Report("devices", [_summary(item) for item in devices], _LISTED), format, output)


@app.command()
def show(
    device: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Slug, alias or spec file of a device or system.",
            autocompletion=completing.devices,
        ),
    ],
    format: Format = None,
    output: Output = None,
) -> None:
    """Show every fact of a device or a system with its source and status, and its levels.

    \b
        perfmodel hardware show h100
        perfmodel hardware show dgx-h100 --format json
    """
    spec = _spec(device)
    if isinstance(spec, System):
        emit(system_report(spec), format, output)
        return
    title = f"{spec.name} ({spec.vendor}, {spec.architecture})"
    head: dict[str, Any] = {
        "device": spec.slug,
        "name": spec.name,
        "sources": dict(spec.sources),
        "levels": [_level(level) for level in spec.levels()],
    }
    notes = [_level_line(level) for level in spec.levels()]
    notes += [f"note: {note}" for note in spec.notes]
    emit(Report("facts", list(_facts(spec)), _FACTS, title, head, notes), format, output)


def _spec(name: str) -> Device | System:
    """The device of that name, else the system. Raises `UnknownName` with names of devices."""
    if systems.is_named(name):
        return systems.load(name)
    return load(name)


@app.command("systems")
def systems_(format: Format = None, output: Output = None) -> None:
    """List the systems: devices joined by links, one YAML file each.

    \b
    perfmodel hardware systems
    perfmodel hardware systems --format csv --output systems.csv
    """
    chosen_format(format, output)
    emit(listed_systems(systems.every()), format, output)


app.command()(new)


@app.command()
def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Spec files.")],
    warnings: Annotated[
        bool,
        typer.Option("--warnings", help="Also print warnings, with which a spec is still usable."),
    ] = False,
) -> None:
    """Check spec files of devices and systems: keys, units, sources, physics of the numbers.

    Prints a line per problem, with file and line number; exit code 2 if there is any.

    \b
        perfmodel hardware validate my-gpu.yaml
        perfmodel hardware validate --warnings specs/*.yaml
    """
    bad = lines = 0
    for path in files:
        is_system = systems.is_system(path)
        problems = systems.validate_file(path) if is_system else problems_of(Path(path))
        bad, lines = bad + bool(problems), lines + len(problems)
        for problem in problems:
            say(problem)
        if warnings and not problems and not is_system:
            for finding in check(load(path if "/" in path else f"./{path}")):
                say(f"{path}: warning: {finding.message}")
    if bad:
        if lines > 1:
            say(f"{bad} of {len(files)} specs cannot be used")
        raise typer.Exit(2)
    to_stdout(iter([f"{len(files)} {'spec is' if len(files) == 1 else 'specs are'} valid\n"]))


@app.command()
def diff(
    first: Annotated[str, _argument("A")],
    second: Annotated[str, _argument("B")],
    format: Format = None,
    output: Output = None,
) -> None:
    """Show the facts in which two devices differ, with the ratio B/A.

    \b
        perfmodel hardware diff a100 h100
        perfmodel hardware diff l40s ./my-gpu.yaml --format markdown
    """
    chosen_format(format, output)
    left, right = load(first), load(second)
    lefts, rights = ({row["fact"]: row for row in _facts(item)} for item in (left, right))
    rows = []
    for fact in dict.fromkeys([*lefts, *rights]):
        a, b = (table.get(fact, {}) for table in (lefts, rights))
        if a.get("value") != b.get("value"):
            row = {"fact": fact, "a": a.get("value"), "b": b.get("value")}
            rows.append(row | {"ratio": _ratio(a.get("si"), b.get("si"))})
    columns = [
        text("fact", "fact", fold=36),
        text(left.slug, "a"),
        text(right.slug, "b"),
        _RATIO,
    ]
    head = {"a": left.slug, "b": right.slug}
    emit(Report("differences", rows, columns, head=head), format, output)


@app.command()
def schema(
    system: Annotated[
        bool,
        typer.Option(
            "--system", help="Print the schema of a system's file in place of a device's."
        ),
    ] = False,
) -> None:
    """Print the JSON Schema of a spec file, for editors.

    \b
    perfmodel hardware schema > hardware_spec.schema.json
    perfmodel hardware schema --system > system_spec.schema.json
    """
    from perfmodel.hardware import schema as definition

    to_stdout(iter([definition.text(System if system else Device)]))


def system_report(system: System) -> Report:
    """Every fact of a system."""
    head = {"system": system.slug, "name": system.name, "sources": dict(system.sources)}
    notes = [_link_line(level) for level in system.levels]
    notes += [f"note: {note}" for note in system.notes]
    title = f"{system.name}, of {system.device}"
    return Report("facts", list(_facts(system)), _FACTS, title, head, notes)


def listed_systems(found: Iterable[System]) -> Report:
    """One line for each system."""
    rows = [
        {
            "slug": item.slug,
            "name": item.name,
            "device": item.device,
            "devices": item.devices,
            "node_devices": item.node_devices,
            "levels": [_link_line(level) for level in item.levels],
        }
        for item in found
    ]
    return Report("systems", rows, _SYSTEMS)


def _link_line(level: SystemLevel) -> str:
    """A link, in one line."""
    adds_up = ", adds up in the switch" if level.reduces else ""
    return (
        f"level {level.name}: {level.label}, {level.devices.value:,} devices, {level.topology}, "
        f"{si(level.bytes_per_s, 'B/s')} a direction, {seconds(level.latency.si)}{adds_up}"
    )


def _ratio(a: float | None, b: float | None) -> float | None:
    return b / a if a and b else None


_RATIO = Column("B/A", lambda row: row["ratio"], lambda value: f"{value:.3g}", rank=1)


def _facts(spec: Device | System) -> Iterator[Row]:
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


def _level(level: Level) -> dict[str, Any]:
    """The values of a level, as plain data."""
    return {
        "name": level.name,
        "label": level.label,
        "scope": level.scope,
        "bytes_per_s": level.bytes_per_s,
        "measured_bytes_per_s": level.measured_bytes_per_s,
        "capacity_bytes": level.capacity_bytes,
        "latency_seconds": level.latency_seconds,
        "instances": level.instances,
        "shared_by": level.shared_by,
        "status": level.status,
        "sources": list(level.source),
    }


def _level_line(level: Level) -> str:
    """A level, in one line: its description first, its source last."""
    measured = level.measured_bytes_per_s
    parts = [
        si(level.bytes_per_s, "B/s") if level.bytes_per_s is not None else "",
        f"{si(measured, 'B/s')} measured" if measured is not None else "",
        _size(level),
        seconds(level.latency_seconds) if level.latency_seconds is not None else "",
        f"{level.instances} of them" if level.instances > 1 else "",
    ]
    sources = f" [{', '.join(level.source)}]" if level.source else ""
    return f"level {level.name}: {', '.join([level.label, *filter(None, parts)])}{sources}"


def _size(level: Level) -> str:
    """A capacity in its maker's unit: decimal for memories, binary for caches."""
    if level.capacity_bytes is None:
        return ""
    decimal = level.name == "hbm" or level.scope == "link"
    return si(level.capacity_bytes, "B") if decimal else binary(level.capacity_bytes)


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


def _summary(device: Device) -> dict[str, Any]:
    types = {str(name): rate.si for name, rate in device.compute.matrix.items()}
    return {
        "slug": device.slug,
        "name": device.name,
        "vendor": device.vendor,
        "kind": device.kind,
        "architecture": device.architecture,
        "launch_year": device.launch_year.value,
        "units": device.units,
        "memory": device.hbm_technology,
        "hbm_bytes_per_s": device.hbm_bytes_per_s,
        "hbm_capacity_bytes": device.hbm_capacity_bytes,
        "l2_capacity_bytes": device.l2_capacity_bytes,
        "matrix_flops_16": types.get("bf16") or types.get("fp16"),
        "matrix_flops_8": types.get("fp8") or types.get("int8"),
        "matrix_flops_fp8": types.get("fp8"),
        "matrix_ops_int8": types.get("int8"),
        "vector_flops_fp32": _vector(device),
        "aliases": list(device.aliases),
    }


def _vector(device: Device) -> float | None:
    rate = {str(name): fact.si for name, fact in device.compute.vector.items()}
    return rate.get("fp32")


def _amount(header: str, key: str, unit: str, rank: int) -> Column:
    return Column(header, lambda row: row[key], quantity(unit), rank=rank)


_LISTED = (
    text("device", "slug"),
    text("name", "name", rank=7),
    Column("year", lambda row: row["launch_year"], str, rank=5),
    Column("units", lambda row: row["units"], str, rank=4),
    text("memory", "memory", rank=3),
    _amount("bandwidth", "hbm_bytes_per_s", "B/s", 1),
    _amount("capacity", "hbm_capacity_bytes", "B", 1),
    Column("L2", lambda row: row["l2_capacity_bytes"], binary, rank=6),
    _amount("16-bit matrix", "matrix_flops_16", "FLOP/s", 1),
    _amount("fp8 matrix", "matrix_flops_fp8", "FLOP/s", 2),
    _amount("int8 matrix", "matrix_ops_int8", "OP/s", 8),
    _amount("fp32 vector", "vector_flops_fp32", "FLOP/s", 6),
)
_FACTS = (
    text("fact", "fact"),
    Column("value", lambda row: row["value"], number=False),
    text("status", "status", rank=1),
    Column("sources", lambda row: ", ".join(row["sources"]), number=False, fold=12, rank=2),
    text("note", "note", fold=24, rank=3),
)
_SYSTEMS = (
    text("system", "slug"),
    text("name", "name"),
    text("device", "device"),
    Column("a node", lambda row: row["node_devices"], str),
    Column("devices", lambda row: row["devices"], lambda value: f"{value:,}"),
)
