"""Operators without matrix products: softmax, norms, element-wise maps, quantisation.

Axes: n rows, c columns; softmax and norms run along c. Element-wise maps have one axis i, since
their shape does not matter. Vector operations per element are counted from the textbook form of
each operator (a fused multiply-add is one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Derivative, Step, Tensor, tensors
from perfmodel.algorithms.attention import DIRECTIONS, DROPOUT_VECTOR, Direction
from perfmodel.algorithms.gradient import gradient
from perfmodel.algorithms.problem import UNSAID, Problem
from perfmodel.algorithms.sizes import check_points, check_positive
from perfmodel.arithmetic import Number, ceil_div, is_symbolic, product
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.frozen import dataclass

# (vector operations, special functions) per element.
_WORK: Mapping[str, tuple[float, float]] = {
    "softmax": (4.0, 1.0),  # maximum, subtract-scale, sum, divide; exp
    "layernorm": (6.0, 0.0),  # sum, square-sum, subtract, scale, weight, bias
    "rmsnorm": (3.0, 0.0),  # square-sum, scale, weight
    "quantise": (6.0, 0.0),  # maximum, scale, clamp from both sides, convert at half rate
}

# Element-wise maps beyond one operation an input: (vector operations, special functions).
VARIANTS: Mapping[str, tuple[float, float]] = {
    "gelu": (8.0, 1.0),
    "silu": (3.0, 2.0),
    "silu_mul": (4.0, 2.0),
    "tanh": (3.0, 2.0),
    "sigmoid": (2.0, 2.0),
    "exp": (1.0, 1.0),
    "div": (2.0, 1.0),
    "pow": (3.0, 2.0),
    "pow_scalar": (4.0, 2.0),
    "sqrt": (1.0, 1.0),
    "rsqrt": (1.0, 1.0),
    "dropout": (DROPOUT_VECTOR, 0.0),
    "rotary": (3.0, 0.0),  # two products and a sum, of two halves of a head
    # Derivatives: of the Gaussian integral and its density, of tanh's polynomial, of the sigmoid.
    "gelu_gradient": (12.0, 2.0),
    "silu_gradient": (5.0, 2.0),
    "silu_mul_gradient": (7.0, 2.0),
}


# Maps whose gradients need no input, and those that need the other inputs.
_LINEAR = ("add", "add_scalar", "mul_scalar", "div_scalar", "where")
_PRODUCTS = ("mul", "div")
# Maps with one operation an input (one multiply-add for both in triad).
_PLAIN = ("copy", "scale", "add", "sub", "mul", "triad", "relu")

MAPS = tuple(dict.fromkeys((*_PLAIN, *VARIANTS, *_LINEAR)))
"""Every map with its own operation count; others count one operation an input."""
QUANTISED = "fp8"
"""Type that quantisation writes where none is given."""


@dataclass(frozen=True)
class Rowwise(Problem):
    """A row-wise or element-wise problem: `op` over rows × cols.

    Raises `ProblemError` for sizes below 1 or too large (`perfmodel.algorithms.sizes`), and for
    tensors of a second type without that type or with another operator than a map. Raises
    `UnknownName` for an unknown op or direction.
    """

    op: str
    """softmax, layernorm, rmsnorm, pointwise or quantise."""
    rows: Number
    """Number of rows."""
    cols: Number
    """Elements of a row."""
    dtype: str = "bf16"
    """Type of its inputs."""
    variant: str = ""
    """Name of a pointwise map (`MAPS`); empty: one with an operation an input."""
    inputs: Number = 1
    """Tensors of rows × cols that a map reads; 0: a fill."""
    outputs: Number = 1
    """Tensors of rows × cols that a map writes; 0: a sum."""
    output_dtype: str | None = None
    """Type of its outputs; None: `dtype`, of quantisation `QUANTISED`."""
    direction: Direction = "fwd"
    """`fwd` or `bwd`."""
    also_inputs: Number = field(default=0, metadata=UNSAID)
    """Further tensors that it reads, of type `also_dtype`: the byte mask of a dropout, the fp32
    copy of a weight."""
    also_outputs: Number = field(default=0, metadata=UNSAID)
    """Further tensors that it writes, of type `also_dtype`."""
    also_dtype: str = ""
    """Type of the further tensors."""

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise UnknownName("operator", self.op, OPS)
        if self.direction not in DIRECTIONS:
            raise UnknownName("direction", str(self.direction), DIRECTIONS)
        self._check_others()
        for name in ("rows", "cols"):
            check_positive(name, getattr(self, name))
        self._check_streams()
        check_points(self.sizes())

    def _check_streams(self) -> None:
        """A map reads or writes at least one tensor; a sum has no outputs, a fill no inputs."""
        if self.op != "pointwise" or self.direction != "fwd":
            for name in ("inputs", "outputs"):
                check_positive(name, getattr(self, name))
            return
        for name in ("inputs", "outputs"):
            value = getattr(self, name)
            check_positive(name, value if is_symbolic(value) else np.asarray(value) + 1)
        check_positive("inputs and outputs together", self.accesses())

    def _check_others(self) -> None:
        """Only maps may have tensors of a second type; these need the type and a whole number."""
        others = np.asarray(self.also_inputs) + np.asarray(self.also_outputs)
        if bool(np.any(others != 0)) != bool(self.also_dtype):
            raise ProblemError("also_inputs and also_outputs go with also_dtype; give both")
        if self.also_dtype and (self.op != "pointwise" or self.direction != "fwd"):
            raise ProblemError(f"{self.op} has no tensors of a second type; pointwise has, forward")
        for name in ("also_inputs", "also_outputs") if self.also_dtype else ():
            check_positive(name, np.asarray(getattr(self, name)) + 1)

    @property
    def operator(self) -> str:
        """Its `op`."""
        return self.op

    def sizes(self) -> dict[str, Number]:
        """Extent of every axis; element-wise maps have one flattened axis."""
        if self.op == "pointwise":
            reads, writes = self.streams()
            extents = {"i": product([self.rows, self.cols]), "j": reads, "o": writes}
            if self.also_dtype:
                extents |= {"u": self.also_inputs, "w": self.also_outputs}
            return extents
        return {"n": self.rows, "c": self.cols}

    def spellings(self) -> Mapping[str, str]:
        """Other names of axes; element-wise maps have only the axis of their elements."""
        return {"rows": "i"} if self.op == "pointwise" else {"rows": "n", "cols": "c"}

    def shard(self, ranks: Mapping[str, int]) -> Rowwise:
        """The problem of the largest shard: rows or columns are split, of element-wise maps the
        rows."""
        for axis in ranks:
            if axis in ("j", "o", "u", "w"):
                raise ProblemError(f"{self.op} reads all its inputs for each output; split rows")
        rows = ranks.get("n", ranks.get("i", 1))
        cols = ceil_div(self.cols, ranks.get("c", 1))
        return replace(self, rows=ceil_div(self.rows, rows), cols=cols)

    def streams(self) -> tuple[Number, Number]:
        """Tensors of rows × cols that an element-wise map reads and writes.

        Its gradient reads the gradients of the outputs, and also the inputs unless the map is
        linear in each input. It writes one gradient an input.
        """
        if self.direction == "fwd":
            return self.inputs, self.outputs
        saved_inputs: Number = 0 if self.variant in _LINEAR else self.inputs
        if self.variant in _PRODUCTS:
            saved_inputs = self.inputs * (self.inputs > 1)
        return self.outputs + saved_inputs, self.inputs

    def accesses(self) -> Number:
        """Number of tensors that it reads or writes, of both types."""
        reads, writes = self.streams()
        return reads + writes + self.also_inputs + self.also_outputs

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        data = element(self.dtype)
        output = self.output_dtype or (QUANTISED if self.op == "quantise" else self.dtype)
        extra = {"also": element(self.also_dtype)} if self.also_dtype else {}
        return {
            **extra,
            "data": data,
            "output": element(output),
            "weights": data,
            "statistic": element("fp32"),
            "accumulator": element("fp32"),
        }

    def algorithm(self) -> Algorithm:
        """The algorithm by which this operator is counted."""
        if self.op == "pointwise":
            return pointwise(self.variant, mixed=bool(self.also_dtype))
        return forward(self.op) if self.direction == "fwd" else backward(self.op)

    def passes(self) -> tuple[Algorithm, ...]:
        """The algorithm of each pass; its sizes are those of the backward pass."""
        if self.direction == "fwdbwd" and self.op != "pointwise":
            return (forward(self.op), backward(self.op))
        return (self.algorithm(),)


OPS = ("softmax", "layernorm", "rmsnorm", "pointwise", "quantise")


@lru_cache(maxsize=256)
def pointwise(variant: str = "", *, mixed: bool = False) -> Algorithm:
    """An element-wise map: j inputs and o outputs stacked, so that it counts any number of each.

    It has one operation an input, and those of the variant for each output. A `mixed` map also
    reads u inputs and writes w outputs of a second type.
    """
    vector, special = VARIANTS.get(variant, (0.0, 0.0))
    parts = [
        Tensor("X", ("j", "i")),
        Tensor("T", ("i",), "accumulator"),
        Tensor("Y", ("o", "i"), "output"),
    ]
    combine = Step("combine", "map", ("X",), ("T",), ("j",), vector=1.0)
    work = Step("map", "map", ("T",), ("Y",), vector=vector, special=special)
    if not mixed:
        return Algorithm("pointwise", ("j", "o", "i"), tensors(*parts), (combine, work), ("Y",))
    parts += [Tensor("U", ("u", "i"), "also"), Tensor("W", ("w", "i"), "also")]
    parts.append(Tensor("S", ("i",), "accumulator"))
    others = Step("others", "map", ("U",), ("S",), ("u",), vector=1.0)
    work = replace(work, inputs=("T", "S"))
    copies = Step("copies", "map", ("S",), ("W",))
    return Algorithm(
        "pointwise",
        ("j", "o", "u", "w", "i"),
        tensors(*parts),
        (combine, others, work, copies),
        ("Y", "W"),
    )


@lru_cache(maxsize=16)
def forward(op: str) -> Algorithm:
    """softmax, layernorm, rmsnorm (with weight; layernorm with bias) or per-row quantisation."""
    vector, special = _WORK[op]
    parts = [Tensor("X", ("n", "c")), Tensor("Y", ("n", "c"), "output")]
    weights = {"layernorm": ("gamma", "beta"), "rmsnorm": ("gamma",)}.get(op, ())
    parts += [Tensor(name, ("c",), "weights") for name in weights]
    aux = {"layernorm": ("mean", "rstd"), "rmsnorm": ("rstd",), "quantise": ("scale",)}.get(op, ())
    parts += [Tensor(name, ("n",), "statistic", constant=True) for name in aux]
    step = Step(
        op,
        "normalisation",
        ("X", *weights),
        ("Y", *aux),
        along="c",
        late=weights,
        vector=vector,
        special=special,
        # A norm's gradient starts from its input again, a softmax's from its result.
        derivative=Derivative(("X", "gamma", *aux), 2 * vector) if weights else None,
    )
    return Algorithm(op, ("n", "c"), tensors(*parts), (step,), ("Y", *aux))


@lru_cache(maxsize=16)
def backward(op: str) -> Algorithm:
    """The gradients of its inputs, in their own types."""
    return gradient(forward(op), role=lambda name: "data" if name == "output" else name)
