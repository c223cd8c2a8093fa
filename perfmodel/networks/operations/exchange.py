"""Exchanges between devices that share a layer: one kind forward, its conjugate backward.

Those of a product are derived from the counting rule. A mesh axis is a grid loop whose blocks are
devices (`perfmodel.count.exchanges`). A product whose weight is split along its columns (`out`) has
the mesh over n forward, and over the reduced axis in the gradient of its input. A split along the
rows (`in`) is the reverse. Each device has all rows of the activations, or a shard of them
(`sequence`). The rule derives, forward and backward:

    out            nothing, all-reduce            (Megatron's f, 1909.08053, section 3)
    in             all-reduce, nothing            (its g)
    out, sequence  all-gather, reduce-scatter     (2205.05198, section 4.2.2)
    in, sequence   reduce-scatter, all-gather

Copies of a weight have the mesh over the tokens. For them the rule derives the sum of the gradient
and the gathering of the weight's shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, cast, get_args

from perfmodel.algorithms import Matmul
from perfmodel.networks.operations.operation import Gradients, Unary
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.router import Router
from perfmodel.networks.value import Value, gradient_of
from perfmodel.operators.mesh import crossing

Way = Literal["copy", "reduce", "gather", "scatter", "dispatch", "collect", "circulate"]

_FORWARD = {
    "copy": "", "reduce": "all-reduce", "gather": "all-gather", "scatter": "reduce-scatter",
    "dispatch": "all-to-all", "collect": "all-to-all", "circulate": "ring",
}  # fmt: skip
_IN_LINE = {"ring": "all-gather", "ring-gradient": "gather-gradient"}
"""Rings of keys and values, as stacks exchange them that gather all before attention starts."""
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
class Exchange(Unary):
    """An exchange over a mesh axis; one side has `ranks` times as many rows as the other."""

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
    def outputs(self) -> tuple[Value, ...]:
        """The tensor that each device has afterwards; x itself where forward moves nothing."""
        if not _FORWARD[self.way]:
            return (self.x,)
        rows = {
            "gather": self.x.rows * self.ranks,
            "scatter": self.x.rows // self.ranks,
            "circulate": self.rows,
        }.get(self.way, self.x.rows)
        return (replace(self.x, name=f"{self.name}.out", rows=rows),)

    @property
    def whole_bytes(self) -> float:
        """Bytes of the whole tensor over all of these devices."""
        if self.way == "circulate":
            return self.x.bytes * self.ranks
        return max(self.x.bytes, self.outputs[0].bytes)

    def _kind(self, usual: str) -> str:
        """The collective, as the stack runs it."""
        return _IN_LINE.get(usual, usual) if self.setting.stack.gathers_context else usual

    def forward(self, to: Recorder) -> None:
        """The forward collective."""
        if _FORWARD[self.way]:
            kind, size_bytes = self._kind(_FORWARD[self.way]), self.whole_bytes
            out = self.way == "dispatch"
            to.exchange(self.name, kind, self.axis, size_bytes, self.x, router=self.router, out=out)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The conjugate collective."""
        if not _BACKWARD[self.way]:
            return (gradients[0],)
        name = f"{self.name}.gradient"
        kind, size_bytes, y = self._kind(_BACKWARD[self.way]), self.whole_bytes, gradients[0]
        out = self.way == "collect"
        to.exchange(name, kind, self.axis, size_bytes, y, router=self.router, out=out)
        return (gradient_of(self.x, self.name),)


Split = Literal["out", "in"]

_SIDE = 4  # kinds of exchanges do not depend on size
_RANKS = 2


@lru_cache(maxsize=8)
def way(split: Split, *, sequence: bool) -> Way:
    """The exchange before a product split by columns, or after one split by rows."""
    lies = "m" if sequence else None
    columns = _kind("n", "A", lies)  # of the operand that every device reads in full
    rows = _kind("k", "C", lies)  # of the result, of which every device has a partial sum
    return way_of(columns, rows) if split == "out" else way_of(rows, columns)


def gradients(*, sharded: bool) -> str:
    """The collective that sums a weight's gradient over its copies. The sum ends whole on each
    device, or in shards (ZeRO 1 and above)."""
    return _kind("k", "C", "m" if sharded else None)


def weights() -> str:
    """The collective that gathers a weight stored in shards (ZeRO 3)."""
    return _kind("m", "B", "n")


@lru_cache(maxsize=32)
def _kind(axis: str, tensor: str, lies: str | None) -> str:
    """The collective of a tensor in a product over a mesh along `axis`. The tensor lies whole, or
    in shards along another axis. Empty where nothing moves."""
    layout = {(tensor, axis): lies}
    product = Matmul(_SIDE, _SIDE, _SIDE)
    kinds = [e.kind for e in crossing(product, {axis: _RANKS}, layout) if e.tensor == tensor]
    return kinds[0] if kinds else ""
