"""Where devices that share a layer exchange: forward one way, backward the other.

Megatron's f and g (1909.08053, section 3) and their halves (2205.05198, section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

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
    """What it is called that moves so forward and so backward; empty is nothing."""
    found = [way for way in get_args(Way) if (_FORWARD[way], _BACKWARD[way]) == (forward, backward)]
    return cast(Way, found[0])


@dataclass(frozen=True)
class Exchange(Operation):
    """An exchange over a mesh axis; its tensors have `ranks` times as many rows on one side."""

    x: Value
    """What it reads."""
    way: Way
    """What it does forward; backward it does the opposite."""
    axis: str
    """The mesh axis: tensor, context, expert."""
    ranks: int
    """Devices along it."""
    rows: int = 0
    """Rows that pass a device by, of a ring."""
    repeats: int = 1
    """Rows that stem from one token: as many as experts that it goes to."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """X."""
        return (self.x,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """What each device has afterwards; itself where forward nothing moves."""
        if not _FORWARD[self.way]:
            return (self.x,)
        rows = {
            "gather": self.x.rows * self.ranks,
            "scatter": self.x.rows // self.ranks,
            "circulate": self.rows,
        }
        made = rows.get(self.way, self.x.rows)
        return (Value(f"{self.name}.out", made, self.x.cols, self.x.dtype),)

    @property
    def whole_bytes(self) -> float:
        """Bytes of the tensor as all of these devices share it."""
        if self.way == "circulate":
            return self.x.bytes * self.ranks
        return max(self.x.bytes, self.outputs[0].bytes)

    def forward(self, to: Recorder) -> None:
        """What moves."""
        if _FORWARD[self.way]:
            kind, moved = _FORWARD[self.way], self.whole_bytes
            to.exchange(self.name, kind, self.axis, moved, self.x, repeats=self.repeats)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The opposite."""
        if not _BACKWARD[self.way]:
            return (gradients[0],)
        name = f"{self.name}.gradient"
        kind, moved = _BACKWARD[self.way], self.whole_bytes
        to.exchange(name, kind, self.axis, moved, gradients[0], repeats=self.repeats)
        return (gradient_of(self.x, self.name),)
