"""Random graphs for laws: chains and forks of row-wise operators, maps and products."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.graph import Edge, Graph, Node, Tensor


def random_graph(seed: int, n: int = 6) -> Graph:
    """n operators over rows × columns, each of which reads what some nodes before it wrote."""
    draw = np.random.default_rng(seed)
    rows, cols = (int(2 ** draw.integers(4, 13)) for _ in range(2))
    tensors = {"x0": Tensor("x0", (rows, cols))}
    weights: list[str] = []
    nodes: list[Node] = []
    for i in range(n):
        made = [name for name in tensors if name.startswith("x")]
        source, out = made[-1], f"x{i + 1}"
        writes = (out,)
        kind = draw.choice(["softmax", "rmsnorm", "add", "gelu", "gemm"])
        if kind == "gemm":
            weights.append(f"w{i}")
            tensors[f"w{i}"] = Tensor(f"w{i}", (cols, cols))
            problem, edges = Matmul(rows, cols, cols), {"A": (source,), "B": (f"w{i}",)}
            target = "C"
        elif kind == "add":
            other = str(draw.choice(made))
            problem = Rowwise("pointwise", rows, cols, variant="add", inputs=2)
            edges, target = {"X": (source, other)}, "Y"
        elif kind == "gelu":
            problem = Rowwise("pointwise", rows, cols, variant="gelu")
            edges, target = {"X": (source,)}, "Y"
        else:
            problem, edges, target = Rowwise(str(kind), rows, cols), {"X": (source,)}, "Y"
            if kind == "rmsnorm":
                weights.append(f"w{i}")
                tensors[f"w{i}"] = Tensor(f"w{i}", (cols,))
                edges["gamma"] = (f"w{i}",)
        tensors[out] = Tensor(out, (rows, cols))
        reads = tuple(Edge(operand, names) for operand, names in edges.items())
        nodes.append(Node(f"n{i}", problem, reads, (Edge(target, writes),)))
    return Graph(f"random {seed}", tuple(nodes), tensors, ("x0",), tuple(weights), (f"x{n}",))


def alone(problem, repeat: int = 1) -> Graph:
    """A graph of one node that reads and writes what its operator does."""
    parts, sizes, elements = problem.algorithm().tensors, problem.sizes(), problem.elements()
    tensors = {
        name: Tensor(name, tuple(int(sizes[a]) for a in part.axes), elements[part.element].name)
        for name, part in parts.items()
    }
    inputs = tuple(n for n in problem.algorithm().inputs if n not in problem.aliased())
    outputs = tuple(problem.algorithm().outputs)
    node = Node(
        "only",
        problem,
        tuple(Edge(name, (name,)) for name in inputs),
        tuple(Edge(name, (name,)) for name in outputs),
        repeat,
    )
    kept = {name: tensors[name] for name in (*inputs, *outputs)}
    return Graph("alone", (node,), kept, inputs, outputs=outputs)
