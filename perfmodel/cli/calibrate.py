"""`perfmodel calibrate`: micro-benchmarks of this machine, written as a hardware spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli.build import command
from perfmodel.cli.measure import DEVICES, Device
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.cli.progress import status
from perfmodel.errors import OutputError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Report
from perfmodel.render.report import text

if TYPE_CHECKING:
    from perfmodel import hardware
    from perfmodel.evidence.measured.microbench import Readings


@dataclass(frozen=True)
class Asked:
    """What `calibrate` is asked for."""

    output: Annotated[str, FieldOption(None, "FILE", ("--output", "-o"))] = "my-machine.yaml"
    """Spec file to write (.yaml)."""
    device: Device = None
    """Device to measure; cuda includes ROCm [default: cuda if this machine has a GPU]."""
    quick: bool = False
    """Measure fewer points with shorter loops."""
    chart: Annotated[str | None, FieldOption(None, "PREFIX")] = None
    """Draw PREFIX-bandwidth.svg and PREFIX-latency.svg."""
    readings: Annotated[str | None, FieldOption(None, "FILE")] = None
    """Use saved readings (.json) in place of measuring."""
    save_readings: Annotated[str | None, FieldOption(None, "FILE")] = None
    """Save all readings (.json)."""
    format: Format = None
    """Output format."""


def calibrate(asked: Asked) -> None:
    """Measure this machine's rates and write them as a hardware spec.

    The spec is called after its file, with the machine's own name as an alias, so that
    PERFMODEL_HARDWARE_PATH=. lets `compare` find the device of measured runs.

    \b
        perfmodel calibrate --device cpu --quick --output my-machine.yaml --chart my-machine
        perfmodel predict gemm --device ./my-machine.yaml -m 1024 -n 1024 -k 1024 --dtype fp32
    """
    if asked.device is not None and asked.device not in DEVICES:
        raise UnknownName("choice for --device", asked.device, DEVICES)
    chosen_format(asked.format, None)
    _check_names(asked)
    from perfmodel.evidence.measured import microbench
    from perfmodel.evidence.measured.calibrate import calibrated

    if asked.readings is None:
        measurements = _measure(asked.device, asked.quick)
    else:
        measurements = microbench.read(asked.readings)
    if asked.save_readings is not None:  # first: judging readings may fail; they took a minute
        say(f"wrote {_write(asked.save_readings, measurements.dump())}")
    spec = calibrated(measurements, Path(asked.output).stem)
    paths = [_write(asked.output, spec.dump())]
    if asked.chart is not None:
        paths += _draw(measurements, asked.chart)
    emit(_report(measurements, spec), asked.format, None)
    for line in spec.notes:
        say(line)
    for path in paths:
        say(f"wrote {path}")


def _measure(device: str | None, quick: bool) -> Readings:
    """Readings of this machine, taken now."""
    from perfmodel.evidence.measured import microbench
    from perfmodel.evidence.measured.session import default_device

    with status("calibrating") as report:
        report("loading torch")
        return microbench.take(device or default_device(), quick=quick, report=report, say=say)


def _check_names(asked: Asked) -> None:
    """Check names and folders of outputs before anything is measured."""
    output, saved = asked.output, asked.save_readings
    if Path(output).suffix not in (".yaml", ".yml"):
        raise OutputError(f"{output}: a spec is written as .yaml; change the name")
    if saved is not None and Path(saved).suffix != ".json":
        raise OutputError(f"{saved}: readings are written as .json; change the name")
    for path in filter(None, (output, saved, asked.chart)):
        if not Path(path).parent.is_dir():
            raise OutputError(f"cannot write {path}: no folder {Path(path).parent}; make it first")


def _write(path: str, content: str) -> str:
    from perfmodel.evidence.records.replacing import replacing

    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")
    return path


def _draw(readings: Readings, prefix: str) -> list[str]:
    from perfmodel.render.chart import SUFFIXES, save
    from perfmodel.render.workingset import bandwidth_chart, latency_chart

    suffix = Path(prefix).suffix if Path(prefix).suffix in SUFFIXES else ".svg"
    stem = prefix.removesuffix(suffix)
    curves = {name: curve.points for name, curve in readings.curves.items()}
    caption = f"{readings.timestamp_utc[:10]}, {{}}"
    unit = "cores" if readings.kind == "cpu" else "units"
    paths = []
    for name, chart, sizes in (
        ("bandwidth", bandwidth_chart, [(n, total) for n, total, _ in readings.levels]),
        ("latency", latency_chart, [(n, size) for n, _, size in readings.levels]),
    ):
        curve = next(c for c in curves if (c in ("latency", "gather")) == (name == "latency"))
        method = caption.format(readings.curves[curve].method)
        path = f"{stem}-{name}{suffix}"
        save(chart(curves, sizes, f"{readings.name}, {readings.units} {unit}", method), path)
        paths.append(path)
    return paths


def _report(readings: Readings, spec: hardware.Device) -> Report:
    """The measured quantities, one a row."""
    rows: list[dict[str, Any]] = []
    for path, fact in _measured_facts(spec):
        rows.append({"quantity": path, "value": fact.text, "si": fact.si, "note": fact.note or ""})
    return Report(
        "calibration",
        rows,
        [
            text("quantity", "quantity"),
            text("value", "value"),
            text("how", "note", fold=20, rank=1),
        ],
        title=f"{spec.name} ({spec.slug})",
        head={"device": spec.slug, "measured_as": readings.slug, "kind": readings.kind},
    )


def _measured_facts(spec: hardware.Device) -> list[tuple[str, Any]]:
    from perfmodel.hardware.facts import walk

    return [
        (".".join(path), fact)
        for path, fact in walk(spec)
        if fact.status == "measured" and "calibrate" in fact.source
    ]


app = command(calibrate)
