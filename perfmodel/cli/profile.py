"""`perfmodel profile FILE`: every kernel of a profiled program, compared with the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from perfmodel.cli.arguments import Corrected, GraphSizes, OneDevice, SomeType, TableFile
from perfmodel.cli.build import command
from perfmodel.cli.networkoptions import OneSystem
from perfmodel.cli.output import Printed, say
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Report, micros

if TYPE_CHECKING:
    from perfmodel.profile.operations import Row
    from perfmodel.validation.profile import Judged

_MOST = 12  # lines of a table; the rest are only counted
_ADVISED = 3
_REPEATS = 4096  # a network repeats its layers, so the order of one layer repeats


@dataclass(frozen=True)
class Asked(Corrected):
    """What `profile` is asked for."""

    file: Annotated[str, FieldOption(None, "FILE", argument=True)]
    """A trace of torch.profiler, SQLite of nsys or rocprofv3, or CSV of nsys stats, ncu or
    rocprofv3."""
    device: OneDevice
    """Device that the kernels ran on (perfmodel hardware list)."""
    graph: Annotated[str | None, FieldOption(None, "GRAPH", names="perfmodel.graph:names")] = None
    """Graph that ran, for kernels without recorded shapes (perfmodel list graphs)."""
    size: GraphSizes = field(default_factory=dict)
    """Sizes of the graph, with commas or repeated: batch=1,seq=4k."""
    dtype: SomeType = None
    """Type of the data where the profile has none."""
    system: OneSystem = None
    """System whose links collectives crossed (perfmodel list systems)."""
    all: bool = False
    """Show every line of the table."""
    output: TableFile = None
    """Measured-run table to write (.csv)."""


def profile(asked: Asked, shown: Printed) -> None:
    """Compare every kernel of a profile with the model: coverage, then where time is lost.

    A kernel's problem comes from the shapes that the profiler recorded, or from the order of a
    graph (--graph). Without either, only the kernel's name is shown.

    \b
        perfmodel profile trace.json -d h100-sxm
        perfmodel profile report.sqlite -d h100-sxm --graph decoder-layer -s batch=1 -s seq=4k
        perfmodel profile kernel_trace.csv -d mi300x --all --output kernels.csv
        perfmodel profile trace.json -d h100-sxm --system dgx-h100
    """
    from perfmodel.elements import element
    from perfmodel.profile import formats, matching
    from perfmodel.profile.timeline import check_host
    from perfmodel.table.records import tidy, write_table
    from perfmodel.validation.profile import is_tabled, judge, rows

    if asked.dtype is not None:
        element(asked.dtype)
    nodes = _nodes(asked) if asked.graph is not None else []
    timeline = formats.read(asked.file)
    if timeline.on_host:
        check_host(asked.file, asked.device)
    groups = matching.grouped(timeline, nodes, asked.dtype or "")
    comparison = judge(timeline, groups, asked.device, asked.system)
    if asked.output is not None:
        tabled = [line.group for line in comparison.lines if is_tabled(line.group)]
        write_table(tidy(rows(tabled, comparison.device)), asked.output)
        rest = sum(bool(line.group.row) for line in comparison.lines) - len(tabled)
        note = f"; {rest} problems left out, which its columns do not state" if rest else ""
        say(f"wrote {asked.output}: {len(tabled)} rows{note}")
    shown.emit(_report(comparison, full=asked.all or shown.form != "table"))


def _nodes(asked: Asked) -> list[Row]:
    """The problems of a graph in launch order."""
    from perfmodel.algorithms.problem import describe
    from perfmodel.cli.graph import sizes
    from perfmodel.graph import load

    declaration = load(str(asked.graph))
    instance = declaration.at(sizes(asked.size, declaration.sizes), asked.dtype)
    return [
        {"op": node.problem.operator, **describe(node.problem, 0)}
        for node in instance.nodes
        for _ in range(min(node.repeat, _REPEATS))
    ]


def _report(comparison: Judged, *, full: bool) -> Report:
    """The lines that lose most time, and advice on them."""
    lines = comparison.lines
    top = lines if full else lines[:_MOST]
    notes = [f"idle between launches: {micros(comparison.gaps_us)} (the host's)"]
    if not comparison.timeline.clocked:
        ordered = comparison.timeline.ordered
        why = "launches were replayed one by one" if ordered else "sums have no times of launches"
        notes = [f"{why}: there is no idle time to see"]
    if len(lines) > len(top):
        notes.append(f"{len(lines) - len(top)} more lines (--all)")
    advice = [
        f"{line.operator} {line.problem}: {line.advice}"
        for line in lines
        if (line.lost_us or 0) > 0 and line.advice
    ]
    notes += [*advice[:_ADVISED], *comparison.notes]
    calls = sum(line.group.calls for line in lines if line.group.estimated)
    if calls:
        notes.append(f"{calls} calls are estimated by their bytes alone")
    reasons = dict.fromkeys(line.reason for line in lines if line.reason and line.group.row)
    notes += [f"not predicted: {reason}" for reason in [*reasons][:_ADVISED]]
    title = f"{comparison.timeline.tool} on {comparison.device.slug}: {comparison.coverage()}"
    return Report.of("kernels", top, title=title, head=comparison.as_dict(), notes=notes)


app = command(profile)
