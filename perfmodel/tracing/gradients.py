"""The backward pass of traced operations: what autograd runs for each, from the last to the first.

A product C = A B has two more: dA = dC Bᵀ and dB = Aᵀ dC. Attention and row-wise operators have
backward problems of their own. A map reads the gradients of its results and what it read, and
writes the gradient of each input that has one; where an input was broadcast its gradient is summed.
Gradients that come together at one tensor are added. What was counted by its bytes is again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.problem import BackwardKernel
from perfmodel.tracing.lowering import JOINS
from perfmodel.tracing.operation import Operand, Operands, Operation
from perfmodel.tracing.reading import Reading

LINEAR = ("aten.add", "aten.sub", "aten.neg", "aten.to", "aten.sum", "aten.mean", *JOINS)
"""Maps whose derivative depends on none of their inputs."""


def of(operations: list[Operation], found: Reading) -> list[Operation]:
    """The backward operations; norms among `operations` are made to keep what these read."""
    targets = _grad_tensors(operations, found)
    tensors = {**found.parameters, **found.inputs}
    tensors |= {x.tensor: x for item in operations for x in item.writes}
    sums = _Sums({x.gradient().tensor: x.elements for x in tensors.values()})
    for i in reversed(range(len(operations))):
        item = operations[i]
        if not any(x.tensor in targets for x in item.writes):
            continue
        item = operations[i] = _stats_norm(item)
        for gradient in _backward(item, [x for x in item.reads if x.tensor in targets]):
            sums.take(gradient)
    return sums.operations


class _Sums:
    """Backward operations in order, gradients of one tensor added as they come.

    `elements` says how many each gradient has: a view with fewer is a part of it, beside others.
    """

    def __init__(self, elements: Mapping[str, int]) -> None:
        self.operations: list[Operation] = []
        self._elements = elements
        self._parts: dict[str, tuple[Operand, ...]] = {}

    def take(self, operation: Operation) -> None:
        """One operation, reading gradients as they are by now."""
        targets = [self._contribution(x, i) for i, x in enumerate(operation.writes)]
        queue = list(zip(operation.writes, targets, strict=True))

        def current(x: Operand) -> tuple[Operand, ...]:
            for pair in queue:
                if pair[0] == x:
                    queue.remove(pair)
                    return (pair[1],)
            return self._current(x)

        entry = replace(
            operation,
            reads=tuple(part for x in operation.reads for part in self._current(x)),
            writes=tuple(targets),
            operands={
                name: tuple(part for x in each for part in current(x))
                for name, each in operation.operands.items()
            },
        )
        self.operations.append(entry)
        for x, target in zip(operation.writes, targets, strict=True):
            self._add(x, target, entry)

    def _current(self, x: Operand) -> tuple[Operand, ...]:
        parts = self._parts.get(x.tensor)
        if parts is None or len(parts) > 1:
            return parts or (x,)
        return (replace(x, tensor=parts[0].tensor),)

    def _contribution(self, x: Operand, i: int) -> Operand:
        """What a contribution is called: the gradient itself, where it is the first."""
        if x.tensor not in self._parts and x.elements >= self._elements.get(x.tensor, 0):
            return x
        return replace(x, tensor=f"{x.tensor}.{len(self.operations)}.{i}")

    def _add(self, x: Operand, part: Operand, operation: Operation) -> None:
        partials = self._parts.get(x.tensor, ())
        parts = x.elements < self._elements.get(x.tensor, 0)
        if parts or not partials:
            self._parts[x.tensor] = (*partials, part)
            return
        total = replace(x, tensor=f"{part.tensor}.sum")
        self.operations.append(
            replace(
                _skeleton(operation, f"sum{len(self.operations)}", (*partials, part), (total,)),
                aten="aten.add backward", kind="pointwise", vector_ops=1.0, special_ops=0.0,
                domain=x.shape, reduced=(), estimated=False,
            )
        )  # fmt: skip
        self._parts[x.tensor] = (total,)


def _grad_tensors(operations: Sequence[Operation], reading: Reading) -> set[str]:
    """Tensors with a gradient: parameters, and floats that are made of what has one."""
    names = {n for n, x in reading.parameters.items() if n not in reading.buffers and x.floating}
    for item in operations:
        if any(x.tensor in names for x in item.reads):
            names |= {x.tensor for x in item.writes if x.floating}
    return names


def _stats_norm(item: Operation) -> Operation:
    """A norm with its statistics as results, which its gradient reads."""
    problem = item.problem
    if not isinstance(problem, Rowwise) or problem.op not in ("layernorm", "rmsnorm"):
        return item
    stats = {
        name: Operand(f"{item.name}.{name}", (int(problem.rows),), "fp32")
        for name in ("mean", "rstd")
        if name in problem.algorithm().outputs
    }
    operands = dict(item.operands) | {name: (x,) for name, x in stats.items()}
    return replace(item, operands=operands, writes=(*item.writes, *stats.values()))


def _backward(item: Operation, targets: Sequence[Operand]) -> Iterator[Operation]:
    """The gradients of the inputs of one operation that are wanted."""
    if not targets:
        return
    problem = item.problem
    if item.gradients:
        yield from _kernels(item, item.gradients, targets)
    elif isinstance(problem, Matmul):
        stored = "nk" if item.aten == "aten.linear" else "kn"
        yield from _kernels(item, problem.backward(stored=stored), targets)
    elif isinstance(problem, Attention):
        rows = (int(problem.batch), int(problem.heads_q), int(problem.seq_q))
        sums = {"L": (Operand(f"{item.name}.L", rows, "fp32"),)}
        yield from _kernels(item, problem.backward(), targets, sums)
    elif isinstance(problem, Rowwise) and problem.op in ("softmax", "layernorm", "rmsnorm"):
        yield from _kernels(item, replace(problem, output_dtype=None).backward(), targets)
    elif (
        isinstance(problem, Rowwise)
        and len(targets) == 1
        and (item.reads[0].elements == item.writes[0].elements and not item.reads[0].spread)
    ):  # writes each element that it reads once
        yield _copy_grad(item, targets[0])
    else:
        yield _map_grad(item, targets)


def _skeleton(
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
        gradients=(),
        flops=0.0,
    )


def _kernels(
    item: Operation, kernels: Sequence[BackwardKernel], targets: Sequence[Operand],
    statistics: Operands = MappingProxyType({}),
) -> Iterator[Operation]:  # fmt: skip
    """The backward kernels of a problem that make wanted gradients; `statistics` are of rows."""
    names = {x.tensor for x in targets}
    gradients = {f"d{name}": tuple(x.gradient() for x in xs) for name, xs in item.operands.items()}
    known = {**item.operands, **gradients, **statistics}
    # Of attention five products for two of the forward pass: the scores are made again.
    flops = item.flops if len(kernels) > 1 else 2.5 * item.flops
    for kernel in kernels:
        if not names & {x.tensor for name in kernel.makes for x in item.operands[name]}:
            continue
        outputs = kernel.problem.algorithm().outputs
        operands = {name: known[of] for name, of in kernel.operands.items()}
        reads = [x for name, xs in operands.items() if name not in outputs for x in xs]
        writes = [x for name in outputs for x in operands[name]]
        ending = "backward" if len(kernels) == 1 else f"d{kernel.makes[0]}"
        skeleton = _skeleton(item, ending, reads, writes)
        yield replace(skeleton, problem=kernel.problem, operands=operands, flops=flops)


def _copy_grad(item: Operation, target: Operand) -> Operation:
    """A copy the other way."""
    result, source = item.writes[0].gradient(), target.gradient()
    return replace(
        _skeleton(item, "backward", (result,), (source,)),
        problem=item.problem,
        operands={"X": (result,), "Y": (source,)},
    )


def _map_grad(item: Operation, targets: Sequence[Operand]) -> Operation:
    """Every input may matter to the derivative; a sum's gradient is what its result has. What is
    counted by its bytes moves as many the other way."""
    results = tuple(x.gradient() for x in item.writes if x.floating)
    writes = tuple({x.tensor: x.gradient() for x in targets}.values())
    if item.problem is not None or item.estimated:
        return replace(_skeleton(item, "backward", results, writes), estimated=True)
    inputs = () if item.aten in LINEAR else item.reads
    backward = _skeleton(item, "backward", (*results, *inputs), writes)
    return replace(backward, vector_ops=2.0 * item.vector_ops, reduced=())
