"""Options and arguments that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from perfmodel.cli import known, ranges, spellings
from perfmodel.errors import OutputError
from perfmodel.fieldoption import FieldOption
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator

KERNEL = "Kernel"
"""Heading of the options of a kernel."""
_DEVICES = FieldOption(
    metavar="NAMES",
    spellings=("--device", "--gpu", "-d"),
    help="Devices: slugs, aliases or spec files, as a100,h100 or repeated (perfmodel hardware"
    " list).",
    names="perfmodel.hardware:names",
    read=known.devices,
    repeats=True,
)
Devices = Annotated[Sequence[Device], _DEVICES]
SomeDevices = Annotated[Sequence[Device], replace(_DEVICES, help="")]
"""Devices, or none; the docstring of its field says of what."""
Machines = Annotated[
    Sequence[Device], replace(_DEVICES, help="", read=partial(known.devices, repeats=True))
]
"""As `SomeDevices`, where one that is named twice may be meant twice (`--zip`)."""
OneDevice = Annotated[Device, replace(_DEVICES, metavar="NAME", help="", read=load, repeats=False,
                                      single=True)]  # fmt: skip
"""A device; the docstring of its field says of what."""
Host = Annotated[Device | None, FieldOption(None, "NAME", read=load, names=_DEVICES.names)]
"""A CPU, or none; the docstring of its field says of what."""
Size = Annotated[int, FieldOption(single=True)]
Sizes = Annotated[ranges.Values, FieldOption(metavar="SIZES")]
"""A size, list or range."""
ONE = ranges.read("1", "")
"""The size 1."""
TypeName = Annotated[str, FieldOption(metavar="TYPE", names="perfmodel.algorithms.matmul:types")]
SomeType = Annotated[str | None, FieldOption(None, "TYPE", names=TypeName.__metadata__[0].names)]
"""A type, or none."""
GraphSizes = Annotated[
    Mapping[str, str], FieldOption(None, "NAME=SIZE", ("--size", "-s"), example="batch=4")
]
Harness = Annotated[
    str,
    FieldOption(
        KERNEL,
        "NAME",
        help="Benchmark harness whose overhead is included: kernel (none), paper, profiler, "
        "do_bench, cuda_graph, cuda_events_eager or wall_clock.",
        read=known.harness,
        single=True,
        names="perfmodel.timing.runs:harnesses",
    ),
]


def written(suffixes: Sequence[str], path: str) -> str:
    """The name of a file to write. Raises `OutputError` for one without any of the suffixes, or in
    no folder: before any work is done."""
    from perfmodel.replacing import check_target

    if path != "-":
        if not path.lower().endswith(tuple(suffixes)):
            names = " or ".join(suffixes)
            raise OutputError(f"{path}: this is written as {names}; change the name")
        check_target(Path(path))
    return path


@dataclass(frozen=True, kw_only=True)
class Corrected:
    """What corrects the predictions of a command, from when it is read on."""

    learned: Annotated[str | None, FieldOption(KERNEL, "FILE")] = None
    """Correct the model by what perfmodel learn wrote, where it learned of such runs."""
    no_learned: Annotated[bool, FieldOption(KERNEL)] = False
    """Predict by the model alone, without what published runs teach (docs/learn.md)."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for both, and `PerfmodelError` for a file that is none."""
        from perfmodel.learned.active import corrected_by

        if self.learned and self.no_learned:
            raise click.UsageError("--learned and --no-learned exclude each other; drop one")
        if self.learned or self.no_learned:
            click.get_current_context().with_resource(corrected_by(self.learned))


def _chart(path: str) -> str:
    from perfmodel.render.chart import chart_suffix

    chart_suffix(path)
    return path


def _table(path: str) -> str:
    from perfmodel.table.records import table_suffix

    table_suffix(path)
    return path


TableFile = Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o"), read=_table)]
"""A table to write; the docstring of its field says of what."""
CHART = FieldOption("Chart", "FILE", ("--chart",), read=_chart)
"""The file of a chart."""


@dataclass(frozen=True)
class Kernels(Corrected):
    """Kernels on devices: which of a library, and how devices share one."""

    device: Devices
    """Devices: slugs, aliases or spec files, with commas or repeated."""
    schedule: Annotated[str, FieldOption(KERNEL, "NAMES")] = "auto"
    """Schedules, with commas: {schedules} (perfmodel list schedules)."""
    implementation: Annotated[str | None, FieldOption(KERNEL, "NAMES")] = None
    """Library kernels, with commas: {implementations} (perfmodel list implementations)."""
    mesh: Annotated[
        Mapping[str, tuple[int, str]],
        FieldOption(KERNEL, "AXIS=RANKS@LINK", read=known.mesh, example="k=2@nvlink"),
    ] = field(default_factory=dict)
    """Split an axis over devices joined by a link: k=2@nvlink, heads=8@peer; repeats, outermost
    first."""
    stored: Annotated[Mapping[str, str], FieldOption(KERNEL, "TENSOR=AXIS", example="C=n")] = field(
        default_factory=dict
    )
    """With --mesh: the axis along which a tensor is sharded, or whole: C=n, kv=whole; repeats."""

    def schedules(self, operator: Operator) -> tuple[str, ...]:
        """The schedules. Raises `UnknownName` for one that the operator does not have."""
        kind = f"schedule of {operator.name}"
        texts = spellings.names(self.schedule)
        return tuple(spellings.named(kind, name, operator.schedules) for name in texts)

    def implementations(self, operator: Operator) -> tuple[str | None, ...]:
        """The library kernels, or None for the library's choice. Raises as `known`."""
        texts = spellings.names(self.implementation)
        return tuple(known.implementation(operator, name) for name in texts) or (None,)

    def request(self) -> dict[str, Any]:
        """Arguments of `predict_arrays` besides schedule and implementation."""
        return {"mesh": self.mesh, "stored": self.stored}


@dataclass(frozen=True)
class TimedKernels(Kernels):
    """Kernels as a benchmark times them, with operands that may lie elsewhere."""

    harness: Harness = "kernel"
    """Benchmark harness whose overhead is included."""
    place: Annotated[Mapping[str, str], FieldOption(KERNEL, "OPERAND=LEVEL", example="kv=host")] = (
        field(default_factory=dict)
    )
    """Memory that holds an operand: kv=host, weights=peer; levels are host, peer and network;
    repeats."""

    def request(self) -> dict[str, Any]:
        """Arguments of `predict_arrays` besides schedule and implementation."""
        return {**super().request(), "harness": self.harness, "place": self.place}


@dataclass(frozen=True)
class TimedKernel(TimedKernels):
    """As `TimedKernels`, of one implementation."""

    implementation: Annotated[str | None, FieldOption(KERNEL, "NAME", single=True)] = None
    """Library kernel: {implementations} (perfmodel list implementations)."""
