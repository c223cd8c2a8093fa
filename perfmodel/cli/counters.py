"""`perfmodel counters import FILE`: hardware counters as measured runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, known
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.render import Report
from perfmodel.render.report import Column, binary, micros, text

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def _counters() -> None:
    """Read hardware counters of real runs and compare them with the model."""


@app.command("import")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV of ncu, nsys stats or rocprofv3, SQLite of nsys or rocprofv3, or a trace of "
            "torch.profiler. Several files are passes of one program.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAME",
            help="The device that the kernels ran on (perfmodel hardware list).",
            autocompletion=completing.devices,
        ),
    ],
    cases: Annotated[
        str | None,
        typer.Option("--cases", metavar="FILE", help="Table of the cases in launch order (.csv)."),
    ] = None,
    format: Format = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Measured-run table to write (.csv)."),
    ] = None,
) -> None:
    """Turn profiled launches into measured runs with the bytes of every memory level.

    Launches are named by a range (NVTX, roctx or record_function, see docs/counters.md) or by
    --cases, a table of cases in launch order whose column 'kernels' says how many launches each one
    takes (for sums over kernels, the column 'kernel' names them).

    \b
        perfmodel counters import ncu.csv --device h200-sxm --output counted.csv
        perfmodel counters import pmc_1/x.csv pmc_2/x.csv --device mi300x --output counted.csv
        perfmodel counters import trace.json --device h200-sxm
    """
    chosen_format(format, None)
    device = known.one("--device", device)
    if output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(output)
    from perfmodel.evidence.profiled.counters import import_counters, write

    rows, lines = import_counters(files, device=device, cases=cases)
    for line in lines:
        say(line)
    if output is not None:
        write(rows, output)
        say(f"wrote {output}: {len(rows)} rows")
        return
    columns = [
        text("op", "op"),
        text("dtype", "dtype"),
        text("implementation", "implementation"),
        _number("time", "measured_us", micros),
        _number("memory", "hbm_bytes_measured", binary),
        _number("L2", "l2_bytes_measured", binary),
        _number("shared", "shared_bytes_measured", binary),
        _number("tensor", "tensor_pipe_pct", lambda value: f"{value:.1f}%"),
        _number("XU", "xu_pipe_pct", lambda value: f"{value:.1f}%"),
        _number("FMA", "fma_pipe_pct", lambda value: f"{value:.1f}%"),
    ]
    emit(Report("counters", rows, columns, title=f"{len(rows)} counted cases"), format, None)


def _number(header: str, key: str, show: Callable[[Any], str]) -> Column:
    """A column of numbers that are kept as text."""
    return Column(header, lambda row: float(row[key]) if row[key] else None, show)
