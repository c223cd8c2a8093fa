"""Cases to measure: problems as plain data, and the grids that people ask for by name.

A case is one row of the measured-run table before it has been timed. Grids are stratified: few
points on each axis that matters, every axis covered, smallest cases first so that an interrupted
run has seen all kinds. Nothing here needs torch, numpy or pandas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from perfmodel.errors import ProblemError, UnknownName

OPS = ("attention", "gemm", "softmax", "layernorm", "rmsnorm", "pointwise")
ITEM_BYTES = {
    "fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "w8a8_int8": 1,
    "w8a16": 2, "w4a16": 2,
}  # fmt: skip
_WEIGHT_BYTES = {"w8a16": 1.0, "w4a16": 0.5 + 2 / 128}
_LABEL = "perfmodel"
_IMPLEMENTATION = "implementation"


@dataclass(frozen=True, slots=True)
class Case:
    """One problem in the columns of the measured-run table; None and "" do not apply."""

    op: str
    dtype: str
    variant: str = ""
    kv_dtype: str = ""
    direction: str = "fwd"
    phase: str = ""
    batch: int | None = None
    heads_q: int | None = None
    heads_kv: int | None = None
    seq_q: int | None = None
    seq_kv: int | None = None
    head_dim: int | None = None
    causal: bool | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    rows: int | None = None
    cols: int | None = None
    inputs: int | None = None
    outputs: int | None = None

    def columns(self) -> dict[str, str]:
        """The cells of this case as text; what does not apply is empty."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: "" if value is None else str(value) for name, value in values}

    def label(self, implementation: str = "") -> str:
        """The case as one word for a profiler's range: `perfmodel|op=gemm|dtype=bf16|m=...`.

        With an `implementation` the label says who ran it, so that rivals stay apart.
        """
        cells = [f"{name}={text}" for name, text in self.columns().items() if text]
        if implementation:  # profilers split ranges at colons
            cells.append(f"{_IMPLEMENTATION}={implementation.replace(':', '/')}")
        return "|".join((_LABEL, *cells))

    def size(self, name: str) -> int:
        """A size that this case has; raises `ProblemError` where it has not."""
        value = getattr(self, name)
        if value is None:
            raise ProblemError(f"a case of {self.op} needs {name}")
        return int(value)

    def problem(self) -> Any:
        """The problem of `perfmodel.algorithms` that this case is."""
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
        width = self.item_bytes
        if self.op == "gemm":
            m, n, k, b = (self.size("m"), self.size("n"), self.size("k"), self.batch or 1)
            wide = 2 if width == 1 else width  # 8-bit products leave 16-bit results
            weights = _WEIGHT_BYTES.get(self.dtype, float(width))
            return b * (m * k * width + k * n * weights + m * n * wide)
        if self.op == "attention":
            query = self.size("batch") * self.size("heads_q") * self.size("seq_q")
            keys = self.size("batch") * self.size("heads_kv") * self.size("seq_kv")
            once = (2 * query + 2 * keys) * self.size("head_dim") * width
            return float(once if self.direction == "fwd" else 2.5 * once)
        tensors = (self.inputs or 1) + (self.outputs or 1)
        tensors += 1 if self.direction == "bwd" else 0
        return float(self.size("rows") * self.size("cols") * tensors * width)

    @property
    def scores_bytes(self) -> float:
        """Bytes of the score matrix that unfused attention stores (0 for other operations)."""
        if self.op != "attention":
            return 0.0
        pairs = self.size("batch") * self.size("heads_q") * self.size("seq_q") * self.size("seq_kv")
        return float(pairs * self.item_bytes)

    @property
    def flops(self) -> float:
        """Operations of the contractions, a causal mask halving them (0 for row-wise)."""
        if self.op == "gemm":
            sizes = (self.size(name) for name in ("m", "n", "k"))
            return 2.0 * math.prod(sizes) * (self.batch or 1)
        if self.op != "attention":
            return 0.0
        pairs = self.scores_bytes / self.item_bytes
        seen = 0.5 if self.causal and self.size("seq_q") > 1 else 1.0
        passes = 4.0 if self.direction == "fwd" else 10.0
        return passes * pairs * seen * self.size("head_dim")


def from_label(label: str) -> Case:
    """The case that `Case.label` named; raises `ProblemError` for another text."""
    word, *cells = label.split("|")
    names = {item.name: item.type for item in fields(Case)}
    found: dict[str, Any] = {}
    for cell in cells:
        name, equals, text = cell.partition("=")
        if name == _IMPLEMENTATION:
            continue
        if not equals or name not in names:
            raise ProblemError(f"label {label!r}: {cell!r} is not a column=value of a case")
        found[name] = _typed(names[name], text, label)
    if word != _LABEL or "op" not in found or "dtype" not in found:
        raise ProblemError(
            f"label {label!r} does not name a case; write perfmodel|op=...|dtype=..."
        )
    return Case(**found)


def implementation_of(label: str) -> str:
    """Who ran the case of a label; empty where it does not say."""
    cells = dict(cell.partition("=")[::2] for cell in label.split("|"))
    return cells.get(_IMPLEMENTATION, "").replace("/", ":")


def is_label(text: str) -> bool:
    """Whether a range's name is meant as a case."""
    return text.startswith(f"{_LABEL}|")


def _typed(kind: Any, text: str, where: str) -> Any:
    """A cell's text as what its column holds."""
    if str(kind).startswith("int"):
        if not text.isdigit():
            raise ProblemError(f"label {where!r}: {text!r} is not a whole number")
        return int(text)
    if str(kind).startswith("bool"):
        return text == "True"
    return text


# ---- Grids ---------------------------------------------------------------------------------------


def grid(name: str) -> tuple[Case, ...]:
    """The cases of a grid, least work first; raises `UnknownName` for another name."""
    if name not in GRIDS:
        raise UnknownName("grid of cases", name, GRIDS)
    found = dict.fromkeys(GRIDS[name]())
    return tuple(sorted(found, key=lambda case: case.flops / 10 + case.compulsory_bytes))


def only(cases: tuple[Case, ...], ops: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of some operations; raises `UnknownName` for an operation there is not."""
    for op in ops:
        if op not in OPS:
            raise UnknownName("operation", op, OPS)
    return tuple(case for case in cases if not ops or case.op in ops)


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


def _cpu_quick() -> Iterator[Case]:
    for dtype in ("fp32", "bf16"):
        yield attention(1, 8, 8, 256, 256, 64, dtype=dtype)
        yield attention(1, 8, 8, 512, 512, 64, causal=True, dtype=dtype)
        yield attention(1, 8, 8, 1024, 1024, 64, dtype=dtype)
        yield gemm(512, 512, 512, dtype)
        yield gemm(1024, 1024, 1024, dtype)
        yield gemm(16, 2048, 2048, dtype)
    yield attention(1, 8, 2, 768, 768, 128, causal=True, dtype="fp32")
    yield attention(4, 8, 8, 1, 2048, 64, dtype="fp32")
    yield attention(1, 16, 4, 1, 8192, 128, dtype="fp32")
    yield gemm(1000, 777, 513, "fp32")
    for op in ("softmax", "layernorm", "rmsnorm"):
        yield rowwise(op, 256, 1024, "fp32")
        yield rowwise(op, 4096, 4096, "fp32")
    yield rowwise("softmax", 4096, 1024, "bf16")
    for variant in ("add", "gelu"):
        yield pointwise(variant, 2**18, "fp32")
        yield pointwise(variant, 2**24, "fp32")


def _cpu_full() -> Iterator[Case]:
    yield from _cpu_quick()
    for dtype in ("fp32", "bf16"):
        for length in (512, 1024, 2048, 4096):
            for causal in (False, True):
                for head_dim, kv_heads in ((64, 8), (128, 2)):
                    yield attention(
                        1, 8, kv_heads, length, length, head_dim, causal=causal, dtype=dtype
                    )
        for batch in (1, 8):
            for keys in (1024, 8192, 32768):
                yield attention(batch, 8, 2, 1, keys, 128, dtype=dtype)
        for size in (256, 384, 768, 1536, 2048):
            yield gemm(size, size, size, dtype)
        for m in (1, 4, 64):
            yield gemm(m, 4096, 4096, dtype)
        for op in ("softmax", "layernorm", "rmsnorm"):
            for rows, cols in ((64, 512), (1024, 1024), (1000, 777), (2048, 8192), (16, 2**20)):
                yield rowwise(op, rows, cols, dtype)
        for variant in ("add", "gelu", "copy"):
            for power in (14, 20, 22, 26):
                yield pointwise(variant, 2**power, dtype)


def _gpu_quick() -> Iterator[Case]:
    for length, batch in ((512, 16), (4096, 2)):
        for causal in (False, True):
            yield attention(batch, 16, 16, length, length, 128, causal=causal)
    yield attention(2, 32, 8, 2048, 2048, 64, causal=True)
    yield attention(1, 16, 16, 4096, 4096, 128, causal=True, direction="bwd")
    for batch, keys in ((1, 16384), (16, 4096), (64, 8192)):
        yield attention(batch, 32, 8, 1, keys, 128)
    for size in (1024, 4096, 8192):
        yield gemm(size, size, size)
    yield gemm(16, 8192, 8192)
    yield gemm(1111, 2222, 3333)
    for op in ("softmax", "layernorm", "rmsnorm"):
        yield rowwise(op, 2048, 4096)
        yield rowwise(op, 65536, 4096)
    for variant in ("copy", "add", "triad", "gelu"):
        yield pointwise(variant, 2**22)
        yield pointwise(variant, 2**29)


_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


def _gpu_attention(direction: str) -> Iterator[Case]:
    """16k tokens whatever the length, as the published sweeps have it."""
    for length in _LENGTHS:
        batch = max(16384 // length, 1)
        for head_dim in (64, 128, 256):
            heads = 2048 // head_dim
            for causal in (False, True):
                yield attention(
                    batch, heads, heads, length, length, head_dim, causal=causal,
                    direction=direction,
                )  # fmt: skip
        for group in (4, 8):
            yield attention(
                batch, 32, 32 // group, length, length, 128, causal=True, direction=direction
            )
    for length in (1024, 8192):
        yield attention(
            16384 // length, 16, 16, length, length, 128, causal=True, dtype="fp16",
            direction=direction,
        )  # fmt: skip
    yield attention(3, 10, 10, 1111, 1111, 128, causal=True, direction=direction)
    if direction == "fwd":
        for length in (2048, 16384):
            case = attention(16384 // length, 16, 16, length, length, 128, causal=True)
            yield replace(case, dtype="fp8", kv_dtype="fp8")


def _gpu_decode() -> Iterator[Case]:
    for batch in (1, 4, 16, 64, 128):
        for keys in (1024, 4096, 16384, 65536, 131072):
            if batch * keys <= 2**21:
                yield attention(batch, 32, 8, 1, keys, 128)
    for kv_heads in (32, 4):
        for batch, keys in ((1, 8192), (16, 8192), (64, 4096)):
            yield attention(batch, 32, kv_heads, 1, keys, 128)
    yield attention(16, 32, 8, 1, 8192, 64)
    yield attention(16, 16, 2, 1, 8192, 256)
    yield attention(16, 32, 8, 1, 8192, 128, dtype="fp16")


def _gpu_matmul() -> Iterator[Case]:
    for size in (256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384):
        yield gemm(size, size, size)
    for size in (1024, 4096, 8192):
        for dtype in ("fp16", "fp8", "w8a8_int8"):
            yield gemm(size, size, size, dtype)
    for size in (1024, 4096):
        yield gemm(size, size, size, "fp32")
    for m in (1, 4, 16, 64, 256):
        for n, k in ((4096, 4096), (14336, 4096), (8192, 28672)):
            yield gemm(m, n, k)
    for m in (1, 16, 128):
        for dtype in ("w8a16", "w4a16"):
            yield gemm(m, 8192, 8192, dtype)
    yield gemm(16384, 1024, 128)
    yield gemm(128, 128, 131072)
    for m, n, k in ((1111, 2222, 3333), (4097, 4095, 4096), (8191, 129, 5000)):
        yield gemm(m, n, k)


def _gpu_rows() -> Iterator[Case]:
    """From what stays in L2 to tensors of several GB."""
    shapes = ((512, 1024), (4096, 1024), (4096, 4096), (16384, 8192), (131072, 8192), (16, 2**18))
    for op in ("softmax", "layernorm", "rmsnorm"):
        for rows, cols in (*shapes, (1000, 777)):
            if op == "softmax" or cols <= 65536:
                yield rowwise(op, rows, cols)
        yield rowwise(op, 4096, 4096, "fp32")
    for op in ("layernorm", "rmsnorm"):
        for rows, cols in ((4096, 1024), (16384, 8192)):
            yield rowwise(op, rows, cols, direction="bwd")
    for variant in ("copy", "scale", "add", "triad", "gelu"):
        for power in (18, 22, 24, 26, 28, 30):
            yield pointwise(variant, 2**power)
    yield pointwise("copy", 2**32)


def _gpu_full() -> Iterator[Case]:
    yield from _gpu_quick()
    yield from _gpu_attention("fwd")
    yield from _gpu_attention("bwd")
    yield from _gpu_decode()
    yield from _gpu_matmul()
    yield from _gpu_rows()


GRIDS = {"cpu-quick": _cpu_quick, "cpu-full": _cpu_full, "quick": _gpu_quick, "full": _gpu_full}
