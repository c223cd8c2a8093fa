"""ATen operators → operations: one table, which other packages may add to.

    @operation("acme.rope")                 # namespace and name, without the overload
    def rope(call: Call) -> Operation | None:
        return call.map(vector_ops=3.0)

A handler is given one call and says what it is: an operation, several in launch order, or None for
what costs nothing. A package announces a module of handlers under the entry point
`perfmodel.tracing`. What no handler is for is a map where torch's own tag says so
(`torch.Tag.pointwise`), what torch decomposes it into, or else counted by its bytes and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from perfmodel import plugins
from perfmodel.algorithms import Problem
from perfmodel.tracing.operation import Operand, Operands, Operation

GROUP = "tracing"
"""The entry point, after `perfmodel.`."""
_OWN = ("contractions", "convolutions", "recurrent", "maps")


@dataclass(frozen=True)
class Call:
    """One call of an ATen operator."""

    name: str
    """Torch's name of the node."""
    aten: str
    """Namespace and name of the operator, without its overload."""
    module: str
    """Path of the module that calls it."""
    given: Mapping[str, Any]
    """Arguments by the names of the operator's schema, tensors as `Operand`s."""
    outputs: tuple[Operand, ...]
    """What it makes."""
    pointwise: bool = False
    """Whether torch tags the operator as element-wise."""

    def __getitem__(self, name: str) -> Any:
        """An argument; None where it is not there."""
        return self.given.get(name)

    def first(self, *names: str) -> Any:
        """The first of these arguments that is there, for operators that name one differently."""
        return next((self.given[name] for name in names if name in self.given), None)

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """Every tensor among the arguments."""
        operands: list[Operand] = []
        for value in self.given.values():
            items = value if isinstance(value, list | tuple) else (value,)
            operands += [item for item in items if isinstance(item, Operand)]
        return tuple(operands)

    @property
    def out(self) -> Operand:
        """The first thing that it makes."""
        return self.outputs[0]

    def known(
        self,
        kind: str,
        problem: Problem,
        operands: Operands,
        *,
        flops: float = 0.0,
    ) -> Operation:
        """An operation of ours, with its operands."""
        outputs = set(problem.algorithm().outputs)
        reads = tuple(item for name, xs in operands.items() if name not in outputs for item in xs)
        return Operation(
            self.name, self.aten, self.module, kind, reads, self.outputs,
            problem, operands, flops=flops,
        )  # fmt: skip

    def map(
        self,
        *,
        vector_ops: float = 1.0,
        special_ops: float = 0.0,
        reads: Sequence[Operand] | None = None,
        kind: str = "pointwise",
    ) -> Operation:
        """An element-wise map over what it makes."""
        sources = self.inputs if reads is None else tuple(reads)
        return Operation(
            self.name, self.aten, self.module, kind, sources, self.outputs,
            vector_ops=vector_ops, special_ops=special_ops, domain=self.out.shape,
        )  # fmt: skip

    def reduction(self, over: Sequence[int], *, vector_ops: float = 1.0) -> Operation:
        """A sum, maximum or the like of its first input over some dimensions."""
        (source, *_) = self.inputs
        rank = len(source.shape)
        dims = tuple(sorted({d % rank for d in over})) if over else tuple(range(rank))
        return Operation(
            self.name, self.aten, self.module, "pointwise", (source,), self.outputs,
            vector_ops=vector_ops, domain=source.shape, reduced=dims,
        )  # fmt: skip

    def by_bytes(self, kind: str = "other", reads: Sequence[Operand] | None = None) -> Operation:
        """What is counted by the bytes that it reads and writes, and named as estimated."""
        sources = self.inputs if reads is None else tuple(reads)
        return Operation(
            self.name, self.aten, self.module, kind, sources, self.outputs, estimated=True
        )


Handler = Callable[[Call], Operation | Sequence[Operation] | None]
_HANDLERS: dict[str, Handler] = {}


def operation(*names: str) -> Callable[[Handler], Handler]:
    """Make a handler known for operators (`aten.linear`)."""

    def add(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return add


@lru_cache(maxsize=1)
def handlers() -> Mapping[str, Handler]:
    """Every handler, those of packages too; what of them is broken is left out with a warning."""
    for name in _OWN:
        import_module(f"perfmodel.tracing.{name}")
    plugins.brought(GROUP)  # loading them adds their handlers
    return _HANDLERS


def is_known(call: Call) -> bool:
    """Whether a handler says what the operator is, or torch tags it as element-wise."""
    return call.aten in handlers() or call.pointwise


def lowered(call: Call) -> list[Operation]:
    """The operations that a call is, in launch order; none where it costs nothing."""
    handler = handlers().get(call.aten)
    if handler is None:
        return [call.map() if call.pointwise else call.by_bytes()]
    operations = handler(call)
    return [operations] if isinstance(operations, Operation) else list(operations or ())
