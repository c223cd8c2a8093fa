"""Recorded operations as a graph: equal operations are one node, arguments come before results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Node = tuple[Any, ...]
"""An operation and its arguments: ids of nodes, or the plain values of a leaf."""

LEAVES = frozenset({"constant", "table", "input"})
"""Operations without arguments: a number, numbers a column of a menu, an array over problems."""
SEARCHES = {"argmin": "less", "argmax": "greater"}
"""Operations over all columns of a menu, and how a better column compares with the best so far."""
REDUCTIONS = frozenset({*SEARCHES, "largest"})
"""Operations over all columns of a menu, which leave one value a problem."""
MASKS = frozenset({
    "greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_not", "isfinite",
})  # fmt: skip
"""Operations whose result is a truth value."""
_SAME = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "invert": "logical_not",
         "true_divide": "divide", "float_power": "power", "fabs": "absolute"}  # fmt: skip
_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0, "power": 1.0}
_COMMUTES = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"})


class Graph:
    """Nodes in the order in which they were recorded; a node's arguments have smaller ids."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tables: list[np.ndarray] = []
        self._ids: dict[Node, int] = {}
        self._table_ids: dict[bytes, int] = {}

    def put(self, *node: Any) -> int:
        """The id of a node, which is added where it is new."""
        if node not in self._ids:
            self._ids[node] = len(self.nodes)
            self.nodes.append(node)
        return self._ids[node]

    def constant(self, value: float) -> int:
        """The node of a number."""
        return self.put("constant", float(value))

    def table(self, values: np.ndarray) -> int:
        """The node of numbers, one a column of a menu."""
        row = np.asarray(values, dtype=np.float64).ravel()
        return self.constant(row[0]) if np.all(row == row[0]) else self.put("table", self.row(row))

    def row(self, values: np.ndarray) -> int:
        """The place of numbers among the `tables`."""
        row = np.ascontiguousarray(values, dtype=np.float64)
        place = self._table_ids.setdefault(row.tobytes(), len(self.tables))
        if place == len(self.tables):
            self.tables.append(row)
        return place

    def operation(self, name: str, *arguments: int) -> int:
        """The node of an operation on nodes, without operations that change nothing."""
        name = _SAME.get(name, name)
        known = [self.value(each) for each in arguments]
        if name in _COMMUTES and known[0] is not None and len(known) == 2:
            arguments, known = arguments[::-1], known[::-1]
        last = known[-1]
        if last is not None and last == _NEUTRAL.get(name):
            return arguments[0]
        if (name == "multiply" and last == 0.0) or (name == "divide" and known[0] == 0.0):
            return self.constant(0.0)
        if name in ("logical_and", "logical_or") and last is not None:
            neutral = bool(last) is (name == "logical_and")
            return arguments[0] if neutral else self.constant(float(bool(last)))
        if name == "where" and known[0] is not None:
            return arguments[1] if known[0] else arguments[2]
        if name == "where" and arguments[1] == arguments[2]:
            return arguments[1]
        if last == np.inf and name in ("less_equal", "less", "minimum"):
            return arguments[0] if name == "minimum" else self.constant(1.0)
        return self.put(name, *arguments)

    def value(self, node: int) -> float | None:
        """The number of a constant; None for any other node."""
        op, *rest = self.nodes[node]
        return float(rest[0]) if op == "constant" else None

    def arguments(self, node: int) -> tuple[int, ...]:
        """The nodes that a node is computed from."""
        op, *rest = self.nodes[node]
        return () if op in LEAVES else tuple(rest[1:] if op in ("lookup", "pick") else rest)

    def by_column(self) -> list[bool]:
        """Whether each node has a value a column of a menu; a search over columns has one a
        problem."""
        flags: list[bool] = []
        for node, (op, *_) in enumerate(self.nodes):
            inner = any(flags[each] for each in self.arguments(node))
            flags.append(op == "table" or (inner and op not in REDUCTIONS))
        return flags

    def at(self, node: int, search: int) -> int:
        """A node's value in the column that a search chose."""
        flags, column = self.by_column(), self.value(search)
        memo = list(range(len(self.nodes)))
        if not flags[node]:
            return node
        for each in sorted(self.closure([node], flags)):
            op, *rest = self.nodes[each]
            if op == "table" and column is not None:
                memo[each] = self.constant(self.tables[rest[0]][int(column)])
            elif op == "table":
                memo[each] = self.put("pick", rest[0], search)
            elif op == "lookup":
                memo[each] = self.put(op, rest[0], *(memo[i] for i in rest[1:]))
            else:
                memo[each] = self.operation(op, *(memo[i] for i in rest))
        return memo[node]

    def closure(self, nodes: Iterable[int], flags: list[bool]) -> set[int]:
        """Nodes with a value a column that some nodes are computed from, these included."""
        reached: set[int] = set()
        rest = [node for node in nodes if flags[node]]
        while rest:
            node = rest.pop()
            if node not in reached:
                reached.add(node)
                rest += [each for each in self.arguments(node) if flags[each]]
        return reached
