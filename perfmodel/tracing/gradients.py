"""The backward pass of traced operations: what autograd runs for each, from the last to the first.

A product C = A B has two more: dA = dC Bᵀ and dB = Aᵀ dC. Attention and row-wise operators have
backward problems of their own. A map reads the gradients of its results and what it read, and
writes the gradient of each input that has one; where an input was broadcast its gradient is summed.
Gradients that come together at one tensor are added. What was counted by its bytes is again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.tracing.lowering import JOINS
from perfmodel.tracing.operand import Operand
from perfmodel.tracing.operation import Operation
from perfmodel.tracing.reading import Reading

LINEAR = ("aten.add", "aten.sub", "aten.neg", "aten.to", "aten.sum", "aten.mean", *JOINS)
"""Maps whose derivative depends on none of their inputs."""


def of(operations: list[Operation], found: Reading) -> list[Operation]:
    """The backward operations; norms among `operations` are made to keep what these read."""
    needs = _needing(operations, found)
    whole = {**found.parameters, **found.inputs}
    whole |= {x.tensor: x for item in operations for x in item.writes}
    sums = _Sums({x.gradient().tensor: x.elements for x in whole.values()})
    for i in reversed(range(len(operations))):
        item = operations[i]
        if not any(x.tensor in needs for x in item.writes):
            continue
        item = operations[i] = _keeping(item)
        for made in _backward(item, [x for x in item.reads if x.tensor in needs]):
            sums.take(made)
    return sums.operations


class _Sums:
    """Backward operations in order, gradients of one tensor added as they come.

    `elements` says how many each gradient has: a view with fewer is a part of it, beside others.
    """

    def __init__(self, elements: Mapping[str, int]) -> None:
        self.operations: list[Operation] = []
        self._elements = elements
        self._made: dict[str, tuple[Operand, ...]] = {}

    def take(self, made: Operation) -> None:
        """One operation, reading gradients as they are by now."""
        named = [self._named(x, i) for i, x in enumerate(made.writes)]
        left = list(zip(made.writes, named, strict=True))

        def now(x: Operand) -> tuple[Operand, ...]:
            for pair in left:
                if pair[0] == x:
                    left.remove(pair)
                    return (pair[1],)
            return self._now(x)

        own = replace(
            made,
            reads=tuple(part for x in made.reads for part in self._now(x)),
            writes=tuple(named),
            operands={
                name: tuple(part for x in each for part in now(x))
                for name, each in made.operands.items()
            },
        )
        self.operations.append(own)
        for x, given in zip(made.writes, named, strict=True):
            self._add(x, given, own)

    def _now(self, x: Operand) -> tuple[Operand, ...]:
        found = self._made.get(x.tensor)
        if found is None or len(found) > 1:
            return found or (x,)
        return (replace(x, tensor=found[0].tensor),)

    def _named(self, x: Operand, i: int) -> Operand:
        """What a contribution is called: the gradient itself, where it is the first."""
        if x.tensor not in self._made and x.elements >= self._elements.get(x.tensor, 0):
            return x
        return replace(x, tensor=f"{x.tensor}.{len(self.operations)}.{i}")

    def _add(self, x: Operand, own: Operand, made: Operation) -> None:
        before = self._made.get(x.tensor, ())
        parts = x.elements < self._elements.get(x.tensor, 0)
        if parts or not before:
            self._made[x.tensor] = (*before, own)
            return
        total = replace(x, tensor=f"{own.tensor}.sum")
        self.operations.append(
            replace(
                _made(made, f"sum{len(self.operations)}", (*before, own), (total,)),
                aten="aten.add backward", kind="pointwise", vector_ops=1.0, special_ops=0.0,
                domain=x.shape, reduced=(), estimated=False,
            )
        )  # fmt: skip
        self._made[x.tensor] = (total,)


def _needing(operations: Sequence[Operation], found: Reading) -> set[str]:
    """Tensors with a gradient: parameters, and floats that are made of what has one."""
    needs = {n for n, x in found.parameters.items() if n not in found.buffers and x.floating}
    for item in operations:
        if any(x.tensor in needs for x in item.reads):
            needs |= {x.tensor for x in item.writes if x.floating}
    return needs


def _keeping(item: Operation) -> Operation:
    """A norm with its statistics as results, which its gradient reads."""
    problem = item.problem
    if not isinstance(problem, Rowwise) or problem.op not in ("layernorm", "rmsnorm"):
        return item
    kept = {
        name: Operand(f"{item.name}.{name}", (int(problem.rows),), "fp32")
        for name in ("mean", "rstd")
        if name in problem.algorithm().outputs
    }
    operands = dict(item.operands) | {name: (x,) for name, x in kept.items()}
    return replace(item, operands=operands, writes=(*item.writes, *kept.values()))


def _backward(item: Operation, wanted: Sequence[Operand]) -> Iterator[Operation]:
    """The gradients of the inputs of one operation that are wanted."""
    if not wanted:
        return
    problem = item.problem
    if isinstance(problem, Matmul) or item.gradients:
        yield from _of_product(item, wanted)
    elif isinstance(problem, Attention):
        yield _of_attention(item, problem)
    elif isinstance(problem, Rowwise) and problem.op in ("softmax", "layernorm", "rmsnorm"):
        yield _of_rows(item, problem)
    elif isinstance(problem, Rowwise) and len(wanted) == 1 and _is_copy(item):
        yield _of_copy(item, wanted[0])
    elif problem is None and not item.estimated:
        yield _of_map(item, wanted)
    else:
        yield _by_bytes(item, wanted)


def _made(
    item: Operation, ending: str, reads: Sequence[Operand], writes: Sequence[Operand]
) -> Operation:
    """The skeleton of a backward operation."""
    return replace(
        item,
        name=f"{item.name}.{ending}",
        aten=f"{item.aten} backward",
        reads=tuple(reads),
        writes=tuple(writes),
        problem=None,
        operands={},
        gradients={},
        flops=0.0,
    )


def _of_product(item: Operation, wanted: Sequence[Operand]) -> Iterator[Operation]:
    slots = {name: item.operands[name] for name in "ABC"}
    result = tuple(x.gradient() for x in slots["C"])
    names = {x.tensor for x in wanted}
    for side, left, right in (("A", result, slots["B"]), ("B", slots["A"], result)):
        made = tuple(x.gradient() for x in slots[side])
        if not names & {x.tensor for x in slots[side]}:
            continue
        problem = _gradient(item, side)
        operands = {"A": left, "B": right, "C": made}
        if not isinstance(problem, Matmul):  # its tensors keep their names
            operands = {**slots, "C": result, side: made}
        yield replace(
            _made(item, f"d{side}", (*left, *right), made),
            problem=problem,
            operands=operands,
            flops=item.flops,
        )


def _gradient(item: Operation, side: str) -> Problem:
    """The product that makes the gradient of one operand."""
    if side in item.gradients:
        return item.gradients[side]
    of = item.problem
    assert isinstance(of, Matmul)
    sizes = (of.m, of.k, of.n) if side == "A" else (of.k, of.n, of.m)
    return Matmul(*sizes, of.batch, of.dtype, gradient=True)


def _of_attention(item: Operation, problem: Attention) -> Operation:
    queries, keys, values, out = (item.operands[name][0] for name in ("Q", "K", "V", "O"))
    rows = (problem.batch, problem.heads_q, problem.seq_q)
    sums = Operand(f"{item.name}.L", tuple(int(n) for n in rows), "fp32")
    reads = {"Q": queries, "K": keys, "V": values, "O": out, "dO": out.gradient(), "L": sums}
    writes = {"dQ": queries.gradient(), "dK": keys.gradient(), "dV": values.gradient()}
    return replace(
        _made(item, "backward", tuple(reads.values()), tuple(writes.values())),
        problem=replace(problem, direction="bwd"),
        operands={name: (x,) for name, x in {**reads, **writes}.items()},
        # Five products for two of the forward pass: the scores are made again.
        flops=2.5 * item.flops,
    )


def _of_rows(item: Operation, problem: Rowwise) -> Operation:
    backward = replace(problem, direction="bwd", output_dtype=None)
    algorithm = backward.algorithm()
    tensors: dict[str, Operand] = {name: each[0] for name, each in item.operands.items()}
    tensors |= {f"d{name}": x.gradient() for name, x in tensors.items()}
    reads = {name: tensors[name] for name in algorithm.inputs}
    writes = {name: tensors[name] for name in algorithm.outputs}
    return replace(
        _made(item, "backward", tuple(reads.values()), tuple(writes.values())),
        problem=backward,
        operands={name: (x,) for name, x in {**reads, **writes}.items()},
    )


def _is_copy(item: Operation) -> bool:
    """Whether it writes each element that it reads once."""
    return item.reads[0].elements == item.writes[0].elements and not item.reads[0].spread


def _of_copy(item: Operation, wanted: Operand) -> Operation:
    """A copy the other way."""
    result, source = item.writes[0].gradient(), wanted.gradient()
    return replace(
        _made(item, "backward", (result,), (source,)),
        problem=item.problem,
        operands={"X": (result,), "Y": (source,)},
    )


def _of_map(item: Operation, wanted: Sequence[Operand]) -> Operation:
    """Every input may matter to the derivative; a sum's gradient is what its result has."""
    results = tuple(x.gradient() for x in item.writes if x.floating)
    kept = () if item.aten in LINEAR else item.reads
    writes = tuple({x.tensor: x.gradient() for x in wanted}.values())
    backward = _made(item, "backward", (*results, *kept), writes)
    return replace(backward, vector_ops=2.0 * item.vector_ops, reduced=())


def _by_bytes(item: Operation, wanted: Sequence[Operand]) -> Operation:
    """As many bytes the other way."""
    results = tuple(x.gradient() for x in item.writes if x.floating)
    writes = tuple({x.tensor: x.gradient() for x in wanted}.values())
    return replace(_made(item, "backward", results, writes), estimated=True)
