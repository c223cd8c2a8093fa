"""Cases to measure: problems as plain data, in the columns of the measured-run table.

A case is one row of the table before it has been timed. Nothing here needs torch, numpy or pandas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from perfmodel.errors import ProblemError

ITEM_BYTES = {
    "fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "w8a8_int8": 1,
    "w8a16": 2, "w4a16": 2,
}  # fmt: skip
_LABEL = "perfmodel"
_IMPLEMENTATION = "implementation"
_DIGITS = 18  # of a size in a label: what a 64-bit integer holds


@dataclass(frozen=True, slots=True)
class Case:
    """One problem in the columns of the measured-run table; a field that does not apply is None or
    ""."""

    op: str
    """The operator."""
    dtype: str
    """Type of the data."""
    variant: str = ""
    """Name of the map for `pointwise`, or the variant of another operator."""
    kv_dtype: str = ""
    """Type of keys and values, where it differs from `dtype`."""
    direction: str = "fwd"
    """fwd or bwd."""
    phase: str = ""
    """prefill or decode, of attention."""
    batch: int | None = None
    """Sequences."""
    heads_q: int | None = None
    """Query heads."""
    heads_kv: int | None = None
    """Key-value heads."""
    seq_q: int | None = None
    """Queries of a sequence."""
    seq_kv: int | None = None
    """Keys of a sequence."""
    head_dim: int | None = None
    """Elements of a query."""
    causal: bool | None = None
    """Whether a query sees earlier keys only."""
    m: int | None = None
    """Rows of a product."""
    n: int | None = None
    """Columns of a product."""
    k: int | None = None
    """The axis that a product sums over."""
    rows: int | None = None
    """Rows of a row-wise operator."""
    cols: int | None = None
    """Elements of a row."""
    inputs: int | None = None
    """Tensors that a map reads."""
    outputs: int | None = None
    """Tensors that a map writes."""

    def columns(self) -> dict[str, str]:
        """The cells of this case as text; what does not apply is empty."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: "" if value is None else str(value) for name, value in values}

    def label(self, implementation: str = "") -> str:
        """The case as one word for a profiler's range: `perfmodel|op=gemm|dtype=bf16|m=...`.

        With an `implementation` the label names it, so that two implementations of one case differ.
        """
        cells = [f"{name}={text}" for name, text in self.columns().items() if text]
        if implementation:  # profilers split ranges at colons
            cells.append(f"{_IMPLEMENTATION}={implementation.replace(':', '/')}")
        return "|".join((_LABEL, *cells))

    def size(self, name: str) -> int:
        """The size called `name`; raises `ProblemError` if this case has no such size."""
        value = getattr(self, name)
        if value is None:
            raise ProblemError(f"a case of {self.op} needs {name}")
        return int(value)

    def problem(self) -> Any:
        """This case as a problem of `perfmodel.algorithms`."""
        from perfmodel.algorithms import Attention, Matmul, Rowwise

        if self.op == "attention":
            names = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim")
            sizes: dict[str, Any] = {name: self.size(name) for name in names}
            return Attention(
                **sizes,
                causal=bool(self.causal),
                dtype=self.dtype,
                kv_dtype=self.kv_dtype or None,
                direction=self.direction,  # type: ignore[arg-type]
            )
        if self.op == "gemm":
            m, n, k = (self.size(name) for name in ("m", "n", "k"))
            return Matmul(m, n, k, self.batch or 1, self.dtype)
        return Rowwise(
            self.op,
            self.size("rows"),
            self.size("cols"),
            self.dtype,
            variant=self.variant,
            inputs=self.inputs or 1,
            outputs=self.outputs or 1,
            direction=self.direction,  # type: ignore[arg-type]
        )

    @property
    def item_bytes(self) -> int:
        """Bytes of one element of the data."""
        return ITEM_BYTES[self.dtype]

    @property
    def compulsory_bytes(self) -> float:
        """Bytes of all inputs and outputs, each once."""
        from perfmodel.count import compulsory_bytes

        return float(compulsory_bytes(self.problem()))

    @property
    def scores_bytes(self) -> float:
        """Bytes of the score matrix that unfused attention stores (0 for other operations)."""
        if self.op != "attention":
            return 0.0
        pairs = self.size("batch") * self.size("heads_q") * self.size("seq_q") * self.size("seq_kv")
        return float(pairs * self.item_bytes)

    @property
    def flops(self) -> float:
        """FLOP of the matrix products, halved by a causal mask; 0 for row-wise operators."""
        if self.op == "gemm":
            sizes = (self.size(name) for name in ("m", "n", "k"))
            return 2.0 * math.prod(sizes) * (self.batch or 1)
        if self.op != "attention":
            return 0.0
        pairs = self.scores_bytes / self.item_bytes
        share = 0.5 if self.causal and self.size("seq_q") > 1 else 1.0
        passes = 4.0 if self.direction == "fwd" else 10.0
        return passes * pairs * share * self.size("head_dim")


def from_label(label: str) -> Case:
    """The case of a text that `Case.label` wrote; raises `ProblemError` for any other text."""
    word, *cells = label.split("|")
    names = {item.name: item.type for item in fields(Case)}
    values: dict[str, Any] = {}
    for cell in cells:
        name, equals, text = cell.partition("=")
        if name == _IMPLEMENTATION:
            continue
        if not equals or name not in names:
            raise ProblemError(f"label {label!r}: {cell!r} is not a column=value of a case")
        values[name] = _cell_value(names[name], text, label)
    if word != _LABEL or "op" not in values or "dtype" not in values:
        raise ProblemError(
            f"label {label!r} does not name a case; write perfmodel|op=...|dtype=..."
        )
    return Case(**values)


def implementation_of(label: str) -> str:
    """The implementation that a label names; empty where it names none."""
    cells = dict(cell.partition("=")[::2] for cell in label.split("|"))
    return cells.get(_IMPLEMENTATION, "").replace("/", ":")


def is_label(text: str) -> bool:
    """Whether a range's name begins as the labels of cases do."""
    return text.startswith(f"{_LABEL}|")


def _cell_value(kind: Any, text: str, label: str) -> Any:
    """A cell's text as what its column holds."""
    if str(kind).startswith("int"):
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            raise ProblemError(
                f"label {label!r}: {text!r} is not a whole number of at most {_DIGITS} digits"
            )
        return int(text)
    if str(kind).startswith("bool"):
        return text == "True"
    return text


# ---- Made from sizes -----------------------------------------------------------------------------


def attention(
    batch: int,
    heads: int,
    kv_heads: int,
    queries: int,
    keys: int,
    head_dim: int,
    *,
    causal: bool = False,
    dtype: str = "bf16",
    direction: str = "fwd",
) -> Case:
    """An attention case; one query is a decode."""
    phase = "decode" if queries == 1 else "prefill"
    return Case(
        "attention", dtype, kv_dtype=dtype, direction=direction, phase=phase, batch=batch,
        heads_q=heads, heads_kv=kv_heads, seq_q=queries, seq_kv=keys, head_dim=head_dim,
        causal=causal,
    )  # fmt: skip


def gemm(m: int, n: int, k: int, dtype: str = "bf16", batch: int = 1) -> Case:
    """A matmul case."""
    return Case("gemm", dtype, batch=batch, m=m, n=n, k=k)


def rowwise(op: str, rows: int, cols: int, dtype: str = "bf16", direction: str = "fwd") -> Case:
    """A case of softmax, layernorm or rmsnorm."""
    return Case(op, dtype, direction=direction, rows=rows, cols=cols)


def pointwise(variant: str, elements: int, dtype: str = "bf16") -> Case:
    """An element-wise case over `elements`."""
    cols = 1024
    inputs = {"add": 2, "triad": 2}.get(variant, 1)
    return Case(
        "pointwise", dtype, variant, rows=elements // cols, cols=cols, inputs=inputs, outputs=1
    )
