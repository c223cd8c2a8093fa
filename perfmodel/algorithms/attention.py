"""Scaled dot-product attention, forward and backward, as axes, tensors and steps.

Axes: b batch, g key-value heads, r query heads per key-value head, q query rows, x key rows,
d head dimension of queries and keys, e head dimension of values. MHA is r = 1, MQA is g = 1.

Vector work per score element (FlashAttention-2, section 3.1): scale, running maximum, row sum and
half a conversion per score, 3.5 in all; one exponential on the special-function unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Literal, get_args

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Band, Derivative, Step, Tensor, tensors
from perfmodel.algorithms.problem import UNSAID, Problem
from perfmodel.algorithms.sizes import check_points, check_positive
from perfmodel.arithmetic import Number, ceil_div, is_symbolic, minimum, product, where
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.frozen import dataclass

Direction = Literal["fwd", "bwd", "fwdbwd"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
"""Forward, backward, and both."""
MaskPass = Literal["none", "additive", "masked_fill"]

AXES = ("b", "g", "r", "q", "x", "d", "e")
_ROWS = ("b", "g", "r", "q")
_KEYS = ("b", "g", "x")
_SCORES = ("b", "g", "r", "q", "x")

# Vector operations per score element: scale, maximum, sum, and half a packed conversion.
SOFTMAX_VECTOR = 3.5
# A fused kernel masks padded keys with one select a score.
PADDING_VECTOR = 1.0
# For dropout it draws a random byte a score, compares and selects. 7 rounds of Philox, each 6
# integer instructions at half the rate of a multiply-add, yield 16 bytes (FlashAttention-2's
# philox.cuh).
DROPOUT_VECTOR = 2 * 7 * 6 / 16 + 2


@dataclass(frozen=True)
class Attention(Problem):
    """One attention problem, or arrays of problems of one kind.

    Raises `ProblemError` for sizes below 1 or too large (`perfmodel.algorithms.sizes`) and for
    query heads that are not a multiple of the key-value heads.
    """

    batch: Number
    """Sequences."""
    heads_q: Number
    """Query heads."""
    heads_kv: Number
    """Key-value heads; query heads are a multiple of them."""
    seq_q: Number
    """Queries a sequence."""
    seq_kv: Number
    """Keys a sequence."""
    head_dim: Number
    """Elements of a query and of a key."""
    head_dim_v: Number | None = None
    """Elements of a value; None: as many as of a key."""
    causal: bool = False
    """Whether a query sees only its own and earlier keys. The last query is aligned with the last
    key."""
    window: Number | None = None
    """Number of nearest keys that a query sees; None or 0: all. Without a causal mask it extends to
    both sides."""
    dtype: str = "bf16"
    """Type of queries, and of keys and values unless `kv_dtype` is given."""
    kv_dtype: str | None = None
    """Type of keys and values; None: `dtype`."""
    direction: Direction = "fwd"
    """`fwd`, `bwd`, or `fwdbwd` for both."""
    padding_mask: bool = field(default=False, metadata=UNSAID)
    """Whether a mask hides padded keys. It saves no work: unfused kernels apply it in a separate
    pass, fused ones in registers."""
    dropout: bool = field(default=False, metadata=UNSAID)
    """Whether scores are dropped in training, at the same costs as a padding mask."""
    keys_only: bool = field(default=False, metadata=UNSAID)
    """Whether values share the memory of the keys, so that both cross the memory boundary once."""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise UnknownName("direction", str(self.direction), DIRECTIONS)
        for item in fields(self):
            if item.name in ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"):
                check_positive(item.name, getattr(self, item.name))
        if self.head_dim_v is not None:
            check_positive("head_dim_v", self.head_dim_v)
        misfit = np.asarray(self.heads_q % self.heads_kv != 0, dtype=bool)
        if np.any(misfit):
            heads, groups = np.broadcast_arrays(self.heads_q, self.heads_kv)
            first = np.flatnonzero(np.broadcast_to(misfit, heads.shape))[0]
            raise ProblemError(
                f"heads must be a multiple of kv-heads, but {heads.flat[first]} heads are not a "
                f"multiple of {groups.flat[first]} kv-heads; change one of them"
            )
        check_points(self.sizes())

    @property
    def operator(self) -> str:
        """`attention`."""
        return "attention"

    @property
    def phase(self) -> str:
        """`decode` where every sequence has one query, else `prefill`."""
        return "decode" if np.all(np.asarray(self.seq_q == 1, dtype=bool)) else "prefill"

    def sizes(self) -> dict[str, Number]:
        """Extent of every axis."""
        return {
            "b": self.batch,
            "g": self.heads_kv,
            "r": self.heads_q // self.heads_kv,
            "q": self.seq_q,
            "x": self.seq_kv,
            "d": self.head_dim,
            "e": self.head_dim if self.head_dim_v is None else self.head_dim_v,
        }

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        data = element(self.dtype)
        # An 8-bit query still leaves 16-bit results (FlashAttention-3, section 3.3).
        output = data if data.bits >= 16 else element("bf16")
        return {
            "data": data,
            "kv": element(self.kv_dtype or self.dtype),
            "output": output,
            "gradient": output,
            "accumulator": element("fp32"),
            "statistic": element("fp32"),
            "keep": element("int8"),
        }

    def algorithm(self) -> Algorithm:
        """Forward without statistics; for `bwd` and `fwdbwd` the backward algorithm with all input
        gradients."""
        return forward(statistics=()) if self.direction == "fwd" else backward()

    def passes(self) -> tuple[Algorithm, ...]:
        """The forward and the backward algorithm, or one of them."""
        is_pair = self.direction == "fwdbwd"
        return (forward(statistics=()), backward()) if is_pair else (self.algorithm(),)

    def spellings(self) -> Mapping[str, str]:
        """Other names of axes. `heads` splits g, and the query heads go with their key-value
        heads."""
        return {
            "batch": "b", "heads": "g", "heads_kv": "g", "kv-heads": "g", "seq_q": "q",
            "seq-q": "q", "seq_kv": "x", "seq-kv": "x", "head_dim": "d", "head-dim": "d",
        }  # fmt: skip

    def shard(self, ranks: Mapping[str, int]) -> Attention:
        """The problem of the largest shard. Each axis is a field, except that g also scales the
        query heads."""
        band = self.mask()
        if band is not None:
            band.check_split(ranks, self.seq_q)
        sizes = {a: ceil_div(size, ranks.get(a, 1)) for a, size in self.sizes().items()}
        return replace(
            self,
            batch=sizes["b"],
            heads_q=sizes["g"] * sizes["r"],
            heads_kv=sizes["g"],
            seq_q=sizes["q"],
            seq_kv=sizes["x"],
            head_dim=sizes["d"],
            head_dim_v=sizes["e"] if "e" in ranks or "d" in ranks else self.head_dim_v,
        )

    def seen(self) -> dict[str, Number]:
        """Extents of keys that some query sees and of queries that see some key, in float64."""
        sizes = {axis: np.asarray(size, np.float64) for axis, size in self.sizes().items()}
        window = np.asarray(0 if self.window is None else self.window, np.float64)
        reach = np.where(window > 0, window, np.inf)
        # Aligned to the end, queries before the first key see no key; their outputs are zeros.
        lead = 0.0 if self.causal else reach
        return {
            **sizes,
            # The last query is aligned with the last key: there is no key beyond.
            "x": np.minimum(sizes["x"], sizes["q"] + reach),
            "q": np.minimum(sizes["q"], sizes["x"] + lead),
        }

    def aliased(self) -> tuple[str, ...]:
        """The values, where they share the memory of the keys."""
        return ("V",) if self.keys_only else ()

    def multiplied(self) -> frozenset[str]:
        """Types of the queries and of the keys and values."""
        elements = self.elements()
        return frozenset(elements[role].compute for role in ("data", "kv"))

    def mask(self) -> Band | None:
        """The band of visible keys, or None where all are."""
        left = self.window
        if left is not None:
            zero = np.asarray(left) == 0
            # In an array of windows, 0 means every earlier key.
            if np.any(zero):
                left = None if np.all(zero) else np.where(zero, self.seq_q + self.seq_kv, left)
        # One query aligned to the end sees every key, causal or not.
        hides = self.causal and self.phase != "decode"
        if not hides and left is None:
            return None
        right = 0 if self.causal else (None if left is None else left - 1)
        return Band("q", "x", left=left, right=right)

    def windowed(self) -> np.ndarray:
        """Whether a window hides keys from the last query."""
        window = np.asarray(0 if self.window is None else self.window)
        return np.asarray((window > 0) & (window < self.seq_kv))

    def score_vector(self) -> float:
        """Vector operations a score that a fused kernel adds for padding and dropout."""
        return PADDING_VECTOR * self.padding_mask + DROPOUT_VECTOR * self.dropout

    def flops(self) -> Number:
        """Matrix operations that the mask leaves: 4·d for each visible pair of a query and a key.

        By the papers' convention a causal square counts X²/2 pairs, without half of the diagonal.
        The backward pass counts 2.5 times as much, both passes 3.5 times (FlashAttention-2, section
        4.1).
        """
        sizes = self.sizes()
        heads = [sizes["b"], sizes["g"], sizes["r"]]
        forward = product([2, *heads, self._pairs(), sizes["d"] + sizes["e"]])
        return forward * {"fwd": 1, "bwd": 2.5, "fwdbwd": 3.5}[self.direction]

    def _pairs(self) -> Number:
        """Pairs of a query and a key of one head that count as useful."""
        queries, keys, band = self.seq_q, self.seq_kv, self.mask()
        if band is None:
            return product([queries, keys])
        if is_symbolic(queries, keys):
            return product([queries, keys]) / 2 if self.causal else product([queries, keys])
        pairs = band.visible_pairs(queries, keys)
        diagonal = minimum(queries, keys) / 2 if self.causal else 0
        windowed = self.windowed()
        return where(windowed if windowed.ndim else bool(windowed), pairs, pairs - diagonal)


_LINEAR = Derivative((), vector=1)


def _inputs() -> tuple[Tensor, ...]:
    return (
        Tensor("Q", (*_ROWS, "d")),
        Tensor("K", (*_KEYS, "d"), "kv"),
        Tensor("V", (*_KEYS, "e"), "kv"),
    )


def forward(
    mask: Band | None = None,
    *,
    statistics: tuple[str, ...] = ("L",),
    mask_pass: MaskPass = "none",
    dropout: bool = False,
    scaled_copy: bool = False,
    score_vector: float = 0.0,
) -> Algorithm:
    """Attention forward: S = Q·Kᵀ, P = softmax(S), O = P·V.

    `statistics` are the row vectors kept for the backward pass: L = m + log ℓ (FlashAttention-2),
    or m and ℓ separately (FlashAttention-1), or none. `mask_pass` and `dropout` add the separate
    steps of an unfused framework, `scaled_copy` the copy of Q that it makes when it scales first.
    `score_vector` is the vector work a score that a fused kernel spends on them besides the
    softmax. Autograd's backward pass, from saved probabilities, is its `gradient`.
    """
    scores = "S"
    parts = [
        *_inputs(),
        Tensor("S", _SCORES),
        Tensor("P", _SCORES),
        Tensor("O", (*_ROWS, "e"), "output"),
        *(Tensor(name, _ROWS, "statistic", constant=True) for name in statistics),
    ]
    steps: list[Step] = []
    query = "Q"
    if scaled_copy:
        parts.append(Tensor("Qs", (*_ROWS, "d")))
        steps.append(Step("scale", "map", ("Q",), ("Qs",), vector=1, derivative=_LINEAR))
        query = "Qs"
    steps.append(Step("scores", "contraction", (query, "K"), ("S",), ("d",)))
    if mask_pass != "none":
        parts.append(Tensor("Sm", _SCORES))
        # An additive mask passes its gradient on; a masked fill zeroes that of hidden scores.
        fills = Derivative((), vector=float(mask_pass == "masked_fill"))
        steps.append(Step("mask", "map", ("S",), ("Sm",), vector=1, derivative=fills))
        scores = "Sm"
    steps.append(
        Step(
            "softmax",
            "normalisation",
            (scores,),
            ("P", *statistics),
            along="x",
            vector=SOFTMAX_VECTOR + score_vector,
            special=1,
            derivative=Derivative(("P",), vector=4),
        )
    )
    weights = "P"
    if dropout:
        parts += [Tensor("Pd", _SCORES), Tensor("keep", _SCORES, "keep", constant=True)]
        kept = Derivative(("keep",), vector=1)
        steps.append(Step("dropout", "map", ("P",), ("Pd", "keep"), vector=1, derivative=kept))
        weights = "Pd"
    steps.append(Step("values", "contraction", (weights, "V"), ("O",), ("x",)))
    extras = (*statistics, *(("keep",) if dropout else ()))
    return Algorithm("attention", AXES, tensors(*parts), tuple(steps), ("O", *extras), mask)


_GRADIENTS = (
    Tensor("dO", (*_ROWS, "e"), "output"),
    Tensor("dQ", (*_ROWS, "d"), "gradient"),
    Tensor("dK", (*_KEYS, "d"), "gradient"),
    Tensor("dV", (*_KEYS, "e"), "gradient"),
)


def backward(
    mask: Band | None = None, *, score_vector: float = 0.0, converted: bool = False
) -> Algorithm:
    """Attention backward that recomputes the scores (FlashAttention, Algorithm 4): 5 contractions.

    D = rowsum(dO ∘ O), P = exp(S − L), dP = dO·Vᵀ, dS = P ∘ (dP − D); dV = Pᵀ·dO, dQ = dS·K, dK =
    dSᵀ·Q. `score_vector` as in `forward`: masking and dropout are repeated. With `converted`, dQ is
    summed in fp32 (`dQ32`) and converted to its type in a separate step.
    """
    summed = "dQ32" if converted else "dQ"
    parts = tensors(
        *_inputs(),
        *_GRADIENTS,
        Tensor("O", (*_ROWS, "e"), "output"),
        Tensor("L", _ROWS, "statistic"),
        Tensor("D", _ROWS, "statistic"),
        *(Tensor(name, _SCORES) for name in ("S", "P", "dP", "dS")),
        *((Tensor("dQ32", (*_ROWS, "d"), "accumulator"),) if converted else ()),
    )
    last = (Step("conversion", "map", ("dQ32",), ("dQ",), vector=1),) if converted else ()
    steps = (
        Step("delta", "reduction", ("dO", "O"), ("D",), ("e",), vector=1),
        Step("scores", "contraction", ("Q", "K"), ("S",), ("d",)),
        Step("probabilities", "map", ("S", "L"), ("P",), vector=1.5 + score_vector, special=1),
        Step("dvalues", "contraction", ("P", "dO"), ("dV",), ("r", "q")),
        Step("dprobabilities", "contraction", ("dO", "V"), ("dP",), ("e",)),
        Step("dscores", "map", ("P", "dP", "D"), ("dS",), vector=2.5),
        Step("dqueries", "contraction", ("dS", "K"), (summed,), ("x",)),
        Step("dkeys", "contraction", ("dS", "Q"), ("dK",), ("r", "q")),
        *last,
    )
    return Algorithm("attention-backward", AXES, parts, steps, ("dQ", "dK", "dV"), mask)


def backward_in_kernels(mask: Band | None = None, *, again: bool = False) -> Algorithm:
    """Attention backward as tiled kernels divide it, gradients in the problem's type.

    Besides D the first kernel writes N = L·log₂e, so that P = exp2(S·log₂e − N) is one multiply-add
    and one exponential a score. dQ is summed over the keys in fp32 (`dQ32`) and converted at the
    end. With `again` its scores are recomputed instead (`S_again` and its successors): 7
    contractions instead of 5, and no sum in memory.
    """
    parts = [
        *_inputs(),
        *_GRADIENTS,
        Tensor("O", (*_ROWS, "e"), "output"),
        *(Tensor(name, _ROWS, "statistic") for name in ("L", "D", "N")),
        *(Tensor(name, _SCORES) for name in ("S", "P", "dP", "dS")),
    ]
    delta = Step("delta", "reduction", ("dO", "O", "L"), ("D", "N"), ("e",), vector=1)
    values = Step("dvalues", "contraction", ("P", "dO"), ("dV",), ("r", "q"))
    keys = Step("dkeys", "contraction", ("dS", "Q"), ("dK",), ("r", "q"))
    first = (*_score_gradients(""), values, keys)
    if again:
        parts += [Tensor(f"{name}_again", _SCORES) for name in ("S", "P", "dP", "dS")]
        last = (
            *_score_gradients("_again"),
            Step("dqueries", "contraction", ("dS_again", "K"), ("dQ",), ("x",)),
        )
    else:
        parts.append(Tensor("dQ32", (*_ROWS, "d"), "accumulator"))
        last = (
            Step("dqueries", "contraction", ("dS", "K"), ("dQ32",), ("x",)),
            Step("conversion", "map", ("dQ32",), ("dQ",), vector=1),
        )
    steps = (delta, *first, *last)
    return Algorithm("attention-backward", AXES, tensors(*parts), steps, ("dQ", "dK", "dV"), mask)


def _score_gradients(mark: str) -> tuple[Step, ...]:
    """S, P, dP and dS from Q, K, dO and V; `mark` is added to every name."""
    s, p, dp, ds = (f"{name}{mark}" for name in ("S", "P", "dP", "dS"))
    return (
        Step(f"scores{mark}", "contraction", ("Q", "K"), (s,), ("d",)),
        Step(f"probabilities{mark}", "map", (s, "N"), (p,), vector=1.5, special=1),
        Step(f"dprobabilities{mark}", "contraction", ("dO", "V"), (dp,), ("e",)),
        Step(f"dscores{mark}", "map", (p, dp, "D"), (ds,), vector=2.5),
    )
