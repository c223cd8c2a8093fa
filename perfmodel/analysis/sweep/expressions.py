"""Conditions on columns, such as `time_us < 100 and limiter == hbm`; never evaluated as code.

    condition  = comparisons joined by and, or, not and parentheses
    comparison = value (< <= > >= == = !=) value
    value      = column, number, name, + - * / and parentheses

Numbers compare with numbers; a text column compares (== or !=) with a bare or a quoted name. Words
become plain identifiers, Python's grammar reads the rest, and its tree becomes array operations.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.plaintext import quoted

Kind = Literal["number", "text", "truth", "name"]
Columns = Mapping[str, np.ndarray]
SHORT = {
    "time": "time_us",
    "bytes": "bytes_hbm",
    "flops": "useful_flops",
    "memory": "footprint_bytes",
}
"""Short names of columns."""

_WORDS = 300  # words of an expression: each one of a sum adds a nested call
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[A-Za-z_][\w.-]*)|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|==|!=|[-<>=+*/()]))"
)
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_LOGIC: dict[type, Callable[[Any, Any], Any]] = {ast.And: np.logical_and, ast.Or: np.logical_or}


@dataclass(frozen=True)
class Expression:
    """A parsed expression."""

    text: str
    """As it was written."""
    kind: Kind
    """Type of its value."""
    evaluate: Callable[[Columns], Any]
    """Computes its value from columns."""
    columns: frozenset[str] = frozenset()
    """Columns that it reads."""

    def __call__(self, columns: Columns) -> np.ndarray:
        """Its value in every row."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(self.evaluate(columns))


def condition(text: str, kinds: Mapping[str, str]) -> Expression:
    """The condition `text` over columns of the given kinds ("number", "text", "truth").

    Raises `ProblemError`, in one line, for text that is not a condition, and `UnknownName` for an
    unknown column.
    """
    expression = _Reader(text, kinds).expression()
    if expression.kind != "truth":
        raise ProblemError(f'{quoted(text)} is no condition; write one like "time_us < 100"')
    return expression


def quantity(text: str, kinds: Mapping[str, str]) -> Expression:
    """The number `text` in every row: a column or arithmetic of columns. Errors as above."""
    expression = _Reader(text, kinds).expression()
    if expression.kind != "number":
        raise ProblemError(f"{quoted(text)} is not a number; name a column such as time_us")
    if not expression.columns:
        raise ProblemError(f"{quoted(text)} is the same in every row; name a column of it")
    return expression


class _Reader:
    """Reads one text over columns of given kinds."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        self._text, self._kinds = text, kinds
        self._words: list[str] = []

    def expression(self) -> Expression:
        """The expression. Raises `ProblemError` and `UnknownName`."""
        source = " ".join(self._source())
        try:
            tree = ast.parse(source, mode="eval")
        except (SyntaxError, RecursionError, MemoryError):  # the last two: parentheses
            raise self._error("it cannot be read as an expression") from None
        expression = self._built(tree.body)
        if expression.kind == "name":
            raise self._no_column(expression.text)
        return Expression(self._text, expression.kind, expression.evaluate, expression.columns)

    def _source(self) -> list[str]:
        """The text with identifiers for its words, which may have hyphens or be Python's own."""
        parts, place = [], 0
        while self._text[place:].strip():
            match = _TOKEN.match(self._text, place)
            if match is None:
                rest = self._text[place:].strip()[:12]
                raise self._error(f"it cannot be read at {rest!r}")
            token, place = match[0].strip(), match.end()
            if match["number"]:
                token = repr(float(token)).replace("inf", "1e999")
            elif match["quoted"] or (match["word"] and token not in ("and", "or", "not")):
                self._words.append(token)
                token = f"w{len(self._words) - 1}"
            parts.append("==" if token == "=" else token)
        if not parts:
            raise ProblemError('an empty condition; write one like "time_us < 100"')
        if len(parts) > _WORDS:
            raise self._error(f"more than {_WORDS} words")
        return parts

    def _built(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant(value=float() as value):
                number = np.float64(value)  # so that division by zero is infinite, as for columns
                return Expression(f"{value:g}", "number", lambda _: number)
            case ast.Name(id=name):
                return self._word(self._words[int(name[1:])])
            case ast.BoolOp(op=op, values=[first, *others]):
                expression = self._built(first)
                for other in others:
                    expression = self._joined("conditions", _LOGIC[type(op)], expression, other)
                return expression
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._checked("truth", "conditions", self._built(operand))
                return Expression("", "truth", lambda c: ~inner.evaluate(c), inner.columns)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                zero = Expression("0", "number", lambda _: 0.0)
                return self._joined("numbers", operator.sub, zero, operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self._joined("numbers", _ARITHMETIC[type(op)], self._built(left), right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._relation(op, self._built(left), self._built(right))
            case ast.Compare():
                raise self._error("comparisons do not chain; join two with and")
        raise self._error("it cannot be read as an expression")

    def _word(self, word: str) -> Expression:
        if word[0] in "'\"":
            return Expression(word[1:-1], "name", lambda _: word[1:-1])
        name = word if word in self._kinds else SHORT.get(word, word)
        if name in self._kinds:
            kind: Any = self._kinds[name]
            return Expression(word, kind, lambda c: c[name], frozenset({name}))
        if word.lower() in ("true", "false"):
            truth = word.lower() == "true"
            return Expression(word, "truth", lambda _: truth)
        return Expression(word, "name", lambda _: word)

    def _relation(self, op: ast.cmpop, left: Expression, right: Expression) -> Expression:
        kinds = {left.kind, right.kind}
        for side, other in ((left, right), (right, left)):
            if side.kind == "name" and other.kind != "text":
                raise self._no_column(side.text)
        if kinds == {"text", "name"}:
            kinds = {"text"}
        if len(kinds) > 1:
            raise self._error(f"{left.text!r} and {right.text!r} cannot be compared")
        if kinds != {"number"} and not isinstance(op, ast.Eq | ast.NotEq):
            raise self._error("text has no order; use == or !=")
        return _both("truth", _COMPARE[type(op)], left, right)

    def _joined(
        self, parts: str, join: Callable[[Any, Any], Any], left: Expression, node: ast.expr
    ) -> Expression:
        """Two conditions, or two numbers, joined."""
        kind: Kind = "truth" if parts == "conditions" else "number"
        right = self._built(node)
        for side in (left, right):
            self._checked(kind, parts, side)
        return _both(kind, join, left, right)

    def _checked(self, kind: Kind, parts: str, side: Expression) -> Expression:
        if side.kind == "name":
            raise self._no_column(side.text)
        if side.kind != kind:
            raise self._error(f"{side.text or 'a part of it'!r} stands where {parts} are joined")
        return side

    def _error(self, fault: str) -> ProblemError:
        return ProblemError(f'{quoted(self._text)}: {fault}; write it like "time_us < 100"')

    def _no_column(self, name: str) -> UnknownName:
        return UnknownName("column", name, [*self._kinds, *SHORT])


def _both(
    kind: Kind, join: Callable[[Any, Any], Any], left: Expression, right: Expression
) -> Expression:
    columns = left.columns | right.columns
    return Expression("", kind, lambda c: join(left.evaluate(c), right.evaluate(c)), columns)
