"""Functions that several kernel files share: sizes of tiles, and attention in float64."""

from __future__ import annotations

import math

import torch

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, Tensors

LOG2E = math.log2(math.e)


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def padded(columns: int) -> int:
    """Columns of a tile padded for matrix instructions: a power of two, at least 16."""
    return max(power_of_two(columns), 16)


def ceil_div(a: int, b: int) -> int:
    """⌈a / b⌉."""
    return -(-a // b)


def dims(problem: Attention) -> tuple[int, int, int, int, int, int, int]:
    """(batch, kv heads, group, queries, keys, head dim, value head dim)."""
    sizes = problem.sizes()
    b, g, r, q, x, d, e = (int(sizes[axis]) for axis in ("b", "g", "r", "q", "x", "d", "e"))
    return b, g, r, q, x, d, e


def mask_arguments(problem: Attention) -> dict[str, bool | int]:
    """The mask as two compile-time constants: CAUSAL, and WINDOW with 0 for none."""
    return {"CAUSAL": problem.causal, "WINDOW": int(problem.window or 0)}


def inputs(problem: Attention) -> tuple[Array, ...]:
    """Q, K and V, heads outermost and rows contiguous."""
    b, g, r, q, x, d, e = dims(problem)
    return (
        Array("Q", (b, g * r, q, d), problem.dtype),
        Array("K", (b, g, x, d), problem.kv_dtype or problem.dtype),
        Array("V", (b, g, x, e), problem.kv_dtype or problem.dtype),
    )


def scale_of(problem: Attention) -> float:
    """1 / √d."""
    return float(problem.head_dim) ** -0.5


def check_forward(kernel: str, problem: Attention) -> None:
    """Raise `ProblemError` for problems that no bundled forward kernel supports.

    The kernels have no backward pass, padding, dropout or values shared with keys. Keys and values
    have the queries' type, or are 8-bit floats, which are converted to it.
    """
    if problem.direction != "fwd":
        raise ProblemError(f"{kernel} is a forward pass, not {problem.direction}; ask for fwd")
    for name in ("padding_mask", "dropout", "keys_only"):
        if getattr(problem, name):
            raise ProblemError(f"{kernel} knows no {name}; leave it out")
    kept = problem.kv_dtype or problem.dtype
    if kept not in (problem.dtype, "fp8"):
        raise ProblemError(
            f"{kernel} takes keys and values of the queries' type or fp8, not {kept} with "
            f"{problem.dtype} queries"
        )


def check_tile(bc: int, **sizes: int) -> None:
    """Raise `ProblemError` where `bc` is no power of two from 16 on, or another size is below 1."""
    if bc < 16 or bc != power_of_two(bc):
        raise ProblemError(f"bc must be a power of two from 16 on, not {bc}")
    for name, size in sizes.items():
        if size < 1:
            raise ProblemError(f"{name} must be at least 1, not {size}")


def visible(problem: Attention) -> torch.Tensor | None:
    """Which key each query sees, or None where all are seen."""
    band = problem.mask()
    if band is None:
        return None
    rows = torch.arange(problem.seq_q)[:, None] + (problem.seq_kv - problem.seq_q)
    keys = torch.arange(problem.seq_kv)[None, :]
    seen = torch.ones(problem.seq_q, problem.seq_kv, dtype=torch.bool)
    if band.right is not None:
        seen &= keys <= rows + band.right
    if band.left is not None:
        seen &= keys > rows - band.left
    return seen


def forward_reference(problem: Attention, tensors: Tensors) -> Tensors:
    """S, P, O and L in float64; a row that sees no key gives O = 0 and L = −∞."""
    q, k, v = (tensors[name].double().cpu() for name in "QKV")
    group = problem.heads_q // problem.heads_kv
    k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
    scores = scale_of(problem) * q @ k.transpose(-1, -2)
    seen = visible(problem)
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    log_sum = torch.logsumexp(scores, dim=-1)
    shift = log_sum.masked_fill(torch.isinf(log_sum), 0.0)
    weights = torch.exp(scores - shift[..., None])
    return {"S": scores, "P": weights, "O": weights @ v, "L": log_sum}


def backward_reference(problem: Attention, tensors: Tensors) -> Tensors:
    """dQ, dK and dV in float64, from the stored P where there is one."""
    q, k, v, do = (tensors[name].double().cpu() for name in ("Q", "K", "V", "dO"))
    group = problem.heads_q // problem.heads_kv
    k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
    forward = forward_reference(problem, tensors)
    p = tensors["P"].double().cpu() if "P" in tensors else forward["P"]
    dp = do @ v.transpose(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale_of(problem)
    return {
        "dQ": ds @ k,
        "dK": _over_group(problem, ds.transpose(-1, -2) @ q),
        "dV": _over_group(problem, p.transpose(-1, -2) @ do),
    }


def _over_group(problem: Attention, per_head: torch.Tensor) -> torch.Tensor:
    """Sum of the gradients of the query heads that share a key-value head."""
    batch, heads, rows, columns = per_head.shape
    shared = (batch, problem.heads_kv, heads // problem.heads_kv, rows, columns)
    return per_head.reshape(shared).sum(2)
