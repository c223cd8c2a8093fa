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
_FOLDED = frozenset({*_NEUTRAL, "maximum", "minimum", "floor", "ceil", "trunc", "square", "sqrt",
                     "cbrt", "negative"}) | MASKS  # fmt: skip
_COMMUTES = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"})
_ROUNDS = frozenset({"floor", "ceil", "trunc"})
# Operations that give whole numbers, those that do of whole numbers, and what a number gives with
# itself.
_WHOLE = MASKS | _ROUNDS | {"floor_divide", "gcd", "argmin", "argmax"}
_KEEPS_WHOLE = frozenset({"add", "subtract", "multiply", "maximum", "minimum", "square", "where"})
_WITH_ITSELF = {"subtract": 0.0, "divide": 1.0}


class Graph:
    """Nodes in the order in which they were recorded; a node's arguments have smaller ids."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tables: list[np.ndarray] = []
        self.spans: list[tuple[float, float]] = []
        """Bounds of each node over all problems and columns; an input states its least value."""
        self.positive: set[int] = set()
        """Nodes that were not negative for any sample problem, in any column."""
        self.whole: set[int] = set()
        """Nodes that are whole numbers."""
        self._ids: dict[Node, int] = {}
        self._table_ids: dict[bytes, int] = {}

    def put(self, *node: Any) -> int:
        """The id of a node, which is added where it is new."""
        if node not in self._ids:
            self._ids[node] = len(self.nodes)
            self.nodes.append(node)
            self.spans.append(self._span(*node))
            if self._is_whole(*node):
                self.whole.add(self._ids[node])
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
        if name == "logical_not" and last is not None:
            return self.constant(float(not last))
        if name == "where" and known[0] is not None:
            return arguments[1] if known[0] else arguments[2]
        rows = [self._row(each) for each in arguments]
        if name in _FOLDED and all(row is not None for row in rows):
            with np.errstate(all="ignore"):
                return self.table(np.asarray(getattr(np, name)(*rows), dtype=np.float64))
        if name in ("maximum", "minimum"):
            (low, high), (other_low, other_high) = (self.spans[each] for each in arguments)
            if high <= other_low or other_high <= low:
                return arguments[(high <= other_low) is (name == "maximum")]
        if name == "where" and arguments[1] == arguments[2]:
            return arguments[1]
        if name in _ROUNDS and arguments[0] in self.whole:
            return arguments[0]
        if name == "ceil" and self._is_share(arguments[0]):
            return self.constant(1.0)
        if name in _WITH_ITSELF and arguments[0] == arguments[1]:
            return self.constant(_WITH_ITSELF[name])
        if last == np.inf and name in ("less_equal", "less", "minimum"):
            return arguments[0] if name == "minimum" else self.constant(1.0)
        return self.put(name, *arguments)

    def is_power_of_two(self, node: int) -> bool:
        """Whether a node is a power of two, in every column: dividing by it rounds nothing."""
        row = self._row(node)
        return row is not None and bool(np.all(np.frexp(row)[0] == 2.0**-1))

    def _is_whole(self, op: str, *rest: Any) -> bool:
        """Whether a node is whole numbers, by its operation and those of its arguments."""
        if op == "constant":
            return float(rest[0]).is_integer()
        if op in ("table", "pick", "lookup"):
            return bool(np.all(self.tables[rest[0]] == np.floor(self.tables[rest[0]])))
        return op in _WHOLE or (
            op in _KEEPS_WHOLE and {*(rest[1:] if op == "where" else rest)} <= self.whole
        )

    def _is_share(self, node: int) -> bool:
        """Whether a node is x / (⌈x / d⌉ d), of x above 0 and a power of two d, so that nothing is
        rounded: it is above 0 and at most 1."""
        op, *parts = self.nodes[node]
        if op != "divide" or self.nodes[parts[1]][0] != "multiply" or self.spans[parts[0]][0] <= 0:
            return False
        ceiling, extent = self.arguments(parts[1])
        inner = self.nodes[self.arguments(ceiling)[0]] if self.nodes[ceiling][0] == "ceil" else ()
        if inner[1:2] != (parts[0],) or not self.is_power_of_two(extent):
            return False
        given, length = self.value(inner[2]), self.value(extent)
        return length is not None and (
            (inner[0] == "divide" and given == length)
            or (inner[0] == "multiply" and given == 1.0 / length)
        )

    def _row(self, node: int) -> np.ndarray | None:
        """The numbers of a constant or of a menu."""
        op, *rest = self.nodes[node]
        return self.tables[rest[0]] if op == "table" else (
            np.array(rest) if op == "constant" else None
        )  # fmt: skip

    def _span(self, op: str, *rest: Any) -> tuple[float, float]:
        """The bounds of a node, from those of its arguments."""
        if op == "constant":
            return rest[0], rest[0]
        if op in ("table", "pick", "lookup"):
            row = self.tables[rest[0]]
            return float(row.min()), float(row.max())
        if op == "input":
            return float(rest[1]), np.inf
        if op in MASKS:
            return 0.0, 1.0
        spans = [self.spans[each] for each in rest]
        (low, high), (other_low, other_high) = spans[0], spans[-1]
        if op == "add":
            return low + other_low, high + other_high
        if op == "subtract":
            return low - other_high, high - other_low
        if op == "maximum":
            return max(low, other_low), max(high, other_high)
        if op == "minimum":
            return min(low, other_low), min(high, other_high)
        if op == "where":
            return min(spans[1][0], other_low), max(spans[1][1], other_high)
        if low < 0 or other_low < 0:
            return (0.0, np.inf) if op in ("square", "absolute") else (-np.inf, np.inf)
        if op == "multiply":
            return _times(low, other_low), _times(high, other_high)
        if op == "divide":
            least = low / other_high if np.isfinite(other_high) else 0.0
            return least, high / other_low if other_low > 0 else np.inf
        if op in ("floor", "trunc", "ceil", "sqrt", "square"):
            return float(getattr(np, op)(low)), float(getattr(np, op)(high))
        return (-np.inf, np.inf) if op in ("negative", "log2", "exp") else (0.0, np.inf)

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

    def needed(self, nodes: Iterable[int], flags: list[bool]) -> list[int]:
        """Nodes with one value a problem that some nodes are computed from, arguments first."""
        reached: set[int] = set()
        rest = list(nodes)
        while rest:
            node = rest.pop()
            if node in reached:
                continue
            reached.add(node)
            rest += self.arguments(node)
            if self.nodes[node][0] == "pick":
                rest.append(self.nodes[node][2])
        return sorted(node for node in reached if not flags[node])


def _times(a: float, b: float) -> float:
    """A product of bounds, where nothing times infinity is nothing."""
    return 0.0 if 0.0 in (a, b) else a * b
