"""Mutations: small mistakes in a module's arithmetic, one at a time, as changes of its text.

They are typical mistakes in formulas: a wrong sign or factor, a dropped term, another axis, a
reversed comparison, min for max.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass

SIGNS: dict[type[ast.AST], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
FACTORS: dict[type[ast.AST], ast.operator] = {
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
}
COMPARISONS: dict[type[ast.AST], ast.cmpop] = {
    ast.Lt: ast.GtE(), ast.GtE: ast.Lt(), ast.LtE: ast.Gt(), ast.Gt: ast.LtE(),
    ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq(),
}  # fmt: skip
EXTREMES = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "ceil": "floor",
    "ceil_div": "floor_div", "floor_div": "ceil_div", "argmin": "argmax", "argmax": "argmin",
    "sum": "max",
}  # fmt: skip
AXES = {
    "m": "n", "n": "m", "k": "m", "q": "x", "x": "q", "g": "b", "r": "g", "d": "x", "rows": "cols",
    "cols": "rows", "query": "key", "key": "query", "columns": "rows", "seq_q": "seq_kv",
    "seq_kv": "seq_q", "hbm": "l2", "l2": "hbm", "hbm_bytes": "l2_bytes", "l2_bytes": "hbm_bytes",
    "hbm_latency": "l2_latency", "l2_latency": "hbm_latency",
}  # fmt: skip
"""What a key or an attribute may be mistaken for."""
PRODUCT = {"m", "n", "k"}
"""Arguments that may be mistaken for each other."""


@dataclass(frozen=True)
class Mutation:
    """The text from byte `start` of a file to byte `end`, and what stands there instead."""

    kind: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """The module's text with the mistake."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutations(source: bytes) -> list[Mutation]:
    """All mistakes of a module, in the order of its text, in functions alone."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        arguments = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
        for statement in function.body:
            for node in _arithmetic(statement):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
                for kind, after in _mistakes(node, arguments):
                    before = source[start:end].decode()
                    found.add(Mutation(kind, node.lineno, start, end, before, f"({after})"))
    return sorted(found, key=lambda one: (one.start, one.end, one.kind, one.after))


def _arithmetic(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement that are values: no annotation and no text."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.JoinedStr, ast.Raise, ast.Assert)):
            continue
        if isinstance(node, ast.AnnAssign):
            todo += [] if node.value is None else [node.value]
            continue
        # Of x[a, b] the place alone may be wrong; slices of arrays are shapes and no arithmetic.
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            todo.append(node.value)
        else:
            todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
            yield node


def _mistakes(node: ast.expr, arguments: Set[str]) -> Iterator[tuple[str, str]]:
    """Kinds and texts of what may stand in place of an expression."""
    if isinstance(node, ast.BinOp):
        left, right, operator = node.left, node.right, type(node.op)
        if operator in SIGNS:
            yield "sign", ast.unparse(ast.BinOp(left, SIGNS[operator], right))
            yield "dropped term", ast.unparse(left)
        elif operator in FACTORS:
            yield "factor", ast.unparse(ast.BinOp(left, FACTORS[operator], right))
            yield "dropped factor", ast.unparse(left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "factor", repr(2 * node.value if node.value else 1)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        turned = [COMPARISONS[type(node.ops[0])]]
        yield "comparison", ast.unparse(ast.Compare(node.left, turned, node.comparators))
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        if node.slice.value in AXES:
            other = ast.Constant(AXES[node.slice.value])
            yield "axis", ast.unparse(ast.Subscript(node.value, other, ast.Load()))
    elif isinstance(node, ast.Name) and node.id in arguments:
        others = sorted(PRODUCT & arguments - {node.id}) if node.id in PRODUCT else ()
        yield from (("axis", other) for other in others)
    elif isinstance(node, ast.Attribute) and node.attr in AXES:
        yield "axis", ast.unparse(ast.Attribute(node.value, AXES[node.attr], ast.Load()))


def _called(node: ast.Call) -> Iterator[tuple[str, str]]:
    """Calls with min and max (or similar pairs) exchanged."""
    function = node.func
    if isinstance(function, ast.Name) and function.id in EXTREMES:
        other: ast.expr = ast.Name(EXTREMES[function.id], ast.Load())
    elif isinstance(function, ast.Attribute) and function.attr in EXTREMES:
        other = ast.Attribute(function.value, EXTREMES[function.attr], ast.Load())
    else:
        return
    yield "extreme", ast.unparse(ast.Call(other, node.args, node.keywords))
    of_one = len(node.args) == 1 and not node.keywords
    if of_one and isinstance(function, ast.Name) and function.id in ("min", "max"):
        yield "sum", ast.unparse(ast.Call(ast.Name("sum", ast.Load()), node.args, []))
