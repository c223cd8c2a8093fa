"""`perfmodel counters import FILE`: hardware counters as measured runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from perfmodel.cli.arguments import OneDevice, TableFile
from perfmodel.cli.build import Group
from perfmodel.cli.output import Printed, say
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Column, Report, binary, micros, text

app = Group(help="Read hardware counters of real runs and compare them with the model.")


@dataclass(frozen=True)
class Asked:
    """What `counters import` is asked for."""

    files: Annotated[list[str], FieldOption(None, "FILE...", argument=True)]
    """CSV of ncu, nsys stats or rocprofv3, SQLite of nsys or rocprofv3, or a trace of
    torch.profiler. Several files are passes of one program."""
    device: OneDevice
    """The device that the kernels ran on (perfmodel hardware list)."""
    cases: Annotated[str | None, FieldOption(None, "FILE")] = None
    """Table of the cases in launch order (.csv)."""
    output: TableFile = None
    """Measured-run table to write (.csv)."""


@app.command("import")
def import_(asked: Asked, shown: Printed) -> None:
    """Turn profiled launches into measured runs with the bytes of every memory level.

    Launches are named by a range (NVTX, roctx or record_function, see docs/counters.md) or by
    --cases, a table of cases in launch order whose column 'kernels' says how many launches each one
    takes (for sums over kernels, the column 'kernel' names them).

    \b
        perfmodel counters import ncu.csv --device h200-sxm --output counted.csv
        perfmodel counters import pmc_1/x.csv pmc_2/x.csv --device mi300x --output counted.csv
        perfmodel counters import trace.json --device h200-sxm
    """
    from perfmodel.measured.counters import import_counters, write

    rows, lines = import_counters(asked.files, device=asked.device.slug, cases=asked.cases)
    for line in lines:
        say(line)
    if asked.output is not None:
        write(rows, asked.output)
        say(f"wrote {asked.output}: {len(rows)} rows")
    else:
        shown.emit(Report("counters", rows, _COLUMNS, title=f"{len(rows)} counted cases"))


def _number(header: str, key: str, show: Callable[[Any], str]) -> Column:
    """A column of numbers that are kept as text."""
    return Column(header, lambda row: float(row[key]) if row[key] else None, show)


_COLUMNS = [
    *(text(name, name) for name in ("op", "dtype", "implementation")),
    _number("time", "measured_us", micros),
    _number("memory", "hbm_bytes_measured", binary),
    _number("L2", "l2_bytes_measured", binary),
    _number("shared", "shared_bytes_measured", binary),
    *(
        _number(header, f"{header.lower()}_pipe_pct", "{:.1f}%".format)
        for header in ("tensor", "XU", "FMA")
    ),
]
