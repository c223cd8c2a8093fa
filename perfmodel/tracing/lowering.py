"""Maps and reductions as problems whose bytes are exact, whatever is broadcast.

A map over tensors of one shape is the element-wise operator, whose kernels are known. Where shapes
or types differ it is an algorithm of its own: an axis for each run of dimensions that all tensors
share or lack together, and a step for each result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.algorithms import Problem, Rowwise
from perfmodel.algorithms.declaration import declare
from perfmodel.elements import element
from perfmodel.operators.declared import DeclaredOperator
from perfmodel.tracing.operation import Operand, Operation

JOINS = ("aten.cat", "aten.concat", "aten.stack")
"""Operators whose inputs lie side by side in their result."""
_MOST_OPERATIONS = 1_000_000
# What is counted by its bytes is so many tensors of one size at most, and exact to one of them.
_MOST_TENSORS = 64


def with_problem(operation: Operation) -> Operation:
    """The operation with a problem; one that has one stays as it is."""
    if operation.problem is not None:
        return operation
    if operation.estimated:
        return _byte_map(operation)
    pointwise = _pointwise(operation)
    return pointwise if pointwise is not None else _declaration(operation)


def _pointwise(operation: Operation) -> Operation | None:
    """The element-wise operator, where nothing is broadcast or reduced and types agree."""
    reads, writes = operation.reads, operation.writes
    (out, *_) = writes
    if operation.aten.removesuffix(" backward") in JOINS:
        return _concatenation(operation)
    equal = all(x.distinct == out.elements for x in (*reads, *writes))
    types = {x.dtype for x in reads}, {x.dtype for x in writes}
    if operation.reduced or not equal or not reads or any(len(each) > 1 for each in types):
        return None
    columns = out.shape[-1] if out.shape else 1
    problem = Rowwise(
        "pointwise",
        max(out.elements // columns, 1),
        columns,
        reads[0].dtype,
        inputs=len(reads),
        outputs=len(writes),
        output_dtype=None if out.dtype == reads[0].dtype else out.dtype,
    )
    return replace(operation, problem=problem, operands={"X": reads, "Y": writes})


def _concatenation(operation: Operation) -> Operation | None:
    """A copy of tensors that lie side by side, on the one side or on the other."""
    reads, writes = operation.reads, operation.writes
    size = sum(x.elements for x in writes)
    if sum(x.elements for x in reads) != size:
        return None
    columns = writes[0].shape[-1] if len(writes) == 1 and writes[0].shape else 1
    problem = Rowwise("pointwise", max(size // columns, 1), columns, writes[0].dtype, "copy")
    return replace(operation, problem=problem, operands={"X": reads, "Y": writes})


def _byte_map(operation: Operation) -> Operation:
    """A map over bytes: tensors of one size, so many that they are the bytes read and written; a
    reduction where next to nothing is written."""
    in_bytes, out_bytes = (
        sum(x.distinct * int(element(x.dtype).bytes) for x in each)
        for each in (operation.reads, operation.writes)
    )
    out_bytes = max(out_bytes, 1)
    operands = {"Y": operation.writes} | ({"X": operation.reads} if operation.reads else {})
    lowered = replace(operation, operands=operands)
    if in_bytes > _MOST_TENSORS * out_bytes:
        axes = {"a0": out_bytes, "a1": in_bytes // out_bytes}
        tensors = {"X": (["a0", "a1"], "int8"), "Y": (["a0"], "int8")}
        return replace(lowered, problem=_problem(axes, tensors, ["X"], ["Y"], 1.0, 0.0))
    largest = max(in_bytes, out_bytes)
    size = min(max(math.gcd(in_bytes, out_bytes), -(-largest // _MOST_TENSORS)), out_bytes)
    inputs = max(round(in_bytes / size), 1) if operation.reads else 0
    problem = Rowwise("pointwise", 1, size, "int8", inputs=inputs, outputs=out_bytes // size)
    return replace(lowered, problem=problem)


@dataclass(frozen=True)
class _View:
    """An operand over the domain of a map."""

    name: str
    operand: Operand
    dims: frozenset[int]


def _declaration(operation: Operation) -> Operation:
    """An algorithm of its own."""
    domain = operation.domain
    reads = [_view(f"X{i}", x, domain) for i, x in enumerate(operation.reads)]
    writes = [
        _view(f"Y{i}", x, domain, sums=operation.reduced) for i, x in enumerate(operation.writes)
    ]
    # A result with fewer elements than the dimensions that it runs along.
    if any(y.operand.distinct < math.prod(domain[i] for i in y.dims) for y in writes):
        return _byte_map(operation)
    dims = frozenset[int]().union(*(x.dims for x in reads))
    if not reads or not dims >= frozenset().union(*(y.dims for y in writes)):
        return _broadcast(operation)
    runs = list(_runs(domain, [*reads, *writes]))
    axes = {f"a{i}": math.prod(domain[d] for d in run) for i, run in enumerate(runs)}
    layout = {
        view.name: [f"a{i}" for i, run in enumerate(runs) if run[0] in view.dims]
        for view in (*reads, *writes)
    }
    if not axes:  # single elements
        axes, layout = {"a0": 1}, {name: ["a0"] for name in layout}
    operands = {view.name: (view.operand,) for view in (*reads, *writes)}
    tensors = {name: (layout[name], x.dtype) for name, (x,) in operands.items()}
    work = (min(ops, _MOST_OPERATIONS) for ops in (operation.vector_ops, operation.special_ops))
    problem = _problem(axes, tensors, [x.name for x in reads], [y.name for y in writes], *work)
    return replace(operation, problem=problem, operands=operands)


def _broadcast(operation: Operation) -> Operation:
    """A map that writes more than it reads: what it reads is read again for each repetition."""
    (out, *_) = operation.writes
    problem = Rowwise(
        "pointwise",
        1,
        max(out.elements, 1),
        out.dtype,
        inputs=1 if operation.reads else 0,
        outputs=len(operation.writes),
    )
    operands = {"Y": operation.writes} | ({"X": operation.reads} if operation.reads else {})
    return replace(operation, problem=problem, operands=operands)


def _view(name: str, x: Operand, domain: Sequence[int], sums: Sequence[int] = ()) -> _View:
    """Which dimensions of the domain a tensor has elements along, shapes aligned at their ends."""
    free = [i for i in range(len(domain)) if i not in sums]
    if sums and len(x.shape) == len(free):  # the reduced dimensions are gone
        places = free
    else:
        places = list(range(len(domain) - len(x.shape), len(domain)))
    dims = frozenset(
        place
        for i, place in enumerate(places)
        if place >= 0 and x.shape[i] > 1 and i not in x.spread
    )
    return _View(name, x, dims)


def _runs(domain: Sequence[int], views: Sequence[_View]) -> Iterator[list[int]]:
    """Neighbouring dimensions that every tensor has all of or none of."""
    run: list[int] = []
    last: tuple[bool, ...] = ()
    for i, extent in enumerate(domain):
        if extent == 1:
            continue
        pattern = tuple(i in x.dims for x in views)
        if run and pattern != last:
            yield run
            run = []
        if any(pattern):
            run, last = [*run, i], pattern
    if run:
        yield run


def _problem(
    axes: Mapping[str, int],
    tensors: Mapping[str, tuple[list[str], str]],
    reads: Sequence[str],
    writes: Sequence[str],
    vector_ops: float,
    special_ops: float,
) -> Problem:
    """The declared algorithm: a step for each result, a reduction where axes are summed away."""
    present = {axis for name in reads for axis in tensors[name][0]}
    steps: dict[str, Any] = {}
    vector_ops, special_ops = vector_ops / len(writes), special_ops / len(writes)
    for i, name in enumerate(writes):
        sums = [axis for axis in axes if axis in present and axis not in tensors[name][0]]
        kind = {"reduction": list(reads), "over": sums} if sums else {"map": list(reads)}
        steps[f"step{i}"] = {**kind, "to": name, "vector": vector_ops, "special": special_ops}
    declaration = declare(
        name="fused-map" if len(writes) > 1 else "reduction" if "over" in steps["step0"] else "map",
        axes=dict(axes),
        types={name: dtype for name, (_, dtype) in tensors.items()},
        tensors={name: {"axes": own, "element": name} for name, (own, _) in tensors.items()},
        steps=steps,
        outputs=list(writes),
    )
    return DeclaredOperator(declaration).problem()
