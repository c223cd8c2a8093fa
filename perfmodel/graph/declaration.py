"""Graphs of one's own: a short declaration, in YAML or as the same plain data in Python.

    name: attention-by-steps
    sizes: {heads: 16, seq: 4096, head_dim: 64}
    inputs: {q: [heads, seq, head_dim], k: [heads, seq, head_dim], v: [heads, seq, head_dim]}
    outputs: o
    nodes:
      scores:  {operator: gemm, sizes: {batch: heads, m: seq, n: seq, k: head_dim},
                reads: {A: q, B: k}, writes: {C: s}}
      softmax: {operator: softmax, sizes: {rows: heads * seq, cols: seq},
                reads: {X: s}, writes: {Y: p}}
      values:  {operator: gemm, sizes: {batch: heads, m: seq, n: head_dim, k: seq},
                reads: {A: p, B: v}, writes: {C: o}}

A user sets the top-level `sizes`: numbers, or expressions of other sizes. A node's own `sizes` are
the options of its operator: sizes as expressions, names and flags as they are.

`reads` and `writes` map each operand to tensors: one, a list of adjacent ones, or `{part: NAME}`. A
tensor that is one whole operand takes its shape and type from the operator. Other tensors are
declared under `tensors`, as are those with another `type`, `place` or `over`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfmodel.algorithms import Problem
from perfmodel.algorithms.case import is_whole
from perfmodel.algorithms.declarationform import keys, needed
from perfmodel.algorithms.expressions import evaluate, resolve
from perfmodel.algorithms.plaindata import Place, PlainData
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.graph.graph import Graph
from perfmodel.graph.graphform import GraphForm, NodeForm, TensorForm
from perfmodel.graph.node import Edge, Node
from perfmodel.graph.tensor import OWN, Tensor
from perfmodel.operators import Operator, Size, load
from perfmodel.plaintext import printable, quoted

_MOST = 10_000  # nodes and tensors, of each


@dataclass(frozen=True)
class DeclaredGraph:
    """A graph with open sizes; `at` sets them."""

    name: str
    """Name in results."""
    about: str
    """One line of description."""
    source: str
    """Source of its operators and sizes."""
    dtype: str
    """Default type of data."""
    sizes: Mapping[str, Any]
    """Default sizes: numbers, or expressions of other sizes."""
    data: Mapping[str, Any] = field(repr=False)
    """The whole declaration."""

    def at(self, given: Mapping[str, float] | None = None, dtype: str | None = None) -> Graph:
        """The graph at given sizes. Raises a `PerfmodelError` for sizes without meaning."""
        for name in given or {}:
            if name not in self.sizes:
                raise UnknownName(f"size of graph {self.name}", name, self.sizes)

        values = resolve({**self.sizes, **(given or {})}, f"graph {self.name}")
        return _Maker(PlainData.given("graph", self.data), values, dtype or self.dtype).graph()


def declare(**data: Any) -> DeclaredGraph:
    """The graph in plain data, keys as in YAML. Raises `ProblemError` for errors in it."""
    return _declaration(PlainData.given("graph", data))


def read(path: str | Path) -> DeclaredGraph:
    """The graph in a YAML file; raises `SpecError`, "file:line: message", in one line."""
    return _declaration(PlainData.of_file(path))


def _declaration(plain: PlainData) -> DeclaredGraph:
    """The declaration, checked by making the graph once at its default sizes."""
    plain.top("graph", keys(GraphForm), needed(GraphForm))
    data = plain.data
    sizes = plain.table("sizes", _MOST)
    try:
        values = resolve(sizes, "sizes")
    except PerfmodelError as error:
        plain.fail(("sizes",), str(error))
    about, source = (printable(str(data.get(key, ""))) for key in ("about", "source"))
    dtype = str(data.get("dtype", "bf16"))
    _Maker(plain, values, dtype).graph()
    return DeclaredGraph(data["name"], about, source, dtype, sizes, data)


class _Maker:
    """Makes one graph from a declaration at given sizes."""

    def __init__(self, plain: PlainData, values: Mapping[str, Any], dtype: str) -> None:
        self._plain, self._data, self._fail = plain, plain.data, plain.fail
        self._values, self._dtype = values, dtype
        self._tensors: dict[str, Tensor] = {}

    def graph(self) -> Graph:
        """The graph, checked."""
        tables = {}
        for key in ("inputs", "weights", "tensors"):
            tables[key] = self._plain.table(key, _MOST)
            for name, entry in tables[key].items():
                if name in self._tensors:
                    self._fail((key, name), f"tensor {name} is declared twice")
                self._tensors[name] = self._tensor((key, name), name, entry)
        nodes = self._plain.table("nodes", _MOST)
        node_list = [self._node(name, entry) for name, entry in nodes.items()]
        outputs = self._plain.names(("outputs",), self._data.get("outputs", ()))
        try:
            return Graph(
                str(self._data["name"]), tuple(node_list), self._tensors, tuple(tables["inputs"]),
                tuple(tables["weights"]), outputs, {**self._values, "dtype": self._dtype},
            )  # fmt: skip
        except PerfmodelError as error:
            return self._fail(("nodes",), str(error))

    def _tensor(self, path: Place, name: str, entry: Any) -> Tensor:
        table = entry if isinstance(entry, Mapping) else {"shape": entry}
        self._plain.keys(path, table, keys(TensorForm))
        if "shape" not in table:
            self._fail(path, f"tensor {name} has no shape; write [tokens, hidden]")
        spec = table["shape"]
        extents = spec if isinstance(spec, list | tuple) else (spec,)
        shape = tuple(self._extent(path, extent) for extent in extents)
        dtype, place, over = (str(table.get(key, "")) for key in ("type", "place", "over"))
        try:
            return Tensor(name, shape, dtype or self._dtype, place or OWN, over)
        except PerfmodelError as error:
            return self._fail(path, str(error))

    def _extent(self, path: Place, expression: Any) -> int:
        """The value of an expression of the sizes, which must be a whole number."""
        try:
            value = evaluate(expression, self._values)
        except PerfmodelError as error:
            self._fail(path, str(error))
        if not is_whole(value):
            self._fail(path, f"{quoted(str(expression))} is {value}, which is no whole number")
        return int(value)

    def _node(self, name: str, entry: Any) -> Node:
        path: Place = ("nodes", name)
        if not isinstance(entry, Mapping) or not isinstance(entry.get("operator"), str):
            self._fail(
                path, "a node is {operator: NAME, sizes: {...}, reads: {...}, writes: {...}}"
            )
        self._plain.keys(path, entry, keys(NodeForm))
        reads, writes = (self._edges(path, entry, key) for key in ("reads", "writes"))
        problem = self._problem(path, self._operator(path, entry["operator"]), entry)
        repeat = self._extent((*path, "repeat"), entry.get("repeat", 1))
        choices = {key: entry[key] for key in ("schedule", "implementation") if key in entry}
        for key, value in choices.items():
            if not isinstance(value, str):
                self._fail((*path, key), f"{quoted(repr(value))} is no name; write one in quotes")
        try:
            node = Node(name, problem, reads, writes, repeat, **choices)
        except PerfmodelError as error:
            self._fail(path, str(error))
        self._add_tensors(node)
        return node

    def _edges(self, path: Place, entry: Mapping[str, Any], key: str) -> tuple[Edge, ...]:
        table = self._plain.table(key, _MOST, path, entry)
        edges = []
        for operand, names in table.items():
            place = (*path, key, operand)
            part = isinstance(names, Mapping)
            if part:
                self._plain.keys(place, names, ("part",))
                names = names.get("part")
            edges.append(Edge(operand, self._plain.names(place, names), part))
        return tuple(edges)

    def _operator(self, path: Place, name: str) -> Operator:
        try:
            return load(name)
        except PerfmodelError as error:
            return self._fail((*path, "operator"), str(error))

    def _problem(self, path: Place, operator: Operator, entry: Mapping[str, Any]) -> Problem:
        """The operator's problem: sizes are expressions; names and flags are taken as they are."""
        sizes = self._plain.table("sizes", _MOST, path, entry)
        options = {item.name: item for item in operator.options}
        values: dict[str, Any] = {}
        for name, value in sizes.items():
            if name not in options:
                error = UnknownName(f"option of {operator.name}", name, options)
                self._fail((*path, "sizes", name), str(error))
            is_size = isinstance(options[name], Size)
            values[name] = self._extent((*path, "sizes", name), value) if is_size else value
        gaps = [name for name in operator.needed if name not in values]
        if gaps:
            self._fail(path, f"{operator.name} needs {', '.join(gaps)}; add to its sizes")
        if "dtype" in options:
            values.setdefault("dtype", self._dtype)
        try:
            problem = operator.problem(**{**operator.fixed, **values})
            assert problem.elements()  # raises for an unknown type
            return problem
        except (PerfmodelError, TypeError) as error:  # TypeError: text where a number belongs
            return self._fail((*path, "sizes"), str(error))

    def _add_tensors(self, node: Node) -> None:
        """Give undeclared tensors the shape and type of the operand that they are."""
        problem = node.problem
        parts, sizes, elements = problem.algorithm().tensors, problem.sizes(), problem.elements()
        for edge in node.writes:
            part = parts[edge.operand]
            shape = tuple(int(sizes[axis]) for axis in part.axes)
            for name in edge.tensors:
                if name not in self._tensors and len(edge.tensors) > 1:
                    self._fail(
                        ("nodes", node.name, "writes"),
                        f"{name} is a part of {edge.operand}; declare its shape under tensors",
                    )
                if name not in self._tensors:
                    kind = elements[part.element].name
                    self._tensors[name] = Tensor(name, (node.repeat, *shape), kind)
