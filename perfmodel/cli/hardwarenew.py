"""`perfmodel hardware new`: a spec to start from, copied from another device and changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from perfmodel.cli import completing
from perfmodel.cli.output import say, write
from perfmodel.errors import OutputError, ProblemError
from perfmodel.hardware import Device, load, loads
from perfmodel.hardware.copying import like as copied
from perfmodel.hardware.copying import without_misfits
from perfmodel.hardware.writer import SCHEMA_LINE, schema_line
from perfmodel.plaintext import quoted


def new(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Spec file to write: my-gpu.yaml.")],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="DEVICE",
            help="Slug, alias or spec file of the device to copy.",
            autocompletion=completing.devices,
        ),
    ],
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            "-c",
            metavar="CHANGE",
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
    spec, dropped = without_misfits(copied(_variant(load(like), change or ()), path.stem))
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
