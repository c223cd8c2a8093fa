"""A graph by NumPy, with the same results as its C: where no compiler is, or is still at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.arithmetic import floor_sum
from perfmodel.compiled.bound import Search
from perfmodel.compiled.graph import MASKS, REDUCTIONS, Graph

_SLACK = 1.0 + 1e-9


class Interpreter:
    """The nodes of a graph for arrays of problems."""

    def __init__(self, graph: Graph, searches: Mapping[int, Search]) -> None:
        self.graph, self.searches = graph, searches

    def run(
        self, inputs: Mapping[str, np.ndarray], nodes: Sequence[int]
    ) -> tuple[list[np.ndarray], bool]:
        """The values of nodes with one value a problem, and whether a time lay below its bound."""
        broken = False

        def reduced(node: int) -> np.ndarray:
            nonlocal broken
            op, body = self.graph.nodes[node]
            if node in self.searches:
                columns, below = self._searched(inputs, node)
                broken |= below
                return columns
            table = self._values([body], _columns(inputs), lambda row: row[None], reduced)[0]
            if op == "largest":
                return np.asarray(table.max(axis=1))
            return np.asarray(getattr(np, op)(table, axis=1), dtype=np.float64)

        return self._values(nodes, inputs, lambda row: row, reduced), broken

    def _searched(self, inputs: Mapping[str, np.ndarray], node: int) -> tuple[np.ndarray, bool]:
        """The best column of each problem, by bounds (see `primitives.c`)."""
        search, body = self.searches[node], self.graph.nodes[node][1]
        n = len(next(iter(inputs.values())))
        first, rest = self._values(
            [search.first, search.rest], _columns(inputs), lambda row: row[None], None
        )
        groups = search.columns // search.size
        first, rest = (np.broadcast_to(each, (n, groups)) for each in (first, rest))
        best, column = np.full(n, np.inf), np.full(n, float(search.columns))

        def timed(value: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            own = {name: values[rows] for name, values in inputs.items()}
            return self._values([value], own, lambda row: row[columns], None)[0]

        def settle(low: np.ndarray, columns: np.ndarray) -> bool:
            """Takes pairs of rising bounds while one can win; rows are problems."""
            below, left = False, low.copy()
            while True:
                place = np.argmin(left, axis=1)
                least = left[np.arange(n), place]
                rows = np.flatnonzero((least <= best * _SLACK) & np.isfinite(least))
                if not rows.size:
                    return below
                chosen = columns[rows, place[rows]]
                times = timed(body, rows, chosen)
                below |= bool(np.any(times * _SLACK < least[rows]))
                wins = (times < best[rows]) | ((times == best[rows]) & (chosen < column[rows]))
                best[rows[wins]], column[rows[wins]] = times[wins], chosen[wins]
                left[rows, place[rows]] = np.inf

        firsts = np.broadcast_to(search.size * np.arange(groups), (n, groups))
        broken = settle(first, firsts)
        rows, group = np.nonzero(rest <= best[:, None] * _SLACK)
        offsets = np.arange(1, search.size)
        rows = np.repeat(rows, offsets.size)
        columns = (group[:, None] * search.size + offsets).ravel()
        if rows.size:
            low = np.full((n, search.columns), np.inf)
            low[rows, columns] = timed(search.bound, rows, columns)
            every = np.broadcast_to(np.arange(search.columns), low.shape)
            broken |= settle(low, every)
        return np.where(column < search.columns, column, 0.0), broken

    def _values(
        self,
        nodes: Sequence[int],
        inputs: Mapping[str, np.ndarray],
        menu: Callable[[np.ndarray], np.ndarray],
        reduced: Callable[[int], np.ndarray] | None,
    ) -> list[np.ndarray]:
        """Values of some nodes; `menu` gives those of a menu, `reduced` those of a reduction."""
        graph = self.graph
        order, last = _order(graph, nodes)
        values: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            for node in order:
                op, *rest = graph.nodes[node]
                if op == "constant":
                    values[node] = rest[0]
                elif op == "input":
                    values[node] = inputs[rest[0]]
                elif op == "table":
                    values[node] = menu(graph.tables[rest[0]])
                elif op in ("pick", "lookup"):
                    values[node] = graph.tables[rest[0]][np.asarray(values[rest[1]], dtype=np.intp)]
                elif op in REDUCTIONS:
                    assert reduced is not None
                    single = next(iter(inputs.values())).ndim == 1
                    values[node] = reduced(node) if single else reduced(node)[:, None]
                else:
                    values[node] = _value(op, [values[each] for each in rest])
                for each in last.get(node, ()):
                    del values[each]
        return [np.asarray(values[node], dtype=np.float64) for node in nodes]


def _value(op: str, given: list[Any]) -> Any:
    if op == "gcd":
        return np.gcd(*(np.asarray(each).astype(np.int64) for each in given)).astype(np.float64)
    if op == "floor_sum":
        return np.asarray(floor_sum(*(np.asarray(each) for each in given)), dtype=np.float64)
    if op == "where":
        return np.where(np.asarray(given[0], dtype=bool), given[1], given[2])
    if op.startswith("logical"):
        return getattr(np, op)(*(np.asarray(each, dtype=bool) for each in given))
    value = getattr(np, op)(*(np.asarray(each, dtype=np.float64) for each in given))
    return value if op in MASKS else np.asarray(value, dtype=np.float64)


def _columns(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[:, None] for name, values in inputs.items()}


def _order(graph: Graph, nodes: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
    """The nodes that some nodes need, arguments first, and those that are needed last by each."""
    reached: set[int] = set()
    rest = list(nodes)
    while rest:
        node = rest.pop()
        if node not in reached:
            reached.add(node)
            rest += () if graph.nodes[node][0] in REDUCTIONS else graph.arguments(node)
    users: dict[int, int] = {}
    for node in sorted(reached):
        for each in () if graph.nodes[node][0] in REDUCTIONS else graph.arguments(node):
            users[each] = node
    last: dict[int, list[int]] = {}
    for each, node in users.items():
        if each not in nodes:
            last.setdefault(node, []).append(each)
    return sorted(reached), last
