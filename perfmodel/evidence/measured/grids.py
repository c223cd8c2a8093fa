"""Named grids of cases to measure.

Grids are stratified: they cover every axis with a few points. The grids of a CPU and `quick` are
ordered by work, least first. `proof` and `full` are ordered by importance, so that a run cut short
on a GPU has measured the most important cases. `full` begins with `proof`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest

from perfmodel.errors import UnknownName
from perfmodel.evidence.cases import Case, attention, gemm, pointwise, rowwise

OPS = ("attention", "gemm", "softmax", "layernorm", "rmsnorm", "pointwise")


def grid(name: str) -> tuple[Case, ...]:
    """The cases of a grid, in the order to measure them; raises `UnknownName` for another name."""
    if name not in GRIDS:
        raise UnknownName("grid of cases", name, GRIDS)
    return tuple(dict.fromkeys(GRIDS[name]()))


def only(cases: tuple[Case, ...], ops: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of some operations; raises `UnknownName` for an operation there is not."""
    for op in ops:
        if op not in OPS:
            raise UnknownName("operation", op, OPS)
    return tuple(case for case in cases if not ops or case.op in ops)


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


def _least_work_first(cases: Iterator[Case]) -> Iterator[Case]:
    yield from sorted(cases, key=lambda case: case.flops / 10 + case.compulsory_bytes)


def _round_robin(*families: Iterator[Case]) -> Iterator[Case]:
    """The first case of every family, then the second of each, until all have run out."""
    for cases in zip_longest(*families):
        yield from (case for case in cases if case is not None)


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


_TOKENS = 16384  # of a prefill of any length, as in the published sweeps
_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


def _gpu_attention(direction: str) -> Iterator[Case]:
    for length in _LENGTHS:
        batch = max(_TOKENS // length, 1)
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
    """From tensors that stay in L2 to tensors of several GB."""
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


# ---- The proof set: about sixty cases that compare the bundled kernels with their rivals
# ------------

_STREAMED = 2**26  # elements of a row-wise case: twice what any L2 holds, in 16 bits


def _prefill(
    length: int, head_dim: int, causal: bool, group: int = 1, direction: str = "fwd"
) -> Case:
    heads = 2048 // head_dim
    return attention(
        _TOKENS // length, heads, heads // group, length, length, head_dim, causal=causal,
        direction=direction,
    )  # fmt: skip


def _proof_forward() -> Iterator[Case]:
    for length in (8192, 4096, 2048, 16384, 1024):
        for causal in (True, False):
            yield _prefill(length, 128, causal)
    for head_dim, lengths in ((64, (8192, 2048)), (256, (4096, 16384))):
        for length in lengths:
            for causal in (True, False):
                yield _prefill(length, head_dim, causal)
    yield _prefill(4096, 128, True, group=4)
    yield _prefill(16384, 128, True, group=8)


def _proof_backward() -> Iterator[Case]:
    for length in (8192, 2048, 16384, 4096):
        for causal in (True, False):
            yield _prefill(length, 128, causal, direction="bwd")
    for length in (4096, 16384):
        yield _prefill(length, 64, True, direction="bwd")
    yield _prefill(8192, 128, True, group=8, direction="bwd")


def _proof_matmul() -> Iterator[Case]:
    for size in (8192, 4096, 16384):
        yield gemm(size, size, size)
        yield gemm(size, size, size, "fp8")
    yield gemm(2048, 2048, 2048)
    yield gemm(4096, 14336, 4096)
    yield gemm(16, 8192, 8192)


def _proof_decode() -> Iterator[Case]:
    for batch, keys in ((64, 8192), (1, 131072), (16, 8192), (128, 2048), (4, 32768), (16, 131072)):
        yield attention(batch, 32, 8, 1, keys, 128)
    yield attention(16, 32, 32, 1, 8192, 128)


def _proof_rows() -> Iterator[Case]:
    for cols in (4096, 16384, 1024):
        for op in ("rmsnorm", "softmax", "layernorm"):
            yield rowwise(op, _STREAMED // cols, cols)
    yield rowwise("rmsnorm", _STREAMED // 8192, 8192)
    yield rowwise("layernorm", _STREAMED // 4096, 4096, direction="bwd")
    yield rowwise("rmsnorm", _STREAMED // 8192, 8192, direction="bwd")


def _proof_streams() -> Iterator[Case]:
    for variant in ("copy", "triad"):
        yield pointwise(variant, 2**29)  # tensors of 1 GiB


def _gpu_proof() -> Iterator[Case]:
    yield from _round_robin(
        _proof_forward(), _proof_matmul(), _proof_decode(), _proof_backward(), _proof_rows(),
        _proof_streams(),
    )  # fmt: skip


def _gpu_full() -> Iterator[Case]:
    yield from _gpu_proof()
    yield from _round_robin(
        _gpu_attention("fwd"), _gpu_matmul(), _gpu_decode(), _gpu_attention("bwd"), _gpu_rows()
    )
    yield from _gpu_quick()


GRIDS: dict[str, Callable[[], Iterator[Case]]] = {
    "cpu-quick": lambda: _least_work_first(_cpu_quick()),
    "cpu-full": lambda: _least_work_first(_cpu_full()),
    "quick": lambda: _least_work_first(_gpu_quick()),
    "proof": _gpu_proof,
    "full": _gpu_full,
}
