"""Which operations share a kernel.

`none` is eager PyTorch: a kernel an operator. `pointwise` joins maps and reductions over one domain
as a compiler does (Inductor): an operation joins the kernel of one that it reads from, unless
another of its inputs waits for that kernel. `engine` joins products of one input besides (queries,
keys and values; gate and up), as serving engines store their weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.reading import Reading

# Operators of a root-mean-square norm that is written out, and of a softmax.
_RMS_NORM = {"aten.mean", "aten.rsqrt"}
_SOFTMAX = {"aten.exp", "aten.sum", "aten.div"}


def fused(found: Reading, how: str) -> list[Operation]:
    """The operations of a reading, joined as `how` says, in launch order."""
    operations = found.operations
    if how == "engine":
        operations = _products(operations)
    if how == "none":
        return list(operations)
    kernels = _Kernels()
    for item in operations:
        kernels.take(item)
    outputs = {x.tensor for x in found.outputs}
    return [_fusion(group, operations, outputs) for group in kernels.ordered()]


class _Kernels:
    """Groups of operations, and which of them wait for which."""

    def __init__(self) -> None:
        self._home: dict[str, int] = {}  # tensor to the group that makes it
        self._groups: dict[int, list[Operation]] = {}
        self._waits: dict[int, set[int]] = {}  # for which a group waits, directly or not
        self._numbers = count()

    def take(self, item: Operation) -> None:
        """One operation: into a group that it reads from, with others that it joins, or alone."""
        sources = {self._home[x.tensor] for x in item.reads if x.tensor in self._home}
        candidates = sorted(sources, reverse=True) if item.fusable else []
        i = next((i for i in candidates if self._takes(i, item, sources)), None)
        if i is None:
            i = next(self._numbers)
            self._groups[i], self._waits[i] = [], set()
        for source in candidates:
            if source != i and self._groups.get(i) and self._merges(i, source):
                self._merge(i, source)
        self._groups[i].append(item)
        self._wait(i, {self._home[x.tensor] for x in item.reads if x.tensor in self._home} - {i})
        for x in item.writes:
            self._home[x.tensor] = i

    def _takes(self, i: int, item: Operation, sources: set[int]) -> bool:
        """Whether an operation may run in a group: nothing else that it reads waits for that."""
        waits = any(i in self._waits[other] for other in sources - {i})
        return not waits and _fits(self._groups[i], item)

    def _merges(self, a: int, b: int) -> bool:
        """Whether two groups may be one: each fits the other, and no third lies between them."""
        gap = any(
            (a in waits and i in self._waits[b]) or (b in waits and i in self._waits[a])
            for i, waits in self._waits.items()
            if i not in (a, b)
        )
        fits = all(_fits(self._groups[a], item) for item in self._groups[b])
        return fits and not gap

    def _merge(self, a: int, b: int) -> None:
        first, last = sorted((a, b))
        members = [*self._groups[first], *self._groups[last]]
        del self._groups[b]
        self._groups[a] = members
        union = self._waits.pop(b) | self._waits[a]
        self._waits[a] = union - {a, b}
        for waits in self._waits.values():
            if b in waits:
                waits.discard(b)
                waits.add(a)
        for tensor, home in self._home.items():
            if home == b:
                self._home[tensor] = a
        self._wait(a, set())

    def _wait(self, group: int, sources: set[int]) -> None:
        """Let a group wait for others, and all that wait for it."""
        self._waits[group] |= sources.union(*(self._waits[i] for i in sources))
        for waits in self._waits.values():
            if group in waits:
                waits |= self._waits[group]

    def ordered(self) -> list[list[Operation]]:
        """The groups, each after those that it waits for, else as they began."""
        rest, ids, groups = dict(self._groups), set[int](), list[list[Operation]]()
        while rest:
            i = next(i for i in rest if self._waits[i] <= ids)
            groups.append(rest.pop(i))
            ids.add(i)
        return groups


def _fits(group: Sequence[Operation], item: Operation) -> bool:
    """Whether an operation runs over the domain of a group, or over a part of it."""
    if not item.fusable or not all(member.fusable for member in group):
        return False
    for member in group:
        shrinks = member.reduced and len(member.writes[0].shape) < len(member.domain)
        if shrinks or not _is_part(member.domain, item.domain):
            return False
    return True


def _is_part(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether one domain is the other with some extents 1, or with half of the last one.

    Rotary embeddings turn the halves of a head into each other.
    """
    small, large = sorted((tuple(first), tuple(second)), key=math.prod)
    if len(small) > len(large):
        return False
    pairs = list(zip(reversed(small), reversed(large), strict=False))
    half = bool(pairs) and 2 * pairs[0][0] == pairs[0][1]
    return all(a in (1, b) for a, b in pairs[half:])


def _fusion(group: Sequence[Operation], steps: Sequence[Operation], outputs: set[str]) -> Operation:
    """A group as one operation: what it reads from outside, and what is needed outside."""
    if len(group) == 1:
        return group[0]
    inner = {x.tensor for item in group for x in item.writes}
    names = {item.name for item in group}
    outer = {x.tensor for item in steps if item.name not in names for x in item.reads}
    domain = max((item.domain for item in group), key=math.prod)
    points = math.prod(domain)
    reads: dict[str, Operand] = {}
    for x in (x for item in group for x in item.reads if x.tensor not in inner):
        previous = reads.get(x.tensor)
        if previous is not None and previous.shape == x.shape and 2 * x.shape[-1] == domain[-1]:
            x = replace(x, shape=(*x.shape[:-1], domain[-1]))  # its two halves
        if previous is None or x.distinct > previous.distinct:
            reads[x.tensor] = x
    writes = {
        x.tensor: x
        for item in group
        for x in item.writes
        if x.tensor in outer or x.tensor in outputs
    }
    last = group[-1]
    sums = [item for item in group if item.reduced]
    fusion = replace(
        last,
        aten="+".join(dict.fromkeys(item.aten.removeprefix("aten.") for item in group)),
        kind=_kind(group),
        reads=tuple(reads.values()),
        writes=tuple(writes.values()) or last.writes,
        vector_ops=sum(item.vector_ops * math.prod(item.domain) for item in group) / points,
        special_ops=sum(item.special_ops * math.prod(item.domain) for item in group) / points,
        domain=domain,
        reduced=sums[-1].reduced if last.reduced else (),
    )
    return _norm(group, fusion) or fusion


def _kind(group: Sequence[Operation]) -> str:
    names = {item.aten for item in group}
    if names >= _RMS_NORM:
        return "norm"
    return "softmax" if names >= _SOFTMAX else "pointwise"


def _norm(group: Sequence[Operation], fusion: Operation) -> Operation | None:
    """A root-mean-square norm that is written out: one tensor in, one out, a weight of a row."""
    full = [x for x in fusion.reads if x.distinct == math.prod(fusion.domain)]
    rows = [x for x in fusion.reads if x.distinct == fusion.domain[-1]]
    names = {item.aten for item in group}
    fits = (len(full), len(rows), len(fusion.reads), len(fusion.writes)) == (1, 1, 2, 1)
    if not names >= _RMS_NORM or "aten.sub" in names or not fits:
        return None
    x, out = full[0], fusion.writes[0]
    columns = fusion.domain[-1]
    problem = Rowwise(
        "rmsnorm",
        x.distinct // columns,
        columns,
        x.dtype,
        output_dtype=None if out.dtype == x.dtype else out.dtype,
    )
    operands = {"X": (x,), "gamma": (rows[0],), "Y": (out,)}
    return replace(fusion, problem=problem, operands=operands, reduced=())


def _products(operations: Sequence[Operation]) -> list[Operation]:
    """Linear layers of one input as one product, at the place of the first of them."""
    groups: dict[tuple[object, ...], list[Operation]] = {}
    for item in operations:
        if item.aten == "aten.linear" and isinstance(item.problem, Matmul):
            x = item.operands["A"][0]
            parent = item.module.rpartition(".")[0]
            groups.setdefault((x.tensor, x.shape, parent), []).append(item)
    leads = {group[0].name: group for group in groups.values() if len(group) > 1}
    absorbed = {item.name for group in leads.values() for item in group[1:]}
    return [
        _product(leads[item.name]) if item.name in leads else item
        for item in operations
        if item.name not in absorbed
    ]


def _product(group: Sequence[Operation]) -> Operation:
    """Several products of one input as one, their weights and results side by side."""
    first = group[0]
    problem = first.problem
    assert isinstance(problem, Matmul)
    columns = sum(int(item.problem.n) for item in group if isinstance(item.problem, Matmul))
    weights = tuple(x for item in group for x in item.operands["B"])
    results = tuple(x for item in group for x in item.operands["C"])
    return replace(
        first,
        module=first.module.rpartition(".")[0],
        problem=replace(problem, n=columns),
        reads=(*first.operands["A"], *weights),
        writes=results,
        operands={"A": first.operands["A"], "B": weights, "C": results},
        flops=sum(item.flops for item in group),
    )
