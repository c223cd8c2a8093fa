"""Matrix multiplication C[b,m,n] = Σ_k A[b,m,k] · B[b,k,n], plain or with low-precision weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.gradient import gradient
from perfmodel.algorithms.problem import UNSAID, BackwardKernel, Problem
from perfmodel.algorithms.sizes import check_points, check_positive
from perfmodel.arithmetic import Number, ceil_div, product
from perfmodel.elements import ELEMENTS, ElementType, element
from perfmodel.errors import UnknownName
from perfmodel.frozen import dataclass

# Weights of any other number of stored bits: w3.25a16. They are widened too before they are
# multiplied.
_WEIGHT_ONLY = re.compile(r"w(\d{1,3}(?:\.\d{1,9})?)a16")

# Most stored bits of weights at which kernels for 4-bit weights are assumed.
_NARROW_BITS = 6

AXES = ("b", "m", "n", "k")


@dataclass(frozen=True)
class Format:
    """Types of a matmul."""

    activations: str
    """Type of A."""
    weights: str
    """Type of B, as stored."""
    output: str
    """Type of C."""
    compute: str
    """The type at whose rate the matrix unit runs."""


# Weight-only formats widen the weights before the matrix unit, which runs at its 16-bit rate. The
# other formats multiply in their own type and write 16-bit results.
FORMATS = {
    "fp64": Format("fp64", "fp64", "fp64", "fp64"),
    "fp32": Format("fp32", "fp32", "fp32", "fp32"),
    "tf32": Format("fp32", "fp32", "fp32", "tf32"),
    "fp16": Format("fp16", "fp16", "fp16", "fp16"),
    "bf16": Format("bf16", "bf16", "bf16", "bf16"),
    "fp8": Format("fp8", "fp8", "bf16", "fp8"),
    "fp8_block": Format("fp8_block", "fp8_block", "bf16", "fp8"),
    "int8": Format("int8", "int8", "int8", "int8"),
    "w8a8_int8": Format("int8", "int8", "fp16", "int8"),
    "w8a16": Format("fp16", "int8", "fp16", "fp16"),
    "w4a16": Format("fp16", "int4_g128", "fp16", "fp16"),
    "nvfp4": Format("nvfp4", "nvfp4", "bf16", "fp4"),
    "mxfp4": Format("mxfp4", "mxfp4", "bf16", "fp4"),
    "w4a16_mxfp4": Format("bf16", "mxfp4", "bf16", "bf16"),
    "w4a8_mxfp4_mxfp8": Format("mxfp8", "mxfp4", "bf16", "fp8"),
    "w4a8_int4_fp8": Format("fp8", "int4_g128", "bf16", "fp8"),
}
# Formats beside those of `_WEIGHT_ONLY` whose weights are widened before they are multiplied.
_WIDENED = ("w4a16_mxfp4", "w4a8_int4_fp8")


_HINTS = {
    "int4": "(4-bit weights beside 16-bit activations are w4a16)",
    "fp4": "(fp4 values in blocks with scales are nvfp4 or mxfp4)",
}


def types() -> Iterable[str]:
    """Names of all types, those of products included."""
    return dict.fromkeys((*ELEMENTS, *FORMATS))


def matmul_format(dtype: str) -> Format:
    """The matmul format called `dtype`; raises `UnknownName` with the nearest ones."""
    format_ = FORMATS.get(dtype)
    if format_ is not None:
        return format_
    bits = _WEIGHT_ONLY.fullmatch(dtype)
    if bits is None or float(bits[1]) == 0.0:
        hint = _HINTS.get(dtype, "(or w3.25a16: weights of 3.25 bits)")
        raise UnknownName("matmul type", dtype, FORMATS, hint)
    return Format("fp16", f"bits{bits[1]}", "fp16", "fp16")


def is_widened(dtype: str) -> bool:
    """Whether the weights are widened before they are multiplied."""
    return dtype in _WIDENED or _WEIGHT_ONLY.fullmatch(dtype) is not None


def kernel_type(dtype: str) -> str:
    """The type under which libraries and measured runs list a product: for weights of any number of
    bits, that of the nearest usual weight-only format."""
    if dtype in FORMATS or not is_widened(dtype):
        return dtype
    bits = element(matmul_format(dtype).weights).bits
    return "w4a16" if bits <= _NARROW_BITS else "w8a16"


@dataclass(frozen=True)
class Matmul(Problem):
    """`batch` products of [m, k] by [k, n], or arrays of such problems.

    Raises `ProblemError` for sizes below 1 or too large (`perfmodel.algorithms.sizes`) and
    `UnknownName` for an unknown `dtype`.
    """

    m: Number
    """Rows of A and of C."""
    n: Number
    """Columns of B and of C."""
    k: Number
    """Columns of A and rows of B: the summed axis."""
    batch: Number = 1
    """Number of products."""
    dtype: str = "bf16"
    """A format (`FORMATS`), or `w3.25a16`: weights of 3.25 bits with 16-bit activations."""
    gradient: bool = field(default=False, metadata=UNSAID)
    """Whether it is part of a backward pass, where autograd calls it as a plain function."""

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "batch"):
            check_positive(name, getattr(self, name))
        check_points(self.sizes())
        matmul_format(self.dtype)

    @property
    def operator(self) -> str:
        """`gemm`."""
        return "gemm"

    @property
    def batched(self) -> bool:
        """Whether all are strided batches, for which libraries have separate kernels."""
        return bool(np.all(np.asarray(self.batch) > 1))

    def sizes(self) -> dict[str, Number]:
        """Extent of every axis."""
        return {"b": self.batch, "m": self.m, "n": self.n, "k": self.k}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        kinds = matmul_format(self.dtype)
        return {
            "data": element(kinds.activations),
            "weights": element(kinds.weights),
            "output": element(kinds.output),
            "accumulator": element("fp32"),
        }

    def algorithm(self) -> Algorithm:
        """One contraction."""
        return matmul()

    def row_tiles(self, tile_rows: np.ndarray) -> np.ndarray | None:
        """Tiles of `tile_rows` rows along m, shape (n, tiles), where they are not those of equal
        products; problems come first. None: m over the tile's rows, rounded up."""
        return None

    @property
    def compute_type(self) -> str:
        """The type in which its format multiplies."""
        return matmul_format(self.dtype).compute

    def multiplied(self) -> frozenset[str]:
        """The type in which its format multiplies."""
        return frozenset((self.compute_type,))

    def spellings(self) -> Mapping[str, str]:
        """Other names of axes: `batch` is b."""
        return {"batch": "b"}

    def shard(self, ranks: Mapping[str, int]) -> Matmul:
        """The problem of the largest shard; each axis is a field."""
        fields = {"b": "batch"}
        sizes: Mapping[str, Any] = self.sizes()
        changes = {fields.get(a, a): ceil_div(sizes[a], n) for a, n in ranks.items()}
        return replace(self, **changes)

    def backward(self, *, stored: str = "kn") -> tuple[BackwardKernel, ...]:
        """The products that make the gradients of A and B, by `gradient`.

        Of B `stored` by rows of n (`nk`, as the weights of a linear layer are) the result is
        transposed: dBᵀ = dCᵀ·A.
        """
        algorithm, sizes = _gradient(), self.sizes()
        kernels = []
        for step in algorithm.steps:
            (result,), (inner,), (left, right) = step.outputs, step.reduces, step.inputs
            _, rows, columns = algorithm.tensors[result].axes
            if result == "dB" and stored == "nk":
                rows, columns = columns, rows
            elif result == "dB":
                left, right = right, left
            m, n, k = (sizes[axis] for axis in (rows, columns, inner))
            product = replace(self, m=m, n=n, k=k, gradient=True)
            kernels.append(BackwardKernel(product, {"A": left, "B": right, "C": result}))
        return tuple(kernels)

    def flops(self) -> Number:
        """2·b·m·n·k: a multiply-add is two operations."""
        return product([2, self.batch, self.m, self.n, self.k])


@lru_cache(maxsize=1)
def _gradient() -> Algorithm:
    """Both gradients of a product."""
    return gradient(matmul())


@lru_cache(maxsize=256)
def matmul(*, dequantise: int = 0, promote_every: int | None = None) -> Algorithm:
    """One contraction over k.

    `dequantise` widens the weights first, by so many vector operations a weight (one: unpack and
    scale, two packed 16-bit numbers at a time). `promote_every` adds partial sums over that many k
    to fp32 accumulators with their block scales: two vector operations an output each time
    (DeepGEMM's two-level accumulation).
    """
    parts = [
        Tensor("A", ("b", "m", "k")),
        Tensor("B", ("b", "k", "n"), "weights"),
        Tensor("C", ("b", "m", "n"), "output"),
    ]
    steps = []
    weights = "B"
    if dequantise:
        parts.append(Tensor("Bw", ("b", "k", "n")))
        steps.append(Step("dequantise", "map", ("B",), ("Bw",), vector=dequantise))
        weights = "Bw"
    promotion = 2 / promote_every if promote_every else 0.0
    steps.append(Step("multiply", "contraction", ("A", weights), ("C",), ("k",), vector=promotion))
    return Algorithm("matmul", AXES, tensors(*parts), tuple(steps), ("C",))
