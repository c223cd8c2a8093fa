"""`perfmodel profile FILE`: every kernel of a profiled program, compared with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.cli import completing
from perfmodel.cli.arguments import Learned, NoLearned, OneDevice
from perfmodel.cli.build import command
from perfmodel.cli.output import Format, chosen_format, emit, say
from perfmodel.fieldoption import FieldOption
from perfmodel.render import Report
from perfmodel.render.report import Column, integer, micros, text

if TYPE_CHECKING:
    from perfmodel.evidence.profiled.operations import Row
    from perfmodel.validation.profile import Judged, Line

_MOST = 12  # lines of a table; the rest are only counted
_ADVISED = 3


@dataclass(frozen=True)
class Asked:
    """What `profile` is asked for."""

    file: Annotated[str, FieldOption(None, "FILE", argument=True)]
    """A trace of torch.profiler, SQLite of nsys or rocprofv3, or CSV of nsys stats, ncu or
    rocprofv3."""
    device: OneDevice
    """Device that the kernels ran on (perfmodel hardware list)."""
    graph: Annotated[str | None, FieldOption(None, "GRAPH", complete=completing.graphs)] = None
    """Graph that ran, for kernels without recorded shapes (perfmodel list graphs)."""
    size: Annotated[list[str] | None, FieldOption(None, "NAME=SIZE", ("--size", "-s"))] = None
    """Sizes of the graph, with commas or repeated: batch=1,seq=4k."""
    dtype: Annotated[str | None, FieldOption(None, "TYPE", complete=completing.types)] = None
    """Type of the data where the profile has none."""
    system: Annotated[str | None, FieldOption(None, "NAME", complete=completing.systems)] = None
    """System whose links collectives crossed (perfmodel list systems)."""
    all: bool = False
    """Show every line of the table."""
    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""
    format: Format = None
    """Output format."""
    output: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o"))] = None
    """Measured-run table to write (.csv)."""


def profile(asked: Asked) -> None:
    """Compare every kernel of a profile with the model: coverage, then where time is lost.

    A kernel's problem comes from the shapes that the profiler recorded, or from the order of a
    graph (--graph). Without either, only the kernel's name is shown.

    \b
        perfmodel profile trace.json -d h100-sxm
        perfmodel profile report.sqlite -d h100-sxm --graph decoder-layer -s batch=1 -s seq=4k
        perfmodel profile kernel_trace.csv -d mi300x --all --output kernels.csv
        perfmodel profile trace.json -d h100-sxm --system dgx-h100
    """
    form = chosen_format(asked.format, None)
    if asked.output is not None:
        from perfmodel.evidence.records.records import table_suffix

        table_suffix(asked.output)
    from perfmodel.elements import element
    from perfmodel.evidence.profiled import formats, matching
    from perfmodel.evidence.profiled.timeline import check_host
    from perfmodel.hardware import load, systems
    from perfmodel.validation.profile import judge

    machine = load(asked.device)
    links = systems.load(asked.system) if asked.system is not None else None
    if asked.dtype is not None:
        element(asked.dtype)
    nodes = _nodes(asked.graph, asked.size, asked.dtype) if asked.graph is not None else []
    timeline = formats.read(asked.file)
    if timeline.on_host:
        check_host(asked.file, machine)
    groups = matching.grouped(timeline, nodes, asked.dtype or "")
    comparison = judge(timeline, groups, machine, links)
    if asked.output is not None:
        _write(comparison, asked.output)
    emit(_report(comparison, full=asked.all or form != "table"), asked.format, None)


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


app = command(profile)
