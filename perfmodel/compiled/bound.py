"""Lower bounds of a node that cost less than the node, proven from how each operation rises.

A bound is built from the graph itself. Every node becomes a pair of nodes, of which one is never
above it and one never below. A node of exact arguments is exact, except that norms and greatest
common divisors, which cost most, are replaced. From there on each operation takes the ends of its
arguments that make it least and most. Three forms are known to rise although their parts do not:

- a p-norm lies between the 3-norm (p up to 3) or the maximum, and the sum
- a sum less a maximum of its own terms rises with each term
- y (1 + c x / (x + y)) rises with x and with y, for c of at least 0
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from perfmodel.compiled.graph import MASKS, REDUCTIONS, Graph
from perfmodel.frozen import dataclass

Ends = tuple[int | None, int | None]
"""Nodes that are never above and never below another one; None where none is known."""

_RISING = frozenset({"floor", "ceil", "trunc", "sqrt", "cbrt", "square", "exp2", "power"})


class Bounds:
    """The ends of the nodes of a graph, where menus lie between given ends."""

    def __init__(self, graph: Graph, menus: Mapping[int, tuple[int, int]]) -> None:
        self.graph, self.menus = graph, menus
        self.flags = graph.by_column()
        self.known: dict[int, Ends] = {}

    def least(self, node: int) -> int | None:
        """A node that is never above another one."""
        return self.ends(node)[0]

    def ends(self, node: int) -> Ends:
        """Both ends of a node."""
        for each in sorted(self.graph.closure([node], self.flags)):
            if each not in self.known:
                low, high = self._ends(each)
                if each in self.graph.positive and (low is None or low != high):
                    zero = self.graph.constant(0.0)
                    low = zero if low is None else self.graph.operation("maximum", low, zero)
                self.known[each] = low, high
        return self.known.get(node, (node, node))

    def _of(self, node: int) -> Ends:
        return self.known.get(node, (node, node))

    def _put(self, name: str, *arguments: int | None) -> int | None:
        """The node of an operation; None where an argument is not known."""
        if any(each is None for each in arguments):
            return None
        return self.graph.operation(name, *(each for each in arguments if each is not None))

    def _positive(self, node: int) -> bool:
        """Whether a node is known never to be negative."""
        return node in self.graph.positive or self.graph.spans[node][0] >= 0

    def _exact(self, node: int) -> bool:
        low, high = self._of(node)
        return low is not None and low == high and (node in self.known or not self.flags[node])

    def _ends(self, node: int) -> Ends:
        graph = self.graph
        op = graph.nodes[node][0]
        if op == "table":
            return self.menus.get(node, (node, node))
        norm = self._norm(node) if op == "where" else None
        if norm is not None:
            return norm
        arguments = graph.arguments(node)
        if all(map(self._exact, arguments)) and op not in ("gcd", "lookup"):
            new = graph.operation(op, *(int(self._of(each)[0] or 0) for each in arguments))
            return new, new
        if op in MASKS:
            never = self._surely(node, False)
            return self._surely(node, True), graph.operation("logical_not", never)
        a, b = self._of(arguments[0]), self._of(arguments[-1])
        positive = all(map(self._positive, arguments))
        if op in ("add", "minimum", "maximum"):
            return self._joined(op, a, b)
        if op == "subtract":
            if self._is_excess(node):
                return self._put(op, a[0], b[0]), self._put(op, a[1], b[1])
            return self._put(op, a[0], b[1]), self._put(op, a[1], b[0])
        if op == "where":
            return self._either(*arguments)
        if op in _RISING and positive:
            return self._put(op, a[0], *arguments[1:]), self._put(op, a[1], *arguments[1:])
        for place, other in ((0, 1), (1, 0)) if op in ("multiply", "divide") else ():
            factor = arguments[other]
            scales = (op == "multiply" or other) and self._exact(factor) and self._positive(factor)
            if scales and not self._positive(arguments[place]):
                (low, high), exact = self._of(arguments[place]), self._of(factor)[0]
                return self._put(op, low, exact), self._put(op, high, exact)
        if op == "multiply" and positive:
            loaded = self._loaded(node)
            if loaded is not None:
                return loaded
            return self._put(op, a[0], b[0]), self._put(op, a[1], b[1])
        if op == "divide" and positive:
            if arguments[1] in self._leaves("maximum", arguments[0], arguments[1:]):
                return graph.constant(1.0), None
            safe = b[0] is not None and (b[0] == b[1] or graph.spans[b[0]][0] > 0)
            low = self._put(op, a[0], b[1])
            low = graph.constant(0.0) if low is None else low
            return low, self._put(op, a[1], b[0]) if safe else None
        return None, None

    def _joined(self, op: str, a: Ends, b: Ends) -> Ends:
        """Ends of a sum, of the larger or of the smaller of two; one known end may be enough."""
        ends = [self._put(op, x, y) for x, y in zip(a, b, strict=True)]
        place = {"maximum": 0, "minimum": 1}.get(op)
        if place is not None and ends[place] is None:
            ends[place] = b[place] if a[place] is None else a[place]
        return ends[0], ends[1]

    def _either(self, condition: int, yes: int, no: int) -> Ends:
        """Ends of a choice: those of one branch where the condition is certain, else of both."""
        graph = self.graph
        surely, never = self._surely(condition, True), self._surely(condition, False)
        ends: list[int | None] = []
        for join, (a, b) in zip(
            ("minimum", "maximum"), zip(self._of(yes), self._of(no), strict=True), strict=True
        ):
            both = self._put(join, a, b)
            ends.append(
                None
                if a is None or b is None or both is None
                else graph.operation("where", surely, a, graph.operation("where", never, b, both))
            )
        return ends[0], ends[1]

    def _surely(self, node: int, truth: bool) -> int:
        """A node that is true only where a condition is certainly true, or certainly false."""
        graph = self.graph
        op, *rest = graph.nodes[node]
        no = graph.constant(0.0)
        if self._exact(node):
            known = self._of(node)[0]
            assert known is not None
            return known if truth else graph.operation("logical_not", known)
        if op == "logical_not":
            return self._surely(rest[0], not truth)
        if op in ("logical_and", "logical_or"):
            sides = [self._surely(each, truth) for each in rest]
            return graph.operation(
                "logical_and" if (op == "logical_and") is truth else "logical_or", *sides
            )
        if op not in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            return no
        (low, high), (other_low, other_high) = (self._of(each) for each in rest)
        above, below = self._put("greater", low, other_high), self._put("less", high, other_low)
        if op in ("equal", "not_equal"):
            if (op == "not_equal") is not truth:
                return no
            sides = [each for each in (above, below) if each is not None]
            return (
                no
                if not sides
                else (sides[0] if len(sides) == 1 else graph.operation("logical_or", *sides))
            )
        answer = above if op.startswith("greater") is truth else below
        return no if answer is None else answer

    def _leaves(self, op: str, node: int, uncut: Collection[int] = ()) -> list[int]:
        """The terms of a sum, or of a maximum, of more than two; those in `uncut` stay whole."""
        terms, rest = [], [node]
        while rest:
            each = rest.pop()
            if self.graph.nodes[each][0] == op and each not in uncut:
                rest += self.graph.arguments(each)
            else:
                terms.append(each)
        return terms

    def _is_excess(self, node: int) -> bool:
        total, longest = self.graph.arguments(node)
        terms = self._leaves("add", total)
        return (
            all(
                self._exact(each) or each in terms
                for each in self._leaves("maximum", longest, terms)
            )
            and self.graph.nodes[longest][0] == "maximum"
        )

    def _norm(self, node: int) -> Ends | None:
        """Ends of a p-norm of the form scale · (Σ (t / scale)^p)^(1/p), scale the largest t."""
        graph = self.graph
        positive, scaled, zero = graph.arguments(node)
        if graph.nodes[scaled][0] != "multiply" or graph.value(zero) != 0.0:
            return None
        scale, root = graph.arguments(scaled)
        if graph.nodes[root][0] != "power" or graph.nodes[scale][:2] != ("where", positive):
            return None
        top = graph.arguments(scale)[1]
        terms, powers = [], set()
        for each in self._leaves("add", graph.arguments(root)[0]):
            ratio = graph.arguments(each)[0] if graph.nodes[each][0] == "power" else each
            if graph.nodes[ratio][0] != "divide" or graph.arguments(ratio)[1] != scale:
                return None
            terms.append(graph.arguments(ratio)[0])
            powers.add(graph.value(graph.arguments(each)[-1]))
        if len(powers) != 1 or not {*self._leaves("maximum", top, terms)} <= {*terms}:
            return None
        lows, highs = zip(*(self._of(each) for each in terms), strict=True)
        power = powers.pop()
        if power is not None and 1.0 <= power <= 3.0:
            cubes = [self._put("multiply", self._put("square", low), low) for low in lows]
            low = self._put("cbrt", self._folded("add", cubes))
        else:
            low = self._folded("maximum", lows)
        return low, self._folded("add", highs)

    def _folded(self, op: str, nodes: list[int | None] | tuple[int | None, ...]) -> int | None:
        total, *rest = nodes
        for each in rest:
            total = self._put(op, total, each)
        return total

    def _loaded(self, node: int) -> Ends | None:
        """Ends of y (1 + c x / max(x + y, tiny)), for c of at least 0."""
        graph = self.graph
        for y, factor in (graph.arguments(node), graph.arguments(node)[::-1]):
            if graph.nodes[factor][0] != "add" or graph.value(graph.arguments(factor)[1]) != 1.0:
                continue
            scaled = graph.arguments(factor)[0]
            if graph.nodes[scaled][0] != "multiply":
                continue
            ratio, slope = graph.arguments(scaled)
            if graph.nodes[ratio][0] != "divide" or graph.value(slope) is None:
                continue
            x, total = graph.arguments(ratio)
            total, tiny = (
                graph.arguments(total) if graph.nodes[total][0] == "maximum" else (total, None)
            )
            if graph.nodes[total][0] != "add" or {*graph.arguments(total)} != {x, y}:
                continue
            ends = []
            for x_end, y_end in zip(self._of(x), self._of(y), strict=True):
                below = self._put("add", x_end, y_end)
                below = below if tiny is None else self._put("maximum", below, tiny)
                load = self._put("multiply", self._put("divide", x_end, below), slope)
                ends.append(
                    self._put("multiply", y_end, self._put("add", load, graph.constant(1.0)))
                )
            return ends[0], ends[1]
        return None


# Menus of at least so many columns are searched by bounds.
_LONG = 24


@dataclass(frozen=True)
class Search:
    """How the best column of a menu is found: groups of columns are bounded, then columns."""

    first: int
    """Lower bound of the first column of each group."""
    rest: int
    """Lower bound of all other columns of each group; infinite where they repeat the first."""
    bound: int
    """Lower bound of a column."""
    columns: int
    """Columns of the menu."""
    size: int
    """Columns of a group."""
    menu: int
    """A table of all columns."""
    grouped: int
    """A table of all groups."""


def searches(graph: Graph, nodes: Sequence[int]) -> dict[int, Search]:
    """The searches by bounds among what some nodes are computed from."""
    by_node = {}
    for node in graph.needed(nodes, graph.by_column()):
        search = _search(graph, graph.nodes[node][1]) if graph.nodes[node][0] == "argmin" else None
        if search is not None:
            by_node[node] = search
    return by_node


def _search(graph: Graph, body: int) -> Search | None:
    """The search for the least `body`; None for short menus and where nothing is proven."""
    flags = graph.by_column()
    closure = graph.closure([body], flags)
    menus = [each for each in closure if graph.nodes[each][0] == "table"]
    rows = {each: graph.tables[graph.nodes[each][1]] for each in menus}
    columns = len(next(iter(rows.values())))
    inner = graph.needed([body, *closure], flags)
    if columns < _LONG or any(graph.nodes[each][0] in REDUCTIONS for each in inner):
        return None
    size = _group(list(rows.values()))
    firsts, others = {}, {}
    for each, row in rows.items():
        table, parts = graph.table(row[::size]), row.reshape(-1, size)[:, min(1, size - 1) :]
        firsts[each] = table, table
        others[each] = graph.table(parts.min(axis=1)), graph.table(parts.max(axis=1))
    single, several, own = (Bounds(graph, ends) for ends in (firsts, others, {}))
    first, rest, bound = (each.least(body) for each in (single, several, own))
    if first is None or rest is None or bound is None:
        return None
    infinite = graph.constant(np.inf)
    # Columns that compute the same as the first one cannot win.
    same = graph.constant(1.0)
    for each in _chain_ends(graph, [m for m in menus if firsts[m] != others[m]], body):
        (low, high), (own_end, _) = several.ends(each), single.ends(each)
        for end in (high, own_end):
            equal = graph.constant(0.0)
            if low is not None and end is not None:
                equal = graph.operation("equal", low, end)
            same = graph.operation("logical_and", same, equal)
    rest = graph.operation("where", same, infinite, rest) if size > 1 else infinite
    grouped = next(each for each in menus if graph.nodes[firsts[each][0]][0] == "table")
    places = (graph.nodes[each][1] for each in (grouped, firsts[grouped][0]))
    return Search(first, rest, bound, columns, size, *places)


def _group(rows: Sequence[np.ndarray]) -> int:
    """Columns of a group: within it as many menus as possible are constant."""
    columns = len(rows[0])
    best = (0, 1)
    for size in range(2, columns // 2 + 1):
        if columns % size == 0:
            parts = [row.reshape(-1, size) for row in rows]
            same = sum(bool(np.all(part == part[:, :1])) for part in parts)
            best = max(best, (same, size))
    return best[1] if best[0] else 1


def _chain_ends(graph: Graph, menus: Sequence[int], node: int) -> set[int]:
    """Nodes that decide a node where only some menus differ: the ends of their single chains."""
    users: dict[int, list[int]] = {}
    for each in graph.closure([node], graph.by_column()):
        for argument in graph.arguments(each):
            users.setdefault(argument, []).append(each)
    ends = set()
    for each in menus:
        end = each
        while len(users.get(end, ())) == 1:
            end = users[end][0]
        ends.add(end)
    return ends
