"""Sizes as expressions of other sizes: `heads / kv_heads`, `log2(x) / x`. Only given names are
allowed.

They are parsed with Python's grammar and evaluated on the syntax tree: numbers, names, operators
(+ - * / // %), the functions log2, sqrt, ceil, min, max and busiest (rows of the busiest of ranks
that share experts: rows, experts, ranks, experts chosen, skew), and one comparison. A quotient that
is whole stays an integer.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from perfmodel.algorithms.grouped import busiest_rows
from perfmodel.arithmetic import maximum, minimum
from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted

_MOST_CHARACTERS = 200
_NO_EXPRESSION = "{} is not an expression such as heads / kv_heads"


def _divide(a: Any, b: Any) -> Any:
    quotient = a / b
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else quotient


def _either(plain: Callable[[Any], Any], of_arrays: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of plain numbers and of arrays."""
    return lambda value: (of_arrays if isinstance(value, np.ndarray) else plain)(value)


_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "log2": _either(math.log2, np.log2),
    "sqrt": _either(math.sqrt, np.sqrt),
    "ceil": _either(math.ceil, np.ceil),
    "min": lambda *values: reduce(minimum, values),
    "max": lambda *values: reduce(maximum, values),
    "busiest": busiest_rows,
}


def evaluate(said: Any, values: Mapping[str, Any]) -> Any:
    """The value of a number or of an expression of `values`; of arrays, which are float64, an
    array.

    Raises `ProblemError` in one line.
    """
    if isinstance(said, bool | int | float | np.ndarray):
        return said
    if not isinstance(said, str) or len(said) > _MOST_CHARACTERS:
        text = quoted(said if isinstance(said, str) else repr(said))
        raise ProblemError(f"{text} is not a size: write a number or an expression of parameters")
    tree = _tree(said)
    if tree is None:
        raise ProblemError(_NO_EXPRESSION.format(quoted(said)))
    try:
        with np.errstate(divide="raise", invalid="raise"):
            return _value(tree, values)
    except (SyntaxError, RecursionError):
        raise ProblemError(_NO_EXPRESSION.format(quoted(said))) from None
    except (ArithmeticError, ValueError, TypeError) as error:  # ValueError: sqrt(-1)
        sizes = ", ".join(
            f"{name} = {np.ravel(values[name])[0]:g}" for name in sorted(names(said) & {*values})
        )
        raise ProblemError(f"{quoted(said)} has no value: {error}; change {sizes}") from None


def names(said: Any) -> set[str]:
    """Names that an expression uses."""
    tree = _tree(said) if isinstance(said, str) and len(said) <= _MOST_CHARACTERS else None
    if tree is None:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _FUNCTIONS.keys()


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr | None:
    """The syntax tree of an expression; None where the text is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: parentheses
        return None


def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        if node.id in values:
            return values[node.id]
        matches = get_close_matches(node.id, values, n=1)
        hint = f"did you mean {matches[0]}?" if matches else f"known: {', '.join(values) or 'none'}"
        raise ProblemError(f"unknown size {node.id!r}; {hint}")
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, values), _value(node.right, values)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = _value(node.left, values), _value(node.comparators[0], values)
        return _COMPARISONS[type(node.ops[0])](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None:
            return function(*(_value(item, values) for item in node.args))
    raise SyntaxError


def resolve(said: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Values of parameters that may be expressions of one another. A cycle raises
    `ProblemError`."""
    values: dict[str, Any] = {}

    def settle(name: str, open_: tuple[str, ...]) -> None:
        if name in values:
            return
        if name in open_:
            ring = " → ".join((*open_[open_.index(name) :], name))
            raise ProblemError(f"{owner}: sizes form a cycle: {ring}")
        for need in sorted(names(said[name]) & said.keys()):
            settle(need, (*open_, name))
        values[name] = evaluate(said[name], values)

    for name in said:
        settle(name, ())
    return {name: values[name] for name in said}
