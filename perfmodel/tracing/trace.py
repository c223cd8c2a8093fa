"""A module as a graph, with what is known of each of its nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph import Edge, Graph, Node, Tensor
from perfmodel.tracing import fusion, gradients
from perfmodel.tracing.exporting import exported
from perfmodel.tracing.lowering import with_problem
from perfmodel.tracing.operand import Operand
from perfmodel.tracing.operation import Operation
from perfmodel.tracing.reading import Reading, read

FUSIONS = ("none", "pointwise", "engine")
"""What may share a kernel: nothing, maps and reductions, or what serving engines join too."""


@dataclass(frozen=True)
class Trace:
    """A traced module: its graph, and what each node of it is."""

    graph: Graph
    """Operators joined by tensors, as any other graph."""
    operations: tuple[Operation, ...]
    """One for each node of the graph, in its order."""
    parameters: int
    """Elements of parameters."""
    aten_nodes: int
    """Calls of ATen operators that were traced, views among them."""
    views: int
    """Of these, calls that cost nothing."""
    copies: int
    """Operations beside the calls: copies that torch makes of a product's operands."""
    unknown: Mapping[str, int]
    """Operators that nothing is known of, with how often they were met; counted by their bytes."""

    @property
    def flops(self) -> float:
        """FLOPs of contractions, two for each multiply-add, whatever a mask hides."""
        return sum(item.flops for item in self.operations)

    @property
    def useful_flops(self) -> float:
        """The FLOPs that causal masks leave."""
        return sum(item.useful_flops for item in self.operations)

    @property
    def masked(self) -> int:
        """Attention kernels with a mask tensor, which are counted in full."""
        return sum(item.masked for item in self.operations)

    @property
    def estimated(self) -> Mapping[str, int]:
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
    found = read(program)
    operations = fusion.fused(found, fuse)
    if backward:
        operations += gradients.of(operations, found)
    if not operations:
        raise ProblemError(f"{name or type(module).__name__} computes nothing; there is no graph")
    lowered = tuple(with_problem(item) for item in operations)
    return Trace(
        graph=_graph(name or type(module).__name__, lowered, found),
        operations=lowered,
        parameters=sum(x.elements for n, x in found.parameters.items() if n not in found.buffers),
        aten_nodes=found.calls,
        copies=found.copies,
        views=found.views,
        unknown=dict(found.unknown),
    )


def _graph(name: str, operations: Sequence[Operation], found: Reading) -> Graph:
    """The operations joined by tensors, those that none of them touches left out."""
    tensors: dict[str, Tensor] = {}
    sizes = {**found.parameters, **found.inputs, **found.overwritten}
    sizes |= _of_all_runs(operations)
    for item in operations:
        for x in (*item.writes, *item.reads):
            whole = sizes.get(x.tensor, x)
            tensors.setdefault(x.tensor, Tensor(x.tensor, whole.shape, whole.dtype))
    written = {x.tensor for item in operations for x in item.writes}
    read_ = {x.tensor for item in operations for x in item.reads}
    nodes = tuple(_node(item, tensors) for item in operations)
    given = [n for n in tensors if n not in written and n not in found.parameters]
    returned = {x.tensor for x in found.outputs}
    ends = [n for n in tensors if n in written and (n in returned or n not in read_)]
    return Graph(
        name,
        nodes,
        tensors,
        inputs=tuple(given),
        weights=tuple(n for n in found.parameters if n in tensors),
        outputs=tuple(ends),
    )


def _node(item: Operation, tensors: Mapping[str, Tensor]) -> Node:
    problem = item.problem
    assert problem is not None
    made = set(problem.algorithm().outputs)
    bare = Node.__new__(Node)
    object.__setattr__(bare, "problem", problem)
    edges = {
        name: _edge(name, operands, bare.operand_bytes(name), tensors, item.repeat)
        for name, operands in item.operands.items()
    }
    return Node(
        item.name,
        problem,
        reads=tuple(edge for name, edge in edges.items() if name not in made),
        writes=tuple(edge for name, edge in edges.items() if name in made),
        repeat=item.repeat,
        # No kernel of a library is known for it, so its range is that of an assumed one.
        implementation=item.aten if item.estimated else None,
    )


def _of_all_runs(operations: Sequence[Operation]) -> dict[str, Operand]:
    """What nodes of several runs write, as large as it is read: each run writes a share."""
    written = {x.tensor: x for item in operations if item.repeat > 1 for x in item.writes}
    for x in (x for item in operations for x in item.reads if x.tensor in written):
        written[x.tensor] = max(written[x.tensor], x, key=lambda y: y.elements)
    return written


def _edge(
    name: str,
    operands: Iterable[Operand],
    wanted: float,
    tensors: Mapping[str, Tensor],
    runs: int,
) -> Edge:
    """The tensors of an operand, each as often as the operand is larger than they are."""
    each = [x.tensor for x in operands]
    found = sum(tensors[n].bytes for n in each)
    if any(math.isclose(found, many * wanted, rel_tol=1e-9) for many in (1, runs)):
        return Edge(name, tuple(each))
    times = max(math.ceil(wanted / found - 1e-9), 1) if found else 1
    whole = math.isclose(found * times, wanted, rel_tol=1e-9)
    return Edge(name, tuple(each * times), part=not whole)
