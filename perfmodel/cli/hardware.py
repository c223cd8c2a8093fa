"""`perfmodel hardware list | show | systems | new | validate | diff | schema`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from perfmodel.cli import completing, known
from perfmodel.cli.build import Group
from perfmodel.cli.output import Shown, say, to_stdout, write
from perfmodel.errors import OutputError, ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.formats.readers import hardware as problems_of
from perfmodel.hardware import Device, System, load, loads, names, systems
from perfmodel.hardware.copying import like as copied
from perfmodel.hardware.copying import without_misfits
from perfmodel.hardware.physics import check
from perfmodel.hardware.writer import SCHEMA_LINE, schema_line
from perfmodel.plaintext import quoted
from perfmodel.render import specs as render

app = Group(
    help="""Hardware specs: one YAML file a device, every number with its source.

    \b
        perfmodel hardware list
        perfmodel hardware show h100-sxm
        perfmodel hardware systems
        perfmodel hardware new my-gpu.yaml --like l40s
        perfmodel hardware validate my-gpu.yaml
        perfmodel hardware diff a100-sxm4-80gb h100-sxm

    Your own specs are found by path, or by name in the folders listed in PERFMODEL_HARDWARE_PATH.
    """
)


def _spec_argument(metavar: str) -> FieldOption:
    """A device as an argument."""
    return FieldOption(metavar=metavar, argument=True, read=load, complete=completing.devices)


@app.command("list")
def list_(
    vendor: Annotated[
        str | None,
        FieldOption(
            metavar="NAMES",
            help="Only devices of these vendors, with commas: amd,intel.",
            complete=completing.vendors,
        ),
    ] = None,
    *,
    shown: Shown,
) -> None:
    """List the devices that specs describe.

    \b
        perfmodel hardware list --vendor amd,intel
        perfmodel hardware list --format csv --output devices.csv
    """
    devices = [load(name) for name in names()]
    if vendor is not None:
        vendors = {device.vendor.lower(): device.vendor for device in devices}
        choices = [name.lower() for name in known.names(vendor)]
        for name in choices:
            if name not in vendors:
                raise UnknownName("vendor", name, vendors.values())
        devices = [device for device in devices if device.vendor.lower() in choices]
    shown.emit(render.devices(devices))


def _spec(name: str) -> Device | System:
    """The device of that name, else the system. Raises `UnknownName` with names of devices."""
    return systems.load(name) if systems.is_named(name) else load(name)


@app.command("show")
def show(
    device: Annotated[
        Any,  # a Device or a System
        FieldOption(
            metavar="NAME",
            help="Slug, alias or spec file of a device or system.",
            argument=True,
            read=_spec,
            complete=completing.devices,
        ),
    ],
    shown: Shown,
) -> None:
    """Show every fact of a device or a system with its source and status, and its levels.

    \b
        perfmodel hardware show h100
        perfmodel hardware show dgx-h100 --format json
    """
    shown.emit(render.facts(device))


@app.command("systems")
def systems_(shown: Shown) -> None:
    """List the systems: devices joined by links, one YAML file each.

    \b
    perfmodel hardware systems
    perfmodel hardware systems --format csv --output systems.csv
    """
    shown.emit(render.systems(systems.every()))


@app.command("new")
def new(
    file: Annotated[
        str, FieldOption(metavar="FILE", help="Spec file to write: my-gpu.yaml.", argument=True)
    ],
    like: Annotated[
        Device,
        FieldOption(
            metavar="DEVICE",
            help="Slug, alias or spec file of the device to copy.",
            read=load,
            complete=completing.devices,
        ),
    ],
    change: Annotated[
        list[str] | None,
        FieldOption(
            metavar="CHANGE",
            spellings=("--change", "-c"),
            help='Change a number and what follows from it, as in whatif: "L2 capacity x2", '
            '"HBM 12 TB/s", "SM 160"; repeats.',
        ),
    ] = None,
) -> None:
    """Write a complete spec to edit, copied from the most similar device.

    \b
        perfmodel hardware new my-gpu.yaml --like l40s
        perfmodel hardware new specs/rtx4090d.yaml --like rtx4090
        perfmodel hardware new h100x.yaml --like h100 -c "L2 capacity x2" -c "SM 160"

    Slug and name are those of the file. Every fact is marked as copied, until you replace its
    number, source and status. The file is valid at once, and gives the other device's predictions:
    perfmodel predict gemm -d ./my-gpu.yaml. An existing file is never overwritten.
    """
    path = Path(file)
    if path.suffix != ".yaml":
        raise OutputError(
            f"{file}: a spec's file ends in .yaml; write {path.stem or 'my-gpu'}.yaml"
        )
    if path.exists() or path.is_symlink():
        raise OutputError(f"{file}: the file exists already; choose another name, or remove it")
    spec, dropped = without_misfits(copied(_variant(like, change or ()), path.stem))
    text = spec.dump().replace(SCHEMA_LINE, schema_line(), 1)
    loads(text, file)
    write(iter([text]), file)
    for line in dropped:
        say(f"perfmodel: {line}")


def _variant(device: Device, texts: Sequence[str]) -> Device:
    """The device after changes in the words of `perfmodel whatif`."""
    if not texts:
        return device
    from perfmodel.algorithms import Matmul
    from perfmodel.analysis.quantities import Setting
    from perfmodel.analysis.whatif import parse_changes
    from perfmodel.timing.constants import default

    setting = Setting(Matmul(1, 1, 1), device, default())
    for change in parse_changes(texts):
        if change.quantity is None or change.quantity.is_launch:
            raise ProblemError(
                f"{quoted(change.text)} is no number of a spec; change one that hardware show lists"
            )
        setting = change.applied(setting)
    return setting.device


@app.command("validate")
def validate(
    files: Annotated[list[str], FieldOption(metavar="FILE...", help="Spec files.", argument=True)],
    warnings: Annotated[
        bool,
        FieldOption(help="Also print warnings, with which a spec is still usable."),
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
        raise click.exceptions.Exit(2)
    to_stdout(iter([f"{len(files)} {'spec is' if len(files) == 1 else 'specs are'} valid\n"]))


@dataclass(frozen=True)
class Pair:
    """Two devices to compare."""

    first: Annotated[Device, _spec_argument("A")]
    """Slug, alias or spec file (perfmodel hardware list)."""
    second: Annotated[Device, _spec_argument("B")]
    """Slug, alias or spec file (perfmodel hardware list)."""


@app.command("diff")
def diff(pair: Pair, shown: Shown) -> None:
    """Show the facts in which two devices differ, with the ratio B/A.

    \b
        perfmodel hardware diff a100 h100
        perfmodel hardware diff l40s ./my-gpu.yaml --format markdown
    """
    shown.emit(render.differences(pair.first, pair.second))


@app.command("schema")
def schema(
    system: Annotated[
        bool, FieldOption(help="Print the schema of a system's file in place of a device's.")
    ] = False,
) -> None:
    """Print the JSON Schema of a spec file, for editors.

    \b
    perfmodel hardware schema > hardware_spec.schema.json
    perfmodel hardware schema --system > system_spec.schema.json
    """
    from perfmodel.formats.generated import text

    to_stdout(iter([text("system" if system else "hardware")]))
