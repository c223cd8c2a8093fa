"""Options and arguments that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import click

from perfmodel.cli import completing, known, ranges
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator

KERNEL = "Kernel"
"""Heading of the options of a kernel."""

_DEVICES = FieldOption(
    metavar="NAMES",
    spellings=("--device", "--gpu", "-d"),
    help="Devices: slugs, aliases or spec files, as a100,h100 or repeated (perfmodel hardware"
    " list).",
    complete=completing.devices,
)
Devices = Annotated[list[str], _DEVICES]
DeviceSpecs = Annotated[Sequence[Device], replace(_DEVICES, read=known.devices, repeats=True)]
DeviceSpec = Annotated[
    Device | None, FieldOption(metavar="NAME", read=load, complete=completing.devices)
]
Size = Annotated[int, FieldOption(single=True)]
Sizes = Annotated[ranges.Values, FieldOption(metavar="SIZES")]
"""A size, list or range."""
ONE = ranges.read("1", "")
"""The size 1."""
TypeName = Annotated[str, FieldOption(metavar="TYPE", complete=completing.types)]
Harness = Annotated[
    str,
    FieldOption(
        KERNEL,
        "NAME",
        help="Benchmark harness whose overhead is included: kernel (none), paper, profiler, "
        "do_bench, cuda_graph, cuda_events_eager or wall_clock.",
        read=known.harness,
        complete=completing.harnesses,
    ),
]
_DEVICE = ("--device", "--gpu", "-d")
OneDevice = Annotated[str, FieldOption(None, "NAME", _DEVICE, complete=completing.devices)]
"""A device; the docstring of its field says of what."""
SomeDevices = Annotated[
    list[str] | None, FieldOption(None, "NAMES", _DEVICE, complete=completing.devices)
]
"""Devices, or none; the docstring of its field says of what."""


def _use_learned(path: str) -> str:
    """Corrects all predictions of the command. Raises `PerfmodelError` for a file that is none."""
    from perfmodel.learned.active import corrected_by

    click.get_current_context().with_resource(corrected_by(path))
    return path


Learned = Annotated[
    str | None,
    FieldOption(
        KERNEL,
        "FILE",
        ("--learned",),
        help="Correct the model by what perfmodel learn wrote, where it learned of such runs.",
        read=_use_learned,
    ),
]


def _drop_learned(is_dropped: bool) -> bool:
    """With the flag, all predictions of the command are the model's alone."""
    from perfmodel.learned.active import corrected_by

    if is_dropped:
        click.get_current_context().with_resource(corrected_by(None))
    return is_dropped


NoLearned = Annotated[
    bool,
    FieldOption(
        KERNEL,
        help="Predict by the model alone, without what published runs teach (docs/learn.md).",
        read=_drop_learned,
    ),
]
Chart = Annotated[str | None, FieldOption("Chart", "FILE", ("--chart",))]
"""The file of a chart; the docstring of its field says of what."""


@dataclass(frozen=True)
class Kernels:
    """Kernels on devices: which of a library, and how devices share one."""

    device: Devices
    """Devices: slugs, aliases or spec files, with commas or repeated."""
    schedule: Annotated[str, FieldOption(KERNEL, "NAMES", complete=completing.schedules)] = "auto"
    """Schedules, with commas: {schedules} (perfmodel list schedules)."""
    implementation: Annotated[
        str | None, FieldOption(KERNEL, "NAMES", complete=completing.implementations)
    ] = None
    """Library kernels, with commas: {implementations} (perfmodel list implementations)."""
    mesh: Annotated[
        Mapping[str, tuple[int, str]],
        FieldOption(KERNEL, "AXIS=RANKS@LINK", read=known.mesh, repeats=True),
    ] = field(default_factory=dict)
    """Split an axis over devices joined by a link: k=2@nvlink, heads=8@peer; repeats, outermost
    first."""
    stored: Annotated[
        Mapping[str, str], FieldOption(KERNEL, "TENSOR=AXIS", read=known.storing, repeats=True)
    ] = field(default_factory=dict)
    """With --mesh: the axis along which a tensor is sharded, or whole: C=n, kv=whole; repeats."""
    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""

    def devices(self) -> list[Device]:
        """The devices. Raises as `known.devices`."""
        return known.devices(self.device)

    def schedules(self, operator: Operator) -> tuple[str, ...]:
        """The schedules. Raises `UnknownName` for one that the operator does not have."""
        return known.schedules(operator, self.schedule)

    def implementations(self, operator: Operator) -> tuple[str | None, ...]:
        """The library kernels, or None for the library's choice. Raises as `known`."""
        return known.named_implementations(operator, self.implementation)

    def request(self) -> dict[str, Any]:
        """Arguments of `predict_arrays` besides schedule and implementation."""
        return {"mesh": self.mesh, "stored": self.stored}


@dataclass(frozen=True)
class TimedKernels(Kernels):
    """Kernels as a benchmark times them, with operands that may lie elsewhere."""

    harness: Harness = "kernel"
    """Benchmark harness whose overhead is included."""
    place: Annotated[
        Mapping[str, str], FieldOption(KERNEL, "OPERAND=LEVEL", read=known.placing, repeats=True)
    ] = field(default_factory=dict)
    """Memory that holds an operand: kv=host, weights=peer; levels are host, peer and network;
    repeats."""

    def request(self) -> dict[str, Any]:
        """Arguments of `predict_arrays` besides schedule and implementation."""
        return {**super().request(), "harness": self.harness, "place": self.place}


@dataclass(frozen=True)
class TimedKernel(TimedKernels):
    """As `TimedKernels`, of one implementation."""

    implementation: Annotated[
        str | None, FieldOption(KERNEL, "NAME", complete=completing.implementations)
    ] = None
    """Library kernel: {implementations} (perfmodel list implementations)."""

    def named(self, operator: Operator) -> str | None:
        """The library kernel. Raises as `known.implementation`."""
        return known.implementation(operator, self.implementation)
