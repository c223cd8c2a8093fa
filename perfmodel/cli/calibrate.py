"""`perfmodel calibrate`: micro-benchmarks of this machine, written as a hardware spec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli.arguments import CHART, written
from perfmodel.cli.build import command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.measure import Machine
from perfmodel.cli.output import Printed, say, write
from perfmodel.cli.progress import status
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Report
from perfmodel.render.report import text

if TYPE_CHECKING:
    from perfmodel import hardware
    from perfmodel.measured.microbench import Readings


@dataclass(frozen=True)
class Asked:
    """What `calibrate` is asked for."""

    output: Annotated[
        str,
        FieldOption(None, "FILE", ("--output", "-o"), read=partial(written, (".yaml", ".yml"))),
    ] = "my-machine.yaml"
    """Spec file to write (.yaml)."""
    device: Machine = None
    """Device to measure; cuda includes ROCm [default: cuda if this machine has a GPU]."""
    quick: bool = False
    """Measure fewer points with shorter loops."""
    readings: Annotated[str | None, FieldOption(None, "FILE")] = None
    """Use saved readings (.json) in place of measuring."""
    save_readings: Annotated[
        str | None, FieldOption(None, "FILE", read=partial(written, (".json",)))
    ] = None
    """Save all readings (.json)."""


@dataclass(frozen=True)
class Curves(Drawing):
    """Two charts, called after a prefix."""

    chart: Annotated[str | None, replace(CHART, metavar="PREFIX", read=partial(written, ("",)))] = (
        None
    )
    """Draw PREFIX-bandwidth.svg and PREFIX-latency.svg."""


def calibrate(asked: Asked, drawing: Curves, shown: Printed) -> None:
    """Measure this machine's rates and write them as a hardware spec.

    The spec is called after its file, with the machine's own name as an alias, so that
    PERFMODEL_HARDWARE_PATH=. lets `compare` find the device of measured runs.

    \b
        perfmodel calibrate --device cpu --quick --output my-machine.yaml --chart my-machine
        perfmodel predict gemm --device ./my-machine.yaml -m 1024 -n 1024 -k 1024 --dtype fp32
    """
    from perfmodel.measured import microbench
    from perfmodel.measured.calibrate import calibrated
    from perfmodel.measured.session import default_device

    if asked.readings is not None:
        readings = microbench.read(asked.readings)
    else:
        with status("calibrating") as tell:
            tell("loading torch")
            device = asked.device or default_device()
            readings = microbench.take(device, quick=asked.quick, report=tell, say=say)
    if asked.save_readings is not None:  # first: judging readings may fail; they took a minute
        write(iter([readings.dump()]), asked.save_readings)
    spec = calibrated(readings, Path(asked.output).stem)
    write(iter([spec.dump()]), asked.output)
    shown.emit(_report(readings, spec))
    for line in spec.notes:
        say(line)
    if drawing.chart is not None:
        _draw(readings, drawing, drawing.chart)


def _draw(readings: Readings, drawing: Curves, prefix: str) -> None:
    """Charts of bandwidth and latency by working set."""
    from perfmodel.render.chart import SUFFIXES
    from perfmodel.render.workingset import CHARTS, curve_chart

    suffix = Path(prefix).suffix if Path(prefix).suffix in SUFFIXES else ".svg"
    curves = {name: curve.points for name, curve in readings.curves.items()}
    title = f"{readings.name}, {readings.units} {'cores' if readings.kind == 'cpu' else 'units'}"
    for what, (_, known) in CHARTS.items():
        sizes = [(n, total if what == "bandwidth" else one) for n, total, one in readings.levels]
        curve = next(name for name in curves if name in known)
        method = f"{readings.timestamp_utc[:10]}, {readings.curves[curve].method}"
        path = f"{prefix.removesuffix(suffix)}-{what}{suffix}"
        drawing.save(curve_chart(what, curves, sizes, title, method, drawing.page), path)


def _report(readings: Readings, spec: hardware.Device) -> Report:
    """The measured quantities, one a row."""
    from perfmodel.hardware.facts import walk

    facts: list[tuple[tuple[str, ...], Any]] = list(walk(spec))
    rows = [
        {"quantity": ".".join(path), "value": fact.text, "si": fact.si, "note": fact.note or ""}
        for path, fact in facts
        if fact.status == "measured" and "calibrate" in fact.source
    ]
    columns = [text("quantity", "quantity"), text("value", "value"),
               text("how", "note", fold=20, rank=1)]  # fmt: skip
    head = {"device": spec.slug, "measured_as": readings.slug, "kind": readings.kind}
    return Report("calibration", rows, columns, f"{spec.name} ({spec.slug})", head)


app = command(calibrate)
