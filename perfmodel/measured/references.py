"""Random inputs on the device, and errors of results against a higher-precision reference.

All contenders use the same names: Q, K, V, O, L, dO, dQ, dK, dV for attention (batch, heads,
length, head dimension), A, B, C for matmul, X, Y, gamma, beta, dY, dX for row-wise operators.
Errors are ‖out − ref‖ / ‖ref‖ over a random sample of whole heads or rows, which is large enough to
detect one wrong tile. No element of an output, sampled or not, may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from perfmodel.cases import Case

Tensors = dict[str, Any]

TOLERANCE: Mapping[str, float] = {
    "fp64": 1e-9, "fp32": 2e-4, "fp16": 5e-3, "bf16": 2e-2, "fp8": 1e-1, "int8": 2e-2,
    "w8a8_int8": 2e-2, "w8a16": 5e-3, "w4a16": 5e-3,
}  # fmt: skip
"""The largest allowed error of a correct kernel, by the type of its operands."""

_TORCH = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "fp8": "float8_e4m3fn", "int8": "int8", "w8a8_int8": "int8",
}  # fmt: skip
_ROWS = 256  # rows of a sample
_SCORES = 2**28  # score elements held at once
_WHOLE_HEADS = 4  # (batch, head group) pairs of a sample


def tolerance(case: Case) -> float:
    """The largest allowed error of a case; larger for a backward pass, which rounds more often."""
    return TOLERANCE[case.dtype] * (2 if case.direction == "bwd" else 1)


def torch_type(dtype: str) -> Any:
    """How torch stores a type."""
    import torch

    return getattr(torch, _TORCH[dtype])


def random(shape: tuple[int, ...], dtype: str, generator: Any) -> Any:
    """Standard normal numbers, or integers over the whole range, on the generator's device."""
    import torch

    kind, device = torch_type(dtype), generator.device
    if kind == torch.int8:
        return torch.randint(-127, 128, shape, dtype=kind, generator=generator, device=device)
    if kind == torch.float8_e4m3fn:
        values = torch.randn(shape, dtype=torch.float16, generator=generator, device=device)
        return values.to(kind)
    if device.type == "cpu" and kind in (torch.bfloat16, torch.float16):
        return torch.randn(shape, generator=generator).to(kind)
    return torch.randn(shape, dtype=kind, generator=generator, device=device)


def draw(case: Case, device: str, seed: int) -> Tensors:
    """Fresh random inputs of a case."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {
        name: random(shape, case.dtype, generator) for name, shape in input_shapes(case).items()
    }


def input_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """The inputs of a case and their shapes."""
    if case.op == "attention":
        b, d = case.size("batch"), case.size("head_dim")
        query = (b, case.size("heads_q"), case.size("seq_q"), d)
        keys = (b, case.size("heads_kv"), case.size("seq_kv"), d)
        shapes: dict[str, tuple[int, ...]] = {"Q": query, "K": keys, "V": keys}
        return shapes | ({"dO": query} if case.direction == "bwd" else {})
    if case.op == "gemm":
        m, n, k, b = (case.size("m"), case.size("n"), case.size("k"), case.batch or 1)
        return {"A": (b, m, k), "B": (b, k, n)}
    shape = (case.size("rows"), case.size("cols"))
    if case.op == "pointwise":
        return {"X": (case.inputs or 1, math.prod(shape))}
    weights = {"layernorm": ("gamma", "beta"), "rmsnorm": ("gamma",)}.get(case.op, ())
    inputs: dict[str, tuple[int, ...]] = {"X": shape}
    inputs |= dict.fromkeys(weights, shape[1:])
    if case.direction == "bwd":
        inputs = {name: inputs[name] for name in inputs if name != "beta"} | {"dY": shape}
    return inputs


def error(case: Case, inputs: Tensors, outputs: Tensors, seed: int = 0) -> float:
    """The largest error over the outputs; infinite if an element is not a number."""
    import torch

    with torch.no_grad():
        if any(bool(torch.isnan(_fp16_value(value)).any()) for value in outputs.values()):
            return math.inf
    generator = torch.Generator().manual_seed(seed)
    pairs = _EXPECTED[case.op](case, inputs, outputs, generator)
    return max(_relative_error(case, out, ref) for out, ref in pairs)


def _fp16_value(value: Any) -> Any:
    """8-bit floats as 16-bit ones, which torch can test."""
    import torch

    return value.to(torch.float16) if value.dtype == torch.float8_e4m3fn else value


def _relative_error(case: Case, out: Any, ref: Any) -> float:
    import torch

    out, ref = out.to(ref.dtype).reshape(-1), ref.reshape(-1)
    if case.dtype in ("int8", "w8a8_int8"):  # each kernel chooses the scale of an integer product
        scale = torch.dot(out, ref) / torch.dot(ref, ref)
        ref = ref * scale
    norm = float(torch.linalg.vector_norm(ref))
    difference = float(torch.linalg.vector_norm(out - ref))
    return difference / norm if norm else difference


def _cast(case: Case, value: Any) -> Any:
    """A tensor in the reference's precision: float64 for fp32 and integers, else float32."""
    import torch

    is_exact = case.dtype in ("fp32", "fp64", "int8", "w8a8_int8")
    return value.detach().to(torch.float64 if is_exact else torch.float32)


def _sample(count: int, limit: int, generator: Any) -> Any:
    import torch

    if count <= limit:
        return torch.arange(count)
    return torch.sort(torch.randperm(count, generator=generator)[:limit]).values


Pairs = Iterator[tuple[Any, Any]]


def _matmul(case: Case, inputs: Tensors, outputs: Tensors, generator: Any) -> Pairs:
    rows = _sample(case.size("m"), _ROWS, generator).to(inputs["A"].device)
    for batch in _sample(case.batch or 1, _WHOLE_HEADS, generator).tolist():
        a = _cast(case, inputs["A"][batch][rows])
        yield outputs["C"][batch][rows], a @ _cast(case, inputs["B"][batch])


def _attention(case: Case, inputs: Tensors, outputs: Tensors, generator: Any) -> Pairs:
    """Whole heads: forward rows in chunks; gradients from torch's own differentiation."""
    kv_heads = case.size("heads_kv")
    for pair in _sample(case.size("batch") * kv_heads, _WHOLE_HEADS, generator).tolist():
        batch, head = divmod(pair, kv_heads)
        group = case.size("heads_q") // kv_heads
        heads = slice(head * group, (head + 1) * group)
        q = _cast(case, inputs["Q"][batch, heads])
        k, v = (_cast(case, inputs[name][batch, head]) for name in "KV")
        if case.direction == "fwd":
            yield outputs["O"][batch, heads], attend(case, q, k, v)[0]
            continue
        gradients = _gradients(case, q, k, v, _cast(case, inputs["dO"][batch, heads]))
        for name, place, ref in zip(
            ("dQ", "dK", "dV"), (heads, head, head), gradients, strict=True
        ):
            yield outputs[name][batch, place], ref


def attend(case: Case, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """O and L of query heads `q` (heads, rows, d) that share `k` and `v` (keys, d)."""
    import torch

    parts = [_attend_rows(case, q, k, v, start, stop) for start, stop in _chunks(case, q)]
    return torch.cat([o for o, _ in parts], 1), torch.cat([norm for _, norm in parts], 1)


def _chunks(case: Case, q: Any) -> Iterator[tuple[int, int]]:
    """Query rows at a time, so that their scores fit."""
    length = case.size("seq_q")
    step = max(_SCORES // (case.size("seq_kv") * q.shape[0]), 1)
    return ((start, min(start + step, length)) for start in range(0, length, step))


def _attend_rows(case: Case, q: Any, k: Any, v: Any, start: int, stop: int) -> tuple[Any, Any]:
    import torch

    scores = q[:, start:stop] @ k.transpose(0, 1) * case.size("head_dim") ** -0.5
    if case.causal:
        shift = case.size("seq_kv") - case.size("seq_q")
        rows = torch.arange(start, stop, device=q.device)[:, None] + shift
        hidden = torch.arange(case.size("seq_kv"), device=q.device)[None, :] > rows
        scores = scores.masked_fill(hidden, -math.inf)
    norm = torch.logsumexp(scores, -1)
    return torch.exp(scores - norm[..., None]) @ v, norm


def _gradients(case: Case, q: Any, k: Any, v: Any, do: Any) -> tuple[Any, Any, Any]:
    import torch

    q, k, v = (t.detach().clone().requires_grad_() for t in (q, k, v))
    with torch.enable_grad():
        for start, stop in _chunks(case, q):
            out, _ = _attend_rows(case, q, k, v, start, stop)
            out.backward(do[:, start:stop])
    return q.grad, k.grad, v.grad


def _rows(case: Case, inputs: Tensors, outputs: Tensors, generator: Any) -> Pairs:
    import torch

    rows = _sample(case.size("rows"), _ROWS, generator).to(inputs["X"].device)
    x = _cast(case, inputs["X"][rows])
    if case.direction == "bwd":
        yield from _row_gradients(case, inputs, outputs, rows)
    elif case.op == "softmax":
        yield outputs["Y"][rows], torch.softmax(x, -1)
    else:
        yield (
            outputs["Y"][rows],
            _normal(case, x) * _cast(case, inputs["gamma"])
            + (_cast(case, inputs["beta"]) if "beta" in inputs else 0.0),
        )


def _normal(case: Case, x: Any) -> Any:
    mean, rstd = statistics(case, x)
    return (x - mean[:, None]) * rstd[:, None]


EPSILON = 1e-5


def statistics(case: Case, x: Any) -> tuple[Any, Any]:
    """Mean (0 for rmsnorm) and reciprocal deviation of each row."""
    mean = x.mean(-1) if case.op == "layernorm" else x.new_zeros(x.shape[0])
    return mean, ((x - mean[:, None]).square().mean(-1) + EPSILON).rsqrt()


def _row_gradients(case: Case, inputs: Tensors, outputs: Tensors, rows: Any) -> Pairs:
    import torch

    x, dy = (_cast(case, inputs[name][rows]) for name in ("X", "dY"))
    normal = _normal(case, x)
    g = dy * _cast(case, inputs["gamma"])
    dx = g - normal * (g * normal).mean(1, keepdim=True)
    if case.op == "layernorm":
        dx = dx - g.mean(1, keepdim=True)
    yield outputs["dX"][rows], dx * statistics(case, x)[1][:, None]
    dgamma = torch.zeros_like(_cast(case, inputs["gamma"]), dtype=torch.float64)
    for start in range(0, case.size("rows"), 4096):
        part = _cast(case, inputs["X"][start : start + 4096])
        dgamma += (_cast(case, inputs["dY"][start : start + 4096]) * _normal(case, part)).sum(0)
    yield outputs["dgamma"], dgamma


FACTOR = 0.75
"""The factor of scale and triad in every contender."""


def _elements(case: Case, inputs: Tensors, outputs: Tensors, generator: Any) -> Pairs:
    import torch

    count = inputs["X"].shape[1]
    start = int(torch.randint(max(count - 2**20, 0) + 1, (1,), generator=generator))
    for first in {0, start, max(count - 2**20, 0)}:
        x = _cast(case, inputs["X"][:, first : first + 2**20])
        yield outputs["Y"].reshape(-1)[first : first + 2**20], _map_output(case.variant, x)


def _map_output(variant: str, x: Any) -> Any:
    import torch

    forms = {
        "copy": lambda: x[0],
        "scale": lambda: FACTOR * x[0],
        "add": lambda: x[0] + x[1],
        "triad": lambda: x[0] + FACTOR * x[1],
        "gelu": lambda: torch.nn.functional.gelu(x[0]),
        "silu_mul": lambda: torch.nn.functional.silu(x[0]) * x[1],
    }
    return forms[variant]()


_EXPECTED: Mapping[str, Any] = {
    "attention": _attention,
    "gemm": _matmul,
    "softmax": _rows,
    "layernorm": _rows,
    "rmsnorm": _rows,
    "pointwise": _elements,
}
