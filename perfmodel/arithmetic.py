"""The operations that depend on the kind of number: an int, a NumPy array or a SymPy symbol.

All other counting code uses `+`, `-` and `*`, which mean the same for all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import mul
from typing import Any, overload

import numpy as np

Number = int | float | np.ndarray
"""What counts are made of. SymPy's expressions and recording numbers stand in the same places: they
have the same operators, and no types."""

# Above this a product of 64-bit integers may wrap; larger values use Python's integers.
_SAFE = 2**62


def is_symbolic(*values: Number) -> bool:
    """Whether any value is a SymPy expression (without importing SymPy)."""
    return any(hasattr(value, "free_symbols") for value in values)


def is_one(value: Number) -> bool:
    """Whether a number is the plain integer 1, so that multiplying by it can be skipped."""
    return isinstance(value, int) and value == 1


def _is_float(value: Number) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


@overload
def ceil_div(a: int, b: int) -> int: ...
@overload
def ceil_div(a: Number, b: Number) -> Number: ...
def ceil_div(a: Number, b: Number) -> Number:
    """⌈a / b⌉; symbols simplify where b is declared to divide a."""
    a = _promote(a, b)
    if _is_float(a):
        # Exact for whole numbers below 2^53, and several times faster than integer division.
        return np.ceil(a / b)
    if is_symbolic(a, b):
        import sympy

        return sympy.ceiling(sympy.S(a) / b)
    return -(-a // b)


def floor_div(a: Number, b: Number) -> Number:
    """⌊a / b⌋."""
    a = _promote(a, b)
    if _is_float(a) or _is_float(b):
        # Exact as in `ceil_div`, and several times faster than `//` on floats.
        return np.floor(a / b)
    if is_symbolic(a, b):
        import sympy

        return sympy.floor(sympy.S(a) / b)
    return a // b


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers, elementwise for arrays."""
    if is_symbolic(a, b):
        import sympy

        return sympy.Min(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b)
    return min(a, b)


def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers, elementwise for arrays."""
    if is_symbolic(a, b):
        import sympy

        return sympy.Max(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return max(a, b)


def clamp(value: Number, low: Number, high: Number) -> Number:
    """`value` limited to the range from `low` to `high`."""
    return minimum(maximum(value, low), high)


def where(condition: Any, yes: Number, no: Number) -> Number:
    """`yes` where the condition holds, else `no`; conditions on arrays choose elementwise.

    An undecided condition on symbols stays in the result (a `Piecewise`).
    """
    if isinstance(condition, np.ndarray):
        return np.where(condition, _numeric(yes), _numeric(no))
    if getattr(condition, "free_symbols", None):
        import sympy

        return sympy.Piecewise((yes, condition), (no, True))
    return yes if condition else no


def _numeric(value: Number) -> Number:
    """A plain int too large for 64 bits as a float; other values unchanged."""
    return float(value) if isinstance(value, int) and abs(value) > _SAFE else value


def _promote(value: Number, partner: Number) -> Number:
    """`value` as a float64 array where `partner` is an array and 64 bits do not hold it; else
    unchanged."""
    if isinstance(partner, np.ndarray) and isinstance(value, int) and abs(value) > _SAFE:
        return np.asarray(value, dtype=np.float64)
    return value


def as_floats(sizes: Mapping[str, Number]) -> dict[str, Number]:
    """Sizes with every array as float64: whole numbers stay exact below 2^53 and divide faster."""
    return {name: wide(value) for name, value in sizes.items()}


def wide(value: Number) -> Number:
    """An array as float64, a numpy integer as an int, so that products of sizes cannot wrap; other
    values unchanged.

    Integers up to 2^53 stay exact in a float64; plain ints and symbols are exact at any size.
    """
    if isinstance(value, np.ndarray) and value.dtype != np.float64:
        return value.astype(np.float64)
    return int(value) if isinstance(value, np.integer) else value


def product(values: Iterable[Number]) -> Number:
    """The product of all values (1 when there are none), arrays multiplied as float64."""
    # Skipping ones saves time and keeps ints exact where there are arrays.
    factors = [wide(value) for value in values if not is_one(value)]
    return reduce(mul, factors) if factors else 1


def _floor_sum(n: Any, m: Any, a: Any, b: Any) -> Any:
    """Euclid-like descent of `floor_sum`, the same code for ints and arrays (masked by n = 0)."""
    total = n * 0
    while True:
        total = total + n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        top = a * n + b
        n, b = top // m, top % m
        if not np.any(n):
            return total
        # Nothing more is added where n is 0; the modulus must stay non-zero there.
        m, a = np.where(n > 0, a, 1) if isinstance(n, np.ndarray) else a, m


def floor_sum(n: Number, m: Number, a: Number, b: Number) -> Number:
    """Σ over 0 ≤ i < n of ⌊(a·i + b) / m⌋ for a, b, n ≥ 0 and m > 0, in O(log m) steps.

    The sum counts lattice points under a line; exchanging the axes gives the Euclid-like recursion
    (Graham, Knuth & Patashnik, Concrete Mathematics, section 3.5). Exact for ints and arrays.
    """
    if not any(isinstance(value, np.ndarray) for value in (n, m, a, b)):
        return int(_floor_sum(int(n), int(m), int(a), int(b)))
    arrays = np.broadcast_arrays(*(np.asarray(value) for value in (n, m, a, b)))
    n, m, a, b = (value.astype(np.int64) for value in arrays)
    # n·(n−1)/2·(a//m) and a·n are the largest products formed.
    peak = float(n.max(initial=0)) * (float(n.max(initial=0)) * float(a.max(initial=0)) + 1)
    if peak + float(n.max(initial=0)) * float(b.max(initial=0)) > _SAFE:
        n, m, a, b = (value.astype(object) for value in (n, m, a, b))
        return _floor_sum(n, m, a, b).astype(np.float64)
    return _floor_sum(n, m, a, b)
