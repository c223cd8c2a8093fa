"""`perfmodel map ALGORITHM`: fusion, loop nest and tiles for least time or least traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import click

from perfmodel.cli import declared
from perfmodel.cli.arguments import SomeDevices
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.drawing import Drawing
from perfmodel.cli.output import Shown, to_stdout
from perfmodel.cli.progress import status
from perfmodel.columns import columns_of
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.render.report import Report
from perfmodel.units import parse, seconds

if TYPE_CHECKING:
    from perfmodel.algorithms.declaration import Case
    from perfmodel.hardware import Device


@dataclass(frozen=True)
class Asked(declared.Asked):
    """What `map` is asked for."""

    device: SomeDevices = ()
    """Devices: a100,h100 or repeated (perfmodel hardware list)."""
    objective: Literal["time", "bytes"] = "time"
    """What to minimise; bytes are those into a memory level."""
    level: Literal["shared", "L2"] = "shared"
    """With --objective bytes, the level."""
    capacity: Annotated[
        float | None, FieldOption(None, "SIZE", read=partial(parse, dimension="capacity"))
    ] = None
    """With --objective bytes, a capacity in place of a level: "25 MiB"."""
    trace: bool = False
    """Show the candidates that each kernel's search considered."""


Slope = Annotated[
    Drawing,
    {"chart": "Chart of least traffic against capacity (.svg, .pdf, .png); for one device."},
]


def map_(context: click.Context, asked: Asked, shown: Shown, drawing: Slope) -> None:
    """Search fusions, loop nests and tiles of an algorithm for the best on a device.

    \b
    perfmodel map attention --device h100-sxm --seq 8192 --trace
    perfmodel map mlp --objective bytes --capacity "25 MiB"
    perfmodel map attention --device h100-sxm --chart slope.svg
    """
    if asked.algorithm is None:
        to_stdout(iter([declared.listing()]))
        return
    case = declared.case(asked.algorithm, context.args, asked.dtype)
    devices: list[Device | None] = [*asked.device] or [None]
    if len(devices) > 1 and (shown.form in ("json", "csv") or drawing.chart is not None):
        raise ProblemError("a chart, JSON and CSV take one device; run the command for each")
    if drawing.chart is not None:
        from perfmodel.napkin.skislope import ski_slopes
        from perfmodel.render.problem import spoken
        from perfmodel.render.skislope import figure

        title = spoken(case.algorithm.name, {"dtype": case.dtype, **case.parameters})
        slopes = ski_slopes(case, devices[0])
        drawing.draw(lambda page: figure(slopes, title=title, page=page))
    sizes = " ".join(f"{name}={value}" for name, value in case.parameters.items())
    title = f"{case.algorithm.name}: {sizes} dtype={case.dtype}"
    with status("searching schedules"):
        least = _fastest if asked.objective == "time" else _least
        shown.emit(*(least(case, device, asked, title) for device in devices))


def _fastest(case: Case, device: Device | None, asked: Asked, title: str) -> Report:
    """The fastest schedule, and which schedule libraries have: that one, or a faster one."""
    from perfmodel.napkin import trace
    from perfmodel.napkin.mapper import Mapped
    from perfmodel.operators.declared import fastest
    from perfmodel.timing.constants import default

    if device is None:
        raise ProblemError("the fastest schedule needs a device: --device NAME")
    best = fastest(case, device, default())
    names = device.level_names
    columns = [
        replace(each, header=names["hbm"]) if each.key == "hbm_bytes"
        else replace(each, show=lambda name: names.get(name, name)) if each.key == "limiter"
        else each
        for each in columns_of(Mapped)
    ]  # fmt: skip
    notes = list(trace.sentences(best.found, full=asked.trace))
    if best.library is None:
        notes.append("no library's kernel of this algorithm is known")
    else:
        tile = " ".join(f"{axis}={size[0]:g}" for axis, size in best.library.tile.items())
        kernel = f"the library kernel {best.library.implementation} ({tile})"
        time, own = seconds(best.library_seconds), seconds(best.found.seconds)
        notes.append(
            f"fastest: {kernel}, {time}; that schedule takes {own}"
            if best.of_library
            else f"{kernel} takes {time}; no library has that schedule"
        )
    head = {"device": device.slug, "algorithm": case.algorithm.name, "time_us": best.seconds * 1e6}
    head["trace"] = notes
    title = f"{title} on {device.slug}"
    return Report.of("kernels", best.found.kernels, columns, title=title, head=head, notes=notes)


def _least(case: Case, device: Device | None, asked: Asked, title: str) -> Report:
    """The schedule that moves the fewest bytes into a memory of that capacity."""
    from perfmodel.napkin import trace

    capacity = asked.capacity
    if capacity is None:
        if device is None:
            raise ProblemError('least bytes need a capacity ("25 MiB") or a device with its levels')
        shared, l2 = device.shared_max_per_block_bytes, device.l2_capacity_bytes
        capacity = shared if asked.level == "shared" else l2
        if capacity is None:
            raise ProblemError(
                f"{device.slug} states no capacity of its {asked.level}; give --capacity"
            )
    plan = trace.least_bytes(case, float(capacity))
    notes = list(trace.least_sentences(plan))
    head = {
        "algorithm": case.algorithm.name,
        "capacity_bytes": float(capacity),
        "moved_bytes": plan.moved_bytes,
        "fused_over_unfused": plan.ratio,
        "trace": notes,
    }
    return Report.of("kernels", plan.choices, title=title, head=head, notes=notes)


app = command(map_, settings=PASS_ON)
