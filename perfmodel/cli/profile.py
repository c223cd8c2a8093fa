"""`perfmodel profile FILE`: a profile of a whole program, every kernel against the model."""

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
_MOST = 12  # lines of a table; the rest is counted
_ADVISED = 3


@app.command()
def profile(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="torch.profiler's trace, SQLite of nsys or rocprofv3, CSV of ncu or rocprofv3.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAME",
            help="Where the kernels ran.",
            autocompletion=completing.devices,
        ),
    ],
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="What ran, for kernels without shapes: a graph's name.",
            autocompletion=completing.graphs,
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option("--size", "-s", metavar="NAME=SIZE", help="A size of the graph; repeats."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type where the profile does not say it.",
            autocompletion=completing.types,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Show every line of the table.")] = False,
    format: Format = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The measured-run table to write."),
    ] = None,
) -> None:
    """Hold every kernel of a profile against the model: coverage, then where time is lost.

    A kernel's problem is known by the shapes that the profiler recorded, else by the order of a
    graph (--graph); else it is only named.

    \b
        perfmodel profile trace.json -d h100-sxm
        perfmodel profile report.sqlite -d h100-sxm --graph decoder-layer -s batch=1 -s seq=4k
        perfmodel profile kernel_trace.csv -d mi300x --all --output kernels.csv
    """
    wanted = chosen_format(format, None)
    if output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(output)
    from perfmodel.elements import element
    from perfmodel.evidence.profiled import formats, matching
    from perfmodel.hardware import load
    from perfmodel.validation.profile import judge

    machine = load(device)
    if dtype is not None:
        element(dtype)
    nodes = _nodes(graph, size, dtype) if graph is not None else []
    timeline = formats.read(file)
    matched = matching.grouped(timeline, nodes, dtype or "")
    found = judge(timeline, matched, machine)
    if output is not None:
        _write(found, output)
    emit(_report(found, whole=all_ or wanted != "table"), format, None)


def _nodes(graph: str, size: list[str] | None, dtype: str | None) -> list[Row]:
    """The problems of a graph in launch order."""
    from perfmodel.algorithms.problem import describe
    from perfmodel.cli.graph import sizes
    from perfmodel.graph import load

    declared = load(graph)
    made = declared.at(sizes(size, declared.sizes), dtype)
    found: list[Row] = []
    for node in made.nodes:
        row = {"op": node.problem.operator, **describe(node.problem, 0)}
        found += [row] * min(node.repeat, _REPEATS)
    return found


_REPEATS = 4096  # of one node: layers of a network repeat, and the order goes round


def _write(found: Judged, output: str) -> None:
    from perfmodel.evidence.records.records import tidy, write_table
    from perfmodel.validation.profile import rows

    known = [line.group for line in found.lines if line.group.row]
    write_table(tidy(rows(known, found.device)), output)
    say(f"wrote {output}: {len(known)} rows")


def _report(found: Judged, *, whole: bool) -> Report:
    lines = [_row(line) for line in found.lines]
    shown = lines if whole else lines[:_MOST]
    notes = [f"idle between launches: {micros(found.gaps_us)} (the host's)"]
    if found.timeline.tool == "Nsight Compute":
        notes = ["launches were replayed one by one: there is no idle time to see"]
    if len(lines) > len(shown):
        notes.append(f"{len(lines) - len(shown)} more lines (--all)")
    notes += [*_advice(found), *found.notes]
    guessed = sum(line.group.calls for line in found.lines if line.group.estimated)
    if guessed:
        notes.append(f"{guessed} calls are estimated by their bytes alone")
    notes += [f"not predicted: {said}" for said in _reasons(found)]
    title = f"{found.timeline.tool} on {found.device.slug}: {found.coverage()}"
    return Report("kernels", shown, COLUMNS, title=title, head=found.as_dict(), notes=notes)


def _advice(found: Judged) -> list[str]:
    """What would help the lines that lose most."""
    losing = [line for line in found.lines if (line.lost_us or 0) > 0]
    said = [
        f"{line.group.kind} {row['problem']}: {line.advice()}"
        for line in losing
        if line.advice() and (row := _row(line))
    ]
    return said[:_ADVISED]


def _reasons(found: Judged) -> list[str]:
    """Why problems that are known are not predicted, each once."""
    said = [line.reason for line in found.lines if line.reason and line.group.row]
    return list(dict.fromkeys(said))[:_ADVISED]


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
