"""Conditions on columns, such as `time_us < 100 and limiter == hbm`; parsed without `eval`.

    condition  = comparisons joined by and, or, not and parentheses
    comparison = value (< <= > >= == = !=) value
    value      = column, number, name, + - * / and parentheses

Numbers compare with numbers; a text column compares (== or !=) with a bare or a quoted name.
"""

from __future__ import annotations

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

_DEPTH = 100
_WORDS = 300  # words of an expression: each one of a sum adds a nested call
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[A-Za-z_][\w.-]*)|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|==|!=|[-<>=+*/()]))"
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


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
    expression = _Parser(text, kinds).whole()
    if expression.kind != "truth":
        raise ProblemError(f'{quoted(text)} is no condition; write one like "time_us < 100"')
    return expression


def quantity(text: str, kinds: Mapping[str, str]) -> Expression:
    """The number `text` in every row: a column or arithmetic of columns. Errors as above."""
    expression = _Parser(text, kinds).whole()
    if expression.kind != "number":
        raise ProblemError(f"{quoted(text)} is not a number; name a column such as time_us")
    if not expression.columns:
        raise ProblemError(f"{quoted(text)} is the same in every row; name a column of it")
    return expression


class _Parser:
    """A recursive-descent parser with one method for each level of precedence."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        self._text, self._kinds = text, kinds
        self._tokens = _tokens(text)
        self._place = self._depth = 0

    def whole(self) -> Expression:
        """The expression; nothing may follow it."""
        expression = self._disjunction()
        if self._peek() is not None:
            raise self._error(f"{self._peek()!r} was not expected")
        if expression.kind == "name":
            raise self._no_column(expression.text)
        if len(self._tokens) > _WORDS:
            raise self._error(f"more than {_WORDS} words")
        return Expression(self._text, expression.kind, expression.evaluate, expression.columns)

    def _disjunction(self) -> Expression:
        expression = self._conjunction()
        while self._take("or"):
            expression = self._logical("or", np.logical_or, expression, self._conjunction())
        return expression

    def _conjunction(self) -> Expression:
        expression = self._negation()
        while self._take("and"):
            expression = self._logical("and", np.logical_and, expression, self._negation())
        return expression

    def _negation(self) -> Expression:
        if self._take("not"):
            inner = self._recursion(self._negation)
            self._check_kind("truth", inner, "not")
            return Expression("", "truth", lambda c: ~inner.evaluate(c), inner.columns)
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._sum()
        sign = self._peek()
        if sign not in _COMPARE:
            return left
        self._place += 1
        right = self._sum()
        if self._peek() in _COMPARE:
            raise self._error("comparisons do not chain; join two with and")
        return self._relation(str(sign), left, right)

    def _sum(self) -> Expression:
        expression = self._product()
        while self._peek() in ("+", "-"):
            expression = self._arithmetic(self._next(), expression, self._product())
        return expression

    def _product(self) -> Expression:
        expression = self._factor()
        while self._peek() in ("*", "/"):
            expression = self._arithmetic(self._next(), expression, self._factor())
        return expression

    def _factor(self) -> Expression:
        if self._take("-"):
            zero = Expression("0", "number", lambda _: 0.0)
            return self._arithmetic("-", zero, self._recursion(self._factor))
        return self._atom()

    def _atom(self) -> Expression:
        token = self._next()
        if token == "(":
            expression = self._recursion(self._disjunction)
            if not self._take(")"):
                raise self._error("a parenthesis is not closed")
            return expression
        if token[0] in "'\"":
            return Expression(token[1:-1], "name", lambda _: token[1:-1])
        if token[0].isdigit() or token[0] == ".":
            value = np.float64(token)  # np.float64: division by zero is infinite, as for columns
            return Expression(token, "number", lambda _: value)
        if not (token[0].isalpha() or token[0] == "_") or token in ("and", "or", "not"):
            raise self._error(f"{token!r} was not expected")
        return self._column(token)

    def _column(self, word: str) -> Expression:
        name = word if word in self._kinds else SHORT.get(word, word)
        if name in self._kinds:
            kind: Any = self._kinds[name]
            return Expression(word, kind, lambda c: c[name], frozenset({name}))
        if word.lower() in ("true", "false"):
            truth = word.lower() == "true"
            return Expression(word, "truth", lambda _: truth)
        return Expression(word, "name", lambda _: word)

    def _relation(self, sign: str, left: Expression, right: Expression) -> Expression:
        kinds = {left.kind, right.kind}
        for side, other in ((left, right), (right, left)):
            if side.kind == "name" and other.kind != "text":
                raise self._no_column(side.text)
        if kinds == {"text", "name"}:
            kinds = {"text"}
        if len(kinds) > 1:
            raise self._error(f"{left.text!r} and {right.text!r} cannot be compared")
        if kinds != {"number"} and sign in ("<", "<=", ">", ">="):
            raise self._error(f"text has no order; use == or != instead of {sign}")
        compare = _COMPARE[sign]
        cols = left.columns | right.columns
        return Expression("", "truth", lambda c: compare(left.evaluate(c), right.evaluate(c)), cols)

    def _arithmetic(self, sign: str, left: Expression, right: Expression) -> Expression:
        for side in (left, right):
            self._check_kind("number", side, sign)
        compute = _ARITHMETIC[sign]
        cols = left.columns | right.columns
        return Expression(
            "", "number", lambda c: compute(left.evaluate(c), right.evaluate(c)), cols
        )

    def _logical(
        self, word: str, join: Callable[[Any, Any], Any], left: Expression, right: Expression
    ) -> Expression:
        for side in (left, right):
            self._check_kind("truth", side, word)
        cols = left.columns | right.columns
        return Expression("", "truth", lambda c: join(left.evaluate(c), right.evaluate(c)), cols)

    def _check_kind(self, kind: Kind, side: Expression, sign: str) -> None:
        if side.kind == "name":
            raise self._no_column(side.text)
        if side.kind != kind:
            parts = "conditions" if kind == "truth" else "numbers"
            raise self._error(f"{sign!r} joins {parts}")

    def _recursion(self, parse: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > _DEPTH:
            raise self._error(f"more than {_DEPTH} levels deep")
        expression = parse()
        self._depth -= 1
        return expression

    def _peek(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> str:
        token = self._peek()
        if token is None:
            raise self._error("it ends too early")
        self._place += 1
        return token

    def _take(self, token: str) -> bool:
        matches = self._peek() == token
        self._place += matches
        return matches

    def _error(self, fault: str) -> ProblemError:
        return ProblemError(f'{quoted(self._text)}: {fault}; write it like "time_us < 100"')

    def _no_column(self, name: str) -> UnknownName:
        return UnknownName("column", name, [*self._kinds, *SHORT])


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].strip()[:12]
            raise ProblemError(f'{quoted(text)} cannot be read at {rest!r}; write "time_us < 100"')
        tokens.append(match[0].strip())
        place = match.end()
    if not tokens:
        raise ProblemError('an empty condition; write one like "time_us < 100"')
    return tokens
