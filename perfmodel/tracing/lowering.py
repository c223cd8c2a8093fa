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
from perfmodel.operators.declared import DeclaredOperator
from perfmodel.tracing.operand import Operand
from perfmodel.tracing.operation import Operation

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
        return _by_bytes(operation)
    alike = _alike(operation)
    return alike if alike is not None else _declared(operation)


def _alike(operation: Operation) -> Operation | None:
    """The element-wise operator, where nothing is broadcast or reduced and types agree."""
    reads, writes = operation.reads, operation.writes
    (out, *_) = writes
    if operation.aten.removesuffix(" backward") in JOINS:
        return _side_by_side(operation)
    same = all(x.distinct == out.elements for x in (*reads, *writes))
    types = {x.dtype for x in reads}, {x.dtype for x in writes}
    if operation.reduced or not same or not reads or any(len(each) > 1 for each in types):
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


def _side_by_side(operation: Operation) -> Operation | None:
    """A copy of tensors that lie side by side, on the one side or on the other."""
    reads, writes = operation.reads, operation.writes
    size = sum(x.elements for x in writes)
    if sum(x.elements for x in reads) != size:
        return None
    columns = writes[0].shape[-1] if len(writes) == 1 and writes[0].shape else 1
    problem = Rowwise("pointwise", max(size // columns, 1), columns, writes[0].dtype, "copy")
    return replace(operation, problem=problem, operands={"X": reads, "Y": writes})


def _by_bytes(operation: Operation) -> Operation:
    """A map over bytes: tensors of one size, so many that they are the bytes read and written; a
    reduction where next to nothing is written."""
    read = sum(x.distinct * _width(x) for x in operation.reads)
    written = max(sum(x.distinct * _width(x) for x in operation.writes), 1)
    operands = {"Y": operation.writes} | ({"X": operation.reads} if operation.reads else {})
    whole = replace(operation, operands=operands)
    if read > _MOST_TENSORS * written:
        axes = {"a0": written, "a1": read // written}
        tensors = {"X": (["a0", "a1"], "int8"), "Y": (["a0"], "int8")}
        return replace(whole, problem=_problem(axes, tensors, ["X"], ["Y"], 1.0, 0.0))
    largest = max(read, written)
    size = min(max(math.gcd(read, written), -(-largest // _MOST_TENSORS)), written)
    inputs = max(round(read / size), 1) if operation.reads else 0
    problem = Rowwise("pointwise", 1, size, "int8", inputs=inputs, outputs=written // size)
    return replace(whole, problem=problem)


def _width(x: Operand) -> int:
    from perfmodel.elements import element

    return int(element(x.dtype).bytes)


@dataclass(frozen=True)
class _Seen:
    """An operand over the domain of a map."""

    name: str
    operand: Operand
    dims: frozenset[int]


def _declared(operation: Operation) -> Operation:
    """An algorithm of its own."""
    domain = operation.domain
    reads = [_seen(f"X{i}", x, domain) for i, x in enumerate(operation.reads)]
    writes = [
        _seen(f"Y{i}", x, domain, reduced=operation.reduced) for i, x in enumerate(operation.writes)
    ]
    if any(_is_cut(y, domain) for y in writes):
        return _by_bytes(operation)
    covered = frozenset[int]().union(*(x.dims for x in reads))
    if not reads or not covered >= frozenset().union(*(y.dims for y in writes)):
        return _repeating(operation)
    runs = list(_runs(domain, [*reads, *writes]))
    axes = {f"a{i}": math.prod(domain[d] for d in run) for i, run in enumerate(runs)}
    named = {
        seen.name: [f"a{i}" for i, run in enumerate(runs) if run[0] in seen.dims]
        for seen in (*reads, *writes)
    }
    if not axes:  # single elements
        axes, named = {"a0": 1}, {name: ["a0"] for name in named}
    operands = {seen.name: (seen.operand,) for seen in (*reads, *writes)}
    tensors = {name: (named[name], x.dtype) for name, (x,) in operands.items()}
    work = (min(ops, _MOST_OPERATIONS) for ops in (operation.vector_ops, operation.special_ops))
    problem = _problem(axes, tensors, [x.name for x in reads], [y.name for y in writes], *work)
    return replace(operation, problem=problem, operands=operands)


def _repeating(operation: Operation) -> Operation:
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


def _seen(name: str, x: Operand, domain: Sequence[int], reduced: Sequence[int] = ()) -> _Seen:
    """Which dimensions of the domain a tensor has elements along, shapes aligned at their ends."""
    kept = [i for i in range(len(domain)) if i not in reduced]
    if reduced and len(x.shape) == len(kept):  # the reduced dimensions are gone
        places = kept
    else:
        places = list(range(len(domain) - len(x.shape), len(domain)))
    dims = frozenset(
        place
        for i, place in enumerate(places)
        if place >= 0 and x.shape[i] > 1 and i not in x.spread
    )
    return _Seen(name, x, dims)


def _is_cut(seen: _Seen, domain: Sequence[int]) -> bool:
    """Whether a tensor has fewer elements than the dimensions that it runs along."""
    return seen.operand.distinct < math.prod(domain[i] for i in seen.dims)


def _runs(domain: Sequence[int], seen: Sequence[_Seen]) -> Iterator[list[int]]:
    """Neighbouring dimensions that every tensor has all of or none of."""
    run: list[int] = []
    last: tuple[bool, ...] = ()
    for i, extent in enumerate(domain):
        if extent == 1:
            continue
        held = tuple(i in x.dims for x in seen)
        if run and held != last:
            yield run
            run = []
        if any(held):
            run, last = [*run, i], held
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
    have = {axis for name in reads for axis in tensors[name][0]}
    steps: dict[str, Any] = {}
    vector_ops, special_ops = vector_ops / len(writes), special_ops / len(writes)
    for i, name in enumerate(writes):
        over = [axis for axis in axes if axis in have and axis not in tensors[name][0]]
        kind = {"reduction": list(reads), "over": over} if over else {"map": list(reads)}
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
