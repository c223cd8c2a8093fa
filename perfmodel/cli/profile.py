"""`perfmodel profile FILE`: every kernel of a profiled program, compared with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.cli import completing
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.render import Report
from perfmodel.render.report import Column, integer, micros, text

if TYPE_CHECKING:
    from perfmodel.evidence.profiled.operations import Row
    from perfmodel.validation.profile import Judged, Line

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_MOST = 12  # lines of a table; the rest are only counted
_ADVISED = 3


@app.command()
def profile(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A trace of torch.profiler, SQLite of nsys or rocprofv3, or CSV of nsys stats, "
            "ncu or rocprofv3.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAME",
            help="Device that the kernels ran on (perfmodel hardware list).",
            autocompletion=completing.devices,
        ),
    ],
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Graph that ran, for kernels without recorded shapes (perfmodel list graphs).",
            autocompletion=completing.graphs,
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            "-s",
            metavar="NAME=SIZE",
            help="Sizes of the graph, with commas or repeated: batch=1,seq=4k.",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type of the data where the profile has none.",
            autocompletion=completing.types,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="NAME",
            help="System whose links collectives crossed (perfmodel list systems).",
            autocompletion=completing.systems,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Show every line of the table.")] = False,
    format: Format = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Measured-run table to write (.csv)."),
    ] = None,
) -> None:
    """Compare every kernel of a profile with the model: coverage, then where time is lost.

    A kernel's problem comes from the shapes that the profiler recorded, or from the order of a
    graph (--graph). Without either, only the kernel's name is shown.

    \b
        perfmodel profile trace.json -d h100-sxm
        perfmodel profile report.sqlite -d h100-sxm --graph decoder-layer -s batch=1 -s seq=4k
        perfmodel profile kernel_trace.csv -d mi300x --all --output kernels.csv
        perfmodel profile trace.json -d h100-sxm --system dgx-h100
    """
    form = chosen_format(format, None)
    if output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(output)
    from perfmodel.elements import element
    from perfmodel.evidence.profiled import formats, matching
    from perfmodel.evidence.profiled.timeline import check_host
    from perfmodel.hardware import load, systems
    from perfmodel.validation.profile import judge

    machine = load(device)
    links = systems.load(system) if system is not None else None
    if dtype is not None:
        element(dtype)
    nodes = _nodes(graph, size, dtype) if graph is not None else []
    timeline = formats.read(file)
    if timeline.on_host:
        check_host(file, machine)
    groups = matching.grouped(timeline, nodes, dtype or "")
    comparison = judge(timeline, groups, machine, links)
    if output is not None:
        _write(comparison, output)
    emit(_report(comparison, full=all_ or form != "table"), format, None)


def _nodes(graph: str, size: list[str] | None, dtype: str | None) -> list[Row]:
    """The problems of a graph in launch order."""
    from perfmodel.algorithms.problem import describe
    from perfmodel.cli.graph import sizes
    from perfmodel.graph import load

    declaration = load(graph)
    instance = declaration.at(sizes(size, declaration.sizes), dtype)
    rows: list[Row] = []
    for node in instance.nodes:
        row = {"op": node.problem.operator, **describe(node.problem, 0)}
        rows += [row] * min(node.repeat, _REPEATS)
    return rows


_REPEATS = 4096  # a network repeats its layers, so the order of one layer repeats


def _write(comparison: Judged, output: str) -> None:
    from perfmodel.evidence.records.records import tidy, write_table
    from perfmodel.validation.profile import is_tabled, rows

    groups = [line.group for line in comparison.lines if is_tabled(line.group)]
    write_table(tidy(rows(groups, comparison.device)), output)
    rest = sum(bool(line.group.row) for line in comparison.lines) - len(groups)
    note = f"; {rest} problems left out, which its columns do not state" if rest else ""
    say(f"wrote {output}: {len(groups)} rows{note}")


def _report(comparison: Judged, *, full: bool) -> Report:
    lines = [_row(line) for line in comparison.lines]
    top = lines if full else lines[:_MOST]
    notes = [f"idle between launches: {micros(comparison.gaps_us)} (the host's)"]
    if not comparison.timeline.clocked:
        ordered = comparison.timeline.ordered
        why = "launches were replayed one by one" if ordered else "sums have no times of launches"
        notes = [f"{why}: there is no idle time to see"]
    if len(lines) > len(top):
        notes.append(f"{len(lines) - len(top)} more lines (--all)")
    notes += [*_advice(comparison), *comparison.notes]
    calls = sum(line.group.calls for line in comparison.lines if line.group.estimated)
    if calls:
        notes.append(f"{calls} calls are estimated by their bytes alone")
    notes += [f"not predicted: {reason}" for reason in _reasons(comparison)]
    title = f"{comparison.timeline.tool} on {comparison.device.slug}: {comparison.coverage()}"
    return Report("kernels", top, COLUMNS, title=title, head=comparison.as_dict(), notes=notes)


def _advice(comparison: Judged) -> list[str]:
    """Suggestions for the lines that lose most time."""
    losses = [line for line in comparison.lines if (line.lost_us or 0) > 0]
    lines = [
        f"{line.group.kind} {row['problem']}: {line.advice()}"
        for line in losses
        if line.advice() and (row := _row(line))
    ]
    return lines[:_ADVISED]


def _reasons(comparison: Judged) -> list[str]:
    """Why known problems are not predicted, each reason once."""
    reasons = [line.reason for line in comparison.lines if line.reason and line.group.row]
    return list(dict.fromkeys(reasons))[:_ADVISED]


def _row(line: Line) -> dict[str, Any]:
    from perfmodel.validation.profile import problem_text

    group = line.group
    predicted = None if line.predicted_us is None else line.predicted_us * group.calls
    return {
        "operator": group.kind,
        "problem": problem_text(group),
        "kernel": group.kernel,
        "known_by": group.how,
        "calls": group.calls,
        "measured_us": group.total_ns / 1e3,
        "predicted_us": predicted,
        "lost_us": line.lost_us,
        "ratio": None if not predicted else group.total_ns / 1e3 / predicted,
        "limiter": line.limiter,
        "bytes": line.bytes,
        "advice": line.advice(),
    }


def _time(header: str, key: str, *, rank: int = 0) -> Column:
    return Column(header, lambda row: row.get(key), _signed, rank=rank)


def _signed(value: float) -> str:
    return micros(value) if value >= 0 else f"-{micros(-value)}"


def _ratio(row: Mapping[str, Any]) -> Any:
    return row.get("ratio")


COLUMNS = (
    text("operator", "operator"),
    text("problem", "problem", fold=20),
    integer("calls", "calls", rank=2),
    _time("measured", "measured_us"),
    _time("predicted", "predicted_us", rank=1),
    Column("x", _ratio, lambda value: f"{value:.2f}"),
    _time("lost", "lost_us"),
    text("limiter", "limiter", rank=3),
    text("by", "known_by", rank=4),
)
