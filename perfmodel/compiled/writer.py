"""A graph as C: one function that computes a vector of problems at a time, menus searched in loops.

Numbers and menus of a device are parameters, so that one function serves all devices whose graphs
have the same operations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from perfmodel.compiled.bound import Search
from perfmodel.compiled.graph import MASKS, REDUCTIONS, SEARCHES, Graph

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "greater": ">", "less": "<",
    "greater_equal": ">=", "less_equal": "<=", "equal": "==", "not_equal": "!=",
    "logical_and": "&", "logical_or": "|",
}  # fmt: skip
# How a function reads an array over problems and a menu: problems and one column, or pairs.
_BY_ROW = ("load({} + i)", "B({}[c])")
_BY_PAIR = ("gather({}, p)", "gather({}, q)")
# Functions whose names C has already.
_OWN_NAME = frozenset({"floor", "ceil", "trunc", "sqrt", "exp", "cbrt", "log2", "exp2",
                       "remainder", "isfinite"})  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A graph as C, and the numbers that one device puts into it."""

    source: str
    """The C source; its only parameters are those of `run`."""
    inputs: tuple[str, ...]
    """The arrays over problems, in order."""
    constants: np.ndarray
    """Numbers that the source calls K."""
    tables: tuple[np.ndarray, ...]
    """Menus that the source calls T."""


Guard = tuple[int, str]
"""A node, and whether `any` or `all` of its values were true."""


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.lines = graph, [""]
        self.lines.clear()
        self.functions: list[str] = []
        self.constants: dict[float, int] = {}
        self.tables: dict[int, int] = {}
        self.inputs: dict[str, int] = {}
        self.searches: list[str] = []
        self.flags = graph.by_column()  # of searches too, whose nodes are in the graph already
        self.masks: set[int] = set()
        self.leaves = _BY_ROW
        self.inverted: dict[int, int] = {}
        self.loose = False

    def number(self, node: int) -> str:
        """A node as a vector of numbers."""
        value = self.graph.value(node)
        if value is not None:
            return f"B(K[{self.constants.setdefault(value, len(self.constants))}])"
        return f"NUM(v{node})" if node in self.masks else f"v{node}"

    def truth(self, node: int) -> str:
        """A node as a mask."""
        return f"v{node}" if node in self.masks else f"TRUE({self.number(node)})"

    def row(self, table: int) -> str:
        """A menu by its name in C."""
        return f"T[{self.tables.setdefault(table, len(self.tables))}]"

    def expression(self, node: int) -> str:
        """A node from its arguments; notes whether it is a mask."""
        op, *rest = self.graph.nodes[node]
        if op == "input":
            place = self.inputs.setdefault(rest[0], len(self.inputs))
            return self.leaves[0].format(f"(X + {place} * stride)")
        if op == "table":
            return self.leaves[1].format(self.row(rest[0]))
        if op in ("pick", "lookup"):
            return f"gather({self.row(rest[0])}, {self.number(rest[1])})"
        arguments = self.graph.arguments(node)
        if node in self.inverted:
            return f"{self.number(arguments[0])} * {self.inverse(arguments[1])}"
        if op == "where" and {*arguments[1:]} <= self.masks:
            self.masks.add(node)
            yes, no = (f"v{each}" for each in arguments[1:])
            return f"({self.truth(rest[0])} & {yes}) | (~{self.truth(rest[0])} & {no})"
        if op == "where":
            yes, no = (self.number(each) for each in arguments[1:])
            return f"choose({self.truth(rest[0])}, {yes}, {no})"
        if op in MASKS:
            self.masks.add(node)
        form = self.truth if op.startswith("logical") else self.number
        names = [form(each) for each in arguments]
        if op == "logical_not":
            return f"~{names[0]}"
        if op == "negative":
            return f"-{names[0]}"
        if op in _INFIX:
            text = f"{names[0]} {_INFIX[op]} {names[1]}"
            return f"(Q)({text})" if op in MASKS else text
        if op == "cbrt" and self.loose:
            return f"root({names[0]})"
        return f"{op}{'_' if op in _OWN_NAME else ''}({', '.join(names)})"

    def inverse(self, node: int) -> str:
        """One over a divisor."""
        value, (op, *rest) = self.graph.value(node), self.graph.nodes[node]
        if value is not None:
            return self.number(self.graph.constant(1.0 / value))
        if op == "table":
            return self.leaves[1].format(self.row(self.graph.row(1.0 / self.graph.tables[rest[0]])))
        return f"r{node}"

    def define(self, node: int, indent: str, divisors: Collection[int] = ()) -> None:
        """The statement that computes a node, and one over it where others divide by it."""
        if self.graph.value(node) is None:
            text = self.expression(node)
            kind = "Q" if node in self.masks else "V"
            self.lines.append(f"{indent}const {kind} v{node} = {text};")
            if node in divisors and self.graph.nodes[node][0] != "table":
                self.lines.append(f"{indent}const V r{node} = inverse({self.number(node)});")

    def reduce(self, node: int) -> None:
        """The loop over the columns of a menu."""
        op, body = self.graph.nodes[node]
        columns = sorted(self.graph.closure([body], self.flags))
        menu = next(rest[0] for name, *rest in map(self.graph.nodes.__getitem__, columns)
                    if name == "table")  # fmt: skip
        self.row(menu)
        first = "INFINITY" if op == "argmin" else "-INFINITY"
        place = "" if op == "largest" else f", v{node} = B(0.0)"
        best = f"v{node}" if op == "largest" else f"b{node}"
        self.lines += [
            f"    V {best} = B({first}){place};",
            f"    for (long c = 0; c < M[{self.tables[menu]}]; c++) {{",
        ]
        for each in columns:
            self.define(each, "      ")
        value = self.number(body)
        if op == "largest":
            self.lines.append(f"      {best} = maximum({best}, {value});")
        else:
            sign = "<" if SEARCHES[op] == "less" else ">"
            self.lines += [
                f"      const Q better = (Q)({value} {sign} {best});",
                f"      {best} = choose(better, {value}, {best});",
                f"      v{node} = choose(better, B(c), v{node});",
            ]
        self.lines.append("    }")

    def function(
        self, head: str, nodes: Sequence[int], leaves: tuple[str, str], tail: str, *, loose: bool
    ) -> None:
        """A function of its own, that computes some nodes, `loose` where rounding may differ."""
        outer, self.lines, self.leaves, masks = self.lines, [], leaves, self.masks
        inverted = self.inverted
        self.masks, self.loose = set(), loose
        columns = self.graph.closure(nodes, self.flags)
        needed = self.graph.needed([*nodes, *columns], self.flags)
        self.inverted = self.inverses([*columns, *needed], loose=loose)
        divisors = set(self.inverted.values())
        for node in needed:
            self.define(node, "  ", divisors)
        loops = "groups" in head
        self.lines += ["  for (long c = 0; c < groups; c++) {"] if loops else []
        for node in sorted(columns):
            self.define(node, "  ", divisors)
        tail = tail.format(*(self.number(node) for node in nodes))
        self.functions += [head, *self.lines, tail, "}" if not loops else "}}"]
        self.lines, self.leaves, self.masks, self.inverted = outer, _BY_ROW, masks, inverted
        self.loose = False

    def inverses(self, nodes: Iterable[int], *, loose: bool) -> dict[int, int]:
        """Quotients that are products with one over their divisor, and that divisor: powers of two
        anywhere; others where a `loose` quotient may be off by a rounding, which no operation
        rounds or compares."""
        graph = self.graph
        strict = {"floor", "ceil", "trunc", "floor_divide", "remainder"} | MASKS
        exact: set[int] = set()
        for node in sorted(nodes, reverse=True):
            if node in exact or graph.nodes[node][0] in strict:
                exact.update(graph.arguments(node))
        quotients = (node for node in nodes if graph.nodes[node][0] == "divide")
        divisors = {node: graph.arguments(node)[1] for node in quotients}
        return {
            node: divisor
            for node, divisor in divisors.items()
            if graph.is_power_of_two(divisor) or (loose and node not in exact)
        }

    def search(self, node: int, search: Search) -> None:
        """The functions that search the columns of a menu by bounds."""
        self.function(
            f"static void level{node}(DATA, long i, long groups, V *first, V *rest) {{",
            [search.first, search.rest], _BY_ROW, "  first[c] = {}; rest[c] = {};", loose=True,
        )  # fmt: skip
        for name, value in (("bound", search.bound), ("full", self.graph.nodes[node][1])):
            head = f"static V {name}{node}(DATA, V p, V q) {{"
            self.function(head, [value], _BY_PAIR, "  return {};", loose=name == "bound")
        groups, columns = (self.tables[each] for each in (search.grouped, search.menu))
        self.searches.append(
            f"    broken |= search(X, stride, K, T, start, size, M[{groups}], M[{columns}], "
            f"level{node}, bound{node}, full{node}, columns{node});"
        )

    def program(
        self, outputs: Sequence[int], guards: Sequence[Guard], searches: Mapping[int, Search]
    ) -> Program:
        """The whole source."""
        searched = []
        needed = self.graph.needed([*outputs, *(node for node, _ in guards)], self.flags)
        self.inverted = self.inverses(needed, loose=False)
        for node in needed:
            op = self.graph.nodes[node][0]
            if node in searches:
                self.search(node, searches[node])
                searched.append(f"    double columns{node}[BATCH] = {{0}};")
                self.lines.append(f"    const V v{node} = load(columns{node} + i - start);")
            elif op in REDUCTIONS:
                self.reduce(node)
            else:
                self.define(node, "    ")
        for place, node in enumerate(outputs):
            self.lines.append(f"    store(Y + {place} * stride + i, {self.number(node)});")
        starts, ends = [], [f"  G[{len(guards)}] = broken;"]
        for place, (node, quantifier) in enumerate(guards):
            some = quantifier == "any"
            self.lines.append(f"    g{place} {'|' if some else '&'}= {self.truth(node)};")
            starts.append(f"  Q g{place} = (Q){{}}{'' if some else ' - 1'};")
            ends.append(f"  G[{place}] = {f'some(g{place})' if some else f'!some(~g{place})'};")
        text = [
            files("perfmodel.compiled").joinpath("primitives.c").read_text(encoding="utf-8"),
            *self.functions,
            "void run(long n, const double *X, double *Y, long stride, const double *K,",
            "         const double *const *T, const long *M, long *G) {",
            "  long broken = 0;", *starts,
            "  for (long start = 0; start < n; start += BATCH) {",
            "    long size = n - start < BATCH ? n - start : BATCH;",
            *searched, *self.searches,
            "  for (long i = start; i < start + size; i += L) {", *self.lines, "  }}",
            *ends, "}", "",
        ]  # fmt: skip
        return Program(
            "\n".join(text),
            tuple(self.inputs),
            np.array([*self.constants, 0.0]),
            tuple(self.graph.tables[table] for table in self.tables),
        )


def write(
    graph: Graph,
    outputs: Sequence[int],
    guards: Sequence[Guard],
    searches: Mapping[int, Search],
) -> Program:
    """A function of some nodes and of whether any or all of other nodes hold."""
    return _Writer(graph).program(outputs, guards, searches)
