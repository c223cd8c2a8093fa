"""`perfmodel hardware list | show | systems | new | validate | diff | schema`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from perfmodel.cli import spellings
from perfmodel.cli.arguments import OneDevice, written
from perfmodel.cli.build import Group
from perfmodel.cli.output import say, to_stdout, write
from perfmodel.cli.validate import app as validate
from perfmodel.errors import OutputError, ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, System, load, loads, specs, systems
from perfmodel.hardware.copying import like as copied
from perfmodel.hardware.copying import without_misfits
from perfmodel.hardware.writer import SCHEMA_LINE
from perfmodel.plaintext import quoted
from perfmodel.render import Report
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
_DEVICE = replace(OneDevice.__metadata__[0], spellings=(), argument=True)  # type: ignore[attr-defined]


def _vendors() -> Iterable[str]:
    return dict.fromkeys(device.vendor.lower() for device in specs())


@app.command("list")
def list_(
    vendor: Annotated[
        str | None,
        FieldOption(
            metavar="NAMES",
            help="Only devices of these vendors, with commas: amd,intel.",
            names=_vendors,
        ),
    ] = None,
) -> Report:
    """List the devices that specs describe.

    \b
        perfmodel hardware list --vendor amd,intel
        perfmodel hardware list --format csv --output devices.csv
    """
    devices, names = list(specs()), [name.lower() for name in spellings.names(vendor)]
    for name in names:
        spellings.named("vendor", name, _vendors())
    return render.devices([item for item in devices if not names or item.vendor.lower() in names])


def _spec(name: str) -> Device | System:
    """The device of that name, else the system. Raises `UnknownName` with names of devices."""
    return systems.load(name) if systems.is_named(name) else load(name)


@app.command("show")
def show(
    device: Annotated[
        Any,  # a Device or a System
        replace(_DEVICE, read=_spec, help="Slug, alias or spec file of a device or system."),
    ],
) -> Report:
    """Show every fact of a device or a system with its source and status, and its levels.

    \b
        perfmodel hardware show h100
        perfmodel hardware show dgx-h100 --format json
    """
    return render.facts(device)


@app.command("systems")
def systems_() -> Report:
    """List the systems: devices joined by links, one YAML file each.

    \b
    perfmodel hardware systems
    perfmodel hardware systems --format csv --output systems.csv
    """
    return render.systems(systems.every())


@dataclass(frozen=True)
class New:
    """A spec to write."""

    file: Annotated[
        str, FieldOption(None, "FILE", argument=True, read=partial(written, (".yaml",)))
    ]
    """Spec file to write: my-gpu.yaml."""
    like: Annotated[Device, replace(_DEVICE, argument=False, metavar="DEVICE")]
    """Slug, alias or spec file of the device to copy."""
    change: Annotated[list[str] | None, FieldOption(None, "CHANGE", ("--change", "-c"))] = None
    """Change a number and what follows from it, as in whatif: "L2 capacity x2", "HBM 12 TB/s", "SM
    160"; repeats."""


@app.command("new")
def new(spec: New) -> None:
    """Write a complete spec to edit, copied from the most similar device.

    \b
        perfmodel hardware new my-gpu.yaml --like l40s
        perfmodel hardware new specs/rtx4090d.yaml --like rtx4090
        perfmodel hardware new h100x.yaml --like h100 -c "L2 capacity x2" -c "SM 160"

    Slug and name are those of the file. Every fact is marked as copied, until you replace its
    number, source and status. The file is valid at once, and gives the other device's predictions:
    perfmodel predict gemm -d ./my-gpu.yaml. An existing file is never overwritten.
    """
    path, device = Path(spec.file), spec.like
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path}: the file exists already; choose another name, or remove it")
    if spec.change:
        from perfmodel.algorithms import Matmul
        from perfmodel.analysis.quantities import Setting
        from perfmodel.analysis.whatif import parse_changes
        from perfmodel.timing.constants import default

        setting = Setting(Matmul(1, 1, 1), device, default())
        for change in parse_changes(spec.change):
            if change.quantity is None or change.quantity.is_launch:
                raise ProblemError(
                    f"{quoted(change.text)} is no number of a spec; change one that hardware show "
                    "lists"
                )
            setting = change.applied(setting)
        device = setting.device
    copy, dropped = without_misfits(copied(device, path.stem))
    text = copy.dump().replace(SCHEMA_LINE, _schema_line(), 1)
    loads(text, spec.file)
    write(iter([text]), spec.file)
    for line in dropped:
        say(f"perfmodel: {line}")


def _schema_line() -> str:
    """The comment that names the schema to an editor, for a spec in any folder."""
    from perfmodel.formats.catalogue import cached

    try:
        return f"# yaml-language-server: $schema={cached('hardware')}"
    except OSError:  # no home, or a full disk: the spec is as good without
        return "# perfmodel schema hardware writes the JSON Schema for an editor."


app.commands["validate"] = validate


@dataclass(frozen=True)
class Pair:
    """Two devices to compare."""

    first: Annotated[Device, replace(_DEVICE, metavar="A")]
    """Slug, alias or spec file (perfmodel hardware list)."""
    second: Annotated[Device, replace(_DEVICE, metavar="B")]
    """Slug, alias or spec file (perfmodel hardware list)."""


@app.command("diff")
def diff(pair: Pair) -> Report:
    """Show the facts in which two devices differ, with the ratio B/A.

    \b
        perfmodel hardware diff a100 h100
        perfmodel hardware diff l40s ./my-gpu.yaml --format markdown
    """
    return render.differences(pair.first, pair.second)


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
    from perfmodel.formats import text

    to_stdout(iter([text("system" if system else "hardware")]))
