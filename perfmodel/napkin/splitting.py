"""The split of `perfmodel.napkin.recompute`, derived from its time with SymPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfmodel.napkin.recompute import activation_seconds, cache_seconds, product_seconds

Expression = Any

SYMBOLS = {
    "b": "sequences",
    "s": "cached tokens",
    "l": "tokens computed anew",
    "h": "width of an activation",
    "w": "numbers of a token's keys, and of its values",
    "q_x": "bytes of a number of the activations",
    "q": "bytes of a cached number",
    "g": "operations a second of the products",
    "v": "bytes a second of the link",
}


@dataclass(frozen=True)
class Derived:
    """Results derived from t(l)."""

    row: Expression
    """Transfer seconds of the activations."""
    computed: Expression
    """Seconds of the products."""
    sent: Expression
    """Transfer seconds of the rest of the cache."""
    split: Expression
    """l*, where products and transfer take equally long."""
    slope: Expression
    """dt/dl below l*."""
    time: Expression
    """t(l*) over t(0)."""

    def lines(self) -> Iterator[str]:
        """The derivation as lines of text."""
        yield f"t(l) = {self.row} + max({self.computed}, {self.sent})"
        yield f"both take as long at l* = {self.split}"
        yield f"before, dt/dl = {self.slope}: it falls where h*q_x < 2*w*q, else l = 0 is best"
        yield f"t(l*)/t(0) = {self.time}"
        for name, meaning in SYMBOLS.items():
            yield f"{name}: {meaning}"


def derived() -> Derived:
    """The split, the slope below it and the time at it."""
    import sympy

    b, s, tokens, h, w, q_x, q, g, v = sympy.symbols(list(SYMBOLS), positive=True)
    transfer: Any
    row: Any = activation_seconds(b * tokens, h, q_x, v)
    compute = product_seconds(b * tokens, h, w, g)
    transfer = cache_seconds(b * (s - tokens), w, q, v)
    (split,) = sympy.solve(sympy.Eq(compute, transfer), tokens)
    total = row + transfer
    return Derived(
        row,
        compute,
        transfer,
        sympy.simplify(split),
        sympy.factor(sympy.diff(total, tokens)),
        sympy.simplify(total.subs(tokens, split) / transfer.subs(tokens, 0)),
    )
