"""A module as a graph, with what is known of each of its nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from perfmodel.columns import Column, Result
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph import Edge, Graph, Node, Tensor
from perfmodel.tracing import fusion, gradients
from perfmodel.tracing.exporting import exported
from perfmodel.tracing.lowering import with_problem
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.reading import Reading, read

FUSIONS = ("none", "pointwise", "engine")
"""What may share a kernel: nothing, maps and reductions, or what serving engines join too."""


@dataclass(frozen=True)
class Trace(Result):
    """A traced module: its graph, and what each node of it is."""

    graph: Annotated[Graph, Column(key="module", of="name")]
    """Operators joined by tensors, as any other graph."""
    operations: tuple[Operation, ...]
    """One for each node of the graph, in its order."""
    parameters: Annotated[int, Column()]
    """Elements of parameters."""
    trained: frozenset[str]
    """Tensors of parameters, which have gradients where buffers have none."""
    aten_nodes: Annotated[int, Column()]
    """Calls of ATen operators that were traced, views among them."""
    views: Annotated[int, Column()]
    """Of these, calls that cost nothing."""
    copies: int
    """Operations beside the calls: copies that torch makes of a product's operands."""
    unknown: Annotated[Mapping[str, int], Column(place=3)]
    """Operators that nothing is known of, with how often they were met; counted by their bytes."""

    @property
    def kernels(self) -> Annotated[int, Column(place=1)]:
        """Kernels."""
        return len(self.operations)

    @property
    def flops(self) -> Annotated[float, Column(place=1)]:
        """FLOPs of contractions, two for each multiply-add, whatever a mask hides."""
        return sum(item.flops for item in self.operations)

    @property
    def useful_flops(self) -> Annotated[float, Column(place=1)]:
        """The FLOPs that causal masks leave."""
        return sum(item.useful_flops for item in self.operations)

    @property
    def masked(self) -> int:
        """Attention kernels with a mask tensor, which are counted in full."""
        return sum(item.masked for item in self.operations)

    @property
    def estimated(self) -> Annotated[Mapping[str, int], Column(place=2)]:
        """Operators that are counted by their bytes alone, with how often they were met."""
        return Counter(item.aten for item in self.operations if item.estimated)


def trace(
    module: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    fuse: str = "none",
    backward: bool = False,
    name: str = "",
) -> Trace:
    """Trace a torch.nn.Module that is called with `args` and `kwargs`, all on the meta device.

    `fuse` is one of `FUSIONS`; with `backward` the gradients of all parameters follow. Nothing of
    the module's arithmetic is run. Raises `TraceError` for a module that torch.export cannot
    follow, `ProblemError` for one without an operation, `UnknownName` for another fusion.
    """
    if fuse not in FUSIONS:
        raise UnknownName("fusion", fuse, FUSIONS)
    program = exported(module, args, kwargs or {})
    scan = read(program)
    operations = fusion.fused(scan, fuse)
    if backward:
        operations += gradients.of(operations, scan)
    if not operations:
        raise ProblemError(f"{name or type(module).__name__} computes nothing; there is no graph")
    nodes = tuple(with_problem(item) for item in operations)
    return Trace(
        graph=_graph(name or type(module).__name__, nodes, scan),
        operations=nodes,
        trained=frozenset(scan.parameters) - scan.buffers,
        parameters=sum(x.elements for n, x in scan.parameters.items() if n not in scan.buffers),
        aten_nodes=scan.calls,
        copies=scan.copies,
        views=scan.views,
        unknown=dict(scan.unknown),
    )


def _graph(name: str, operations: Sequence[Operation], reading: Reading) -> Graph:
    """The operations joined by tensors, those that none of them touches left out."""
    tensors: dict[str, Tensor] = {}
    sizes = {**reading.parameters, **reading.inputs, **reading.overwritten}
    sizes |= _run_totals(operations)
    for item in operations:
        for x in (*item.writes, *item.reads):
            tensor = sizes.get(x.tensor, x)
            tensors.setdefault(x.tensor, Tensor(x.tensor, tensor.shape, tensor.dtype))
    outputs = {x.tensor for item in operations for x in item.writes}
    read_ = {x.tensor for item in operations for x in item.reads}
    nodes = tuple(_node(item, tensors) for item in operations)
    inputs = [n for n in tensors if n not in outputs and n not in reading.parameters]
    results = {x.tensor for x in reading.outputs}
    ends = [n for n in tensors if n in outputs and (n in results or n not in read_)]
    return Graph(
        name,
        nodes,
        tensors,
        inputs=tuple(inputs),
        weights=tuple(n for n in reading.parameters if n in tensors),
        outputs=tuple(ends),
    )


def _node(item: Operation, tensors: Mapping[str, Tensor]) -> Node:
    problem = item.problem
    assert problem is not None
    outputs = set(problem.algorithm().outputs)
    stub = Node.__new__(Node)
    object.__setattr__(stub, "problem", problem)
    edges = {
        name: _edge(name, operands, stub.operand_bytes(name), tensors, item.repeat)
        for name, operands in item.operands.items()
    }
    return Node(
        item.name,
        problem,
        reads=tuple(edge for name, edge in edges.items() if name not in outputs),
        writes=tuple(edge for name, edge in edges.items() if name in outputs),
        repeat=item.repeat,
        # No kernel of a library is known for it, so its range is that of an assumed one.
        implementation=item.aten if item.estimated else None,
    )


def _run_totals(operations: Sequence[Operation]) -> dict[str, Operand]:
    """What nodes of several runs write, as large as it is read: each run writes a share."""
    totals = {x.tensor: x for item in operations if item.repeat > 1 for x in item.writes}
    for x in (x for item in operations for x in item.reads if x.tensor in totals):
        totals[x.tensor] = max(totals[x.tensor], x, key=lambda y: y.elements)
    return totals


def _edge(
    name: str,
    operands: Iterable[Operand],
    bytes_: float,
    tensors: Mapping[str, Tensor],
    runs: int,
) -> Edge:
    """The tensors of an operand, each as often as the operand is larger than they are."""
    names = [x.tensor for x in operands]
    size = sum(tensors[n].bytes for n in names)
    if any(math.isclose(size, many * bytes_, rel_tol=1e-9) for many in (1, runs)):
        return Edge(name, tuple(names))
    times = max(math.ceil(bytes_ / size - 1e-9), 1) if size else 1
    exact = math.isclose(size * times, bytes_, rel_tol=1e-9)
    return Edge(name, tuple(names * times), part=not exact)
