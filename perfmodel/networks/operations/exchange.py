"""Exchanges between devices that share a layer: one kind forward, its conjugate backward.

Megatron's f and g (1909.08053, section 3) and their halves (2205.05198, section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from perfmodel.collectives.dispatch import Router
from perfmodel.networks.operations.operation import Gradients, Operation, gradient_of
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value

Way = Literal["copy", "reduce", "gather", "scatter", "dispatch", "collect", "circulate"]

_FORWARD = {
    "copy": "", "reduce": "all-reduce", "gather": "all-gather", "scatter": "reduce-scatter",
    "dispatch": "all-to-all", "collect": "all-to-all", "circulate": "ring",
}  # fmt: skip
_BACKWARD = {
    "copy": "all-reduce", "reduce": "", "gather": "reduce-scatter", "scatter": "all-gather",
    "dispatch": "all-to-all", "collect": "all-to-all", "circulate": "ring-gradient",
}  # fmt: skip


def way_of(forward: str, backward: str) -> Way:
    """The name of the exchange with these forward and backward collectives; an empty name is
    none."""
    ways = [way for way in get_args(Way) if (_FORWARD[way], _BACKWARD[way]) == (forward, backward)]
    return cast(Way, ways[0])


@dataclass(frozen=True)
class Exchange(Operation):
    """An exchange over a mesh axis; one side has `ranks` times as many rows as the other."""

    x: Value
    """What it reads."""
    way: Way
    """The exchange forward; backward it is the conjugate one."""
    axis: str
    """The mesh axis: tensor, context, expert."""
    ranks: int
    """Devices along it."""
    rows: int = 0
    """In a ring, rows that pass through one device."""
    router: Router | None = None
    """The router of rows that go to experts."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """X."""
        return (self.x,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The tensor that each device has afterwards; x itself where forward moves nothing."""
        if not _FORWARD[self.way]:
            return (self.x,)
        rows = {
            "gather": self.x.rows * self.ranks,
            "scatter": self.x.rows // self.ranks,
            "circulate": self.rows,
        }
        height = rows.get(self.way, self.x.rows)
        return (Value(f"{self.name}.out", height, self.x.cols, self.x.dtype),)

    @property
    def whole_bytes(self) -> float:
        """Bytes of the whole tensor over all of these devices."""
        if self.way == "circulate":
            return self.x.bytes * self.ranks
        return max(self.x.bytes, self.outputs[0].bytes)

    def forward(self, to: Recorder) -> None:
        """The forward collective."""
        if _FORWARD[self.way]:
            kind, size_bytes = _FORWARD[self.way], self.whole_bytes
            out = self.way == "dispatch"
            to.exchange(self.name, kind, self.axis, size_bytes, self.x, router=self.router, out=out)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The conjugate collective."""
        if not _BACKWARD[self.way]:
            return (gradients[0],)
        name = f"{self.name}.gradient"
        kind, size_bytes = _BACKWARD[self.way], self.whole_bytes
        to.exchange(name, kind, self.axis, size_bytes, gradients[0], router=self.router)
        return (gradient_of(self.x, self.name),)
