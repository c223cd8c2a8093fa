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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from perfmodel.algorithms import Problem
from perfmodel.algorithms.case import is_whole
from perfmodel.algorithms.expressions import evaluate, resolve
from perfmodel.errors import PerfmodelError, ProblemError, SpecError, UnknownName
from perfmodel.graph.edge import Edge
from perfmodel.graph.graph import Graph
from perfmodel.graph.node import Node
from perfmodel.graph.tensor import OWN, Tensor
from perfmodel.operators import Operator, Size, load
from perfmodel.plaintext import printable, quoted

Path_ = tuple[str | int, ...]
Fail = Callable[[Path_, str], NoReturn]

_TOP = (
    "name", "about", "source", "dtype", "sizes", "inputs", "weights", "tensors", "outputs", "nodes",
)  # fmt: skip
_NODE = ("operator", "sizes", "reads", "writes", "repeat", "schedule", "implementation")
_TENSOR = ("shape", "type", "place", "over")
_MOST = 10_000  # nodes and tensors, of each
_LONGEST = 60  # characters of a name


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

        def fail(path: Path_, message: str) -> NoReturn:
            where = ".".join(str(part) for part in path)
            raise ProblemError(f"graph {self.name}: {where}{': ' * bool(where)}{message}")

        values = resolve({**self.sizes, **(given or {})}, f"graph {self.name}")
        return _Maker(self.data, values, dtype or self.dtype, fail).graph()


def declare(**data: Any) -> DeclaredGraph:
    """The graph in plain data, keys as in YAML. Raises `ProblemError` for errors in it."""

    def fail(path: Path_, message: str) -> NoReturn:
        where = ".".join(str(part) for part in path)
        name = printable(str(data.get("name", "")))[:_LONGEST]
        raise ProblemError(f"graph {name}{': ' * bool(where)}{printable(where)}: {message}")

    return _declared(data, fail)


def read(path: str | Path) -> DeclaredGraph:
    """The graph in a YAML file; raises `SpecError`, "file:line: message", in one line."""
    from perfmodel.hardware import yamlfile

    document = yamlfile.parse(yamlfile.read(Path(path)), str(path))

    def fail(where: Path_, message: str) -> NoReturn:
        raise SpecError(document.error(where, message))

    return _declared(document.data, fail)


def _declared(data: Mapping[str, Any], fail: Fail) -> DeclaredGraph:
    """The declaration, checked by making the graph once at its default sizes."""
    _keys((), data, _TOP, fail)
    for key in ("name", "nodes"):
        if not data.get(key):
            fail((), f"lacks {key}; a graph has {', '.join(_TOP)}")
    name = data["name"]
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST:
        fail(("name",), f"a name is up to {_LONGEST} printable characters")
    sizes = _table((), data, "sizes", fail)
    try:
        values = resolve(sizes, "sizes")
    except PerfmodelError as error:
        fail(("sizes",), str(error))
    about, source = (printable(str(data.get(key, ""))) for key in ("about", "source"))
    dtype = str(data.get("dtype", "bf16"))
    _Maker(data, values, dtype, fail).graph()
    return DeclaredGraph(name, about, source, dtype, sizes, data)


def _table(path: Path_, data: Mapping[str, Any], key: str, fail: Fail) -> dict[str, Any]:
    """The mapping under a key; empty where there is none."""
    table = data.get(key) or {}
    if not isinstance(table, Mapping):
        fail((*path, key), f"{key} is a mapping, such as {{name: value}}")
    if len(table) > _MOST:
        fail((*path, key), f"{len(table):,} {key} are more than {_MOST:,}, the most there may be")
    return dict(table)


def _keys(path: Path_, table: Mapping[str, Any], known: Sequence[str], fail: Fail) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            fail((*path, key), f"unknown key {quoted(str(key))}; {hint}")


def _names(path: Path_, said: Any, fail: Fail) -> tuple[str, ...]:
    """A name or a list of names."""
    if isinstance(said, str):
        return (said,)
    if isinstance(said, list | tuple) and all(isinstance(item, str) for item in said):
        return tuple(said)
    return fail(path, f"{quoted(repr(said))} is neither a name nor a list of names")


class _Maker:
    """Makes one graph from a declaration at given sizes; `fail` reports where it is wrong."""

    def __init__(
        self, data: Mapping[str, Any], values: Mapping[str, Any], dtype: str, fail: Fail
    ) -> None:
        self._data, self._values, self._dtype, self._fail = data, values, dtype, fail
        self._tensors: dict[str, Tensor] = {}

    def graph(self) -> Graph:
        """The graph, checked."""
        given = {}
        for key in ("inputs", "weights", "tensors"):
            given[key] = _table((), self._data, key, self._fail)
            for name, said in given[key].items():
                if name in self._tensors:
                    self._fail((key, name), f"tensor {name} is declared twice")
                self._tensors[name] = self._tensor((key, name), name, said)
        nodes = _table((), self._data, "nodes", self._fail)
        made = [self._node(name, said) for name, said in nodes.items()]
        outputs = _names(("outputs",), self._data.get("outputs", ()), self._fail)
        try:
            return Graph(
                str(self._data["name"]), tuple(made), self._tensors, tuple(given["inputs"]),
                tuple(given["weights"]), outputs, {**self._values, "dtype": self._dtype},
            )  # fmt: skip
        except PerfmodelError as error:
            return self._fail(("nodes",), str(error))

    def _tensor(self, path: Path_, name: str, said: Any) -> Tensor:
        table = said if isinstance(said, Mapping) else {"shape": said}
        _keys(path, table, _TENSOR, self._fail)
        if "shape" not in table:
            self._fail(path, f"tensor {name} has no shape; write [tokens, hidden]")
        listed = table["shape"]
        extents = listed if isinstance(listed, list | tuple) else (listed,)
        shape = tuple(self._whole(path, extent) for extent in extents)
        dtype, place, over = (str(table.get(key, "")) for key in ("type", "place", "over"))
        try:
            return Tensor(name, shape, dtype or self._dtype, place or OWN, over)
        except PerfmodelError as error:
            return self._fail(path, str(error))

    def _whole(self, path: Path_, said: Any) -> int:
        """The value of an expression of the sizes, which must be a whole number."""
        try:
            value = evaluate(said, self._values)
        except PerfmodelError as error:
            self._fail(path, str(error))
        if not is_whole(value):
            self._fail(path, f"{quoted(str(said))} is {value}, which is no whole number")
        return int(value)

    def _node(self, name: str, said: Any) -> Node:
        path: Path_ = ("nodes", name)
        if not isinstance(said, Mapping) or not isinstance(said.get("operator"), str):
            self._fail(
                path, "a node is {operator: NAME, sizes: {...}, reads: {...}, writes: {...}}"
            )
        _keys(path, said, _NODE, self._fail)
        reads, writes = (self._edges(path, said, key) for key in ("reads", "writes"))
        problem = self._problem(path, self._operator(path, said["operator"]), said)
        repeat = self._whole((*path, "repeat"), said.get("repeat", 1))
        how = {key: said[key] for key in ("schedule", "implementation") if key in said}
        for key, value in how.items():
            if not isinstance(value, str):
                self._fail((*path, key), f"{quoted(repr(value))} is no name; write one in quotes")
        try:
            node = Node(name, problem, reads, writes, repeat, **how)
        except PerfmodelError as error:
            self._fail(path, str(error))
        self._made(node)
        return node

    def _edges(self, path: Path_, said: Mapping[str, Any], key: str) -> tuple[Edge, ...]:
        table = _table(path, said, key, self._fail)
        found = []
        for operand, names in table.items():
            here = (*path, key, operand)
            part = isinstance(names, Mapping)
            if part:
                _keys(here, names, ("part",), self._fail)
                names = names.get("part")
            found.append(Edge(operand, _names(here, names, self._fail), part))
        return tuple(found)

    def _operator(self, path: Path_, name: str) -> Operator:
        try:
            return load(name)
        except PerfmodelError as error:
            return self._fail((*path, "operator"), str(error))

    def _problem(self, path: Path_, operator: Operator, said: Mapping[str, Any]) -> Problem:
        """The operator's problem: sizes are expressions; names and flags are taken as they are."""
        given = _table(path, said, "sizes", self._fail)
        options = {item.name: item for item in operator.options}
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in options:
                error = UnknownName(f"option of {operator.name}", name, options)
                self._fail((*path, "sizes", name), str(error))
            whole = isinstance(options[name], Size)
            found[name] = self._whole((*path, "sizes", name), value) if whole else value
        lacking = [name for name in operator.needed if name not in found]
        if lacking:
            self._fail(path, f"{operator.name} needs {', '.join(lacking)}; add to its sizes")
        if "dtype" in options:
            found.setdefault("dtype", self._dtype)
        try:
            problem = operator.problem(**{**operator.fixed, **found})
            assert problem.elements()  # raises for an unknown type
            return problem
        except (PerfmodelError, TypeError) as error:  # TypeError: text where a number belongs
            return self._fail((*path, "sizes"), str(error))

    def _made(self, node: Node) -> None:
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
