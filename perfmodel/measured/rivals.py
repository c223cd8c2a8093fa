"""Contenders that run a library's kernels: the rivals of the bundled kernels.

A contender takes a case, prepares calls on random inputs and computes the error of its result
against the reference. On a CUDA or ROCm device: torch SDPA by backend, cuBLAS through torch.matmul,
torch's row-wise and element-wise kernels. On a CPU: torch's unfused and fused attention, and the
same other operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from perfmodel.cases import Case
from perfmodel.measured import references
from perfmodel.measured.gradients import attention_gradients, norm_gradients
from perfmodel.measured.references import FACTOR, Tensors
from perfmodel.measured.timer import Call

_MOST_UNFUSED = 8 * 2**30  # bytes of scores that an unfused attention may store


@dataclass(frozen=True)
class Prepared:
    """A case ready to be timed."""

    calls: tuple[Call, ...]
    """A call for each set of inputs."""
    error: Callable[[], float]
    """Computes the relative error of the first call's result."""
    config: str = ""
    """The config that was chosen."""
    capturable: bool = True
    """Whether a CUDA graph can capture it. torch's autograd runs on the stream of the forward pass,
    which is not the captured one."""
    resources: Callable[[], Mapping[str, int]] = dict
    """The binary's resources, known after the check has run."""


class Contender(Protocol):
    """An implementation that computes cases."""

    @property
    def implementation(self) -> str:
        """The name in the measured-run table."""

    def takes(self, case: Case) -> bool:
        """Whether it computes this case."""

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        """Inputs, compiled code and calls; raises whatever the library raises."""


Build = Callable[[Case, Tensors], Callable[[], Tensors]]


@dataclass(frozen=True)
class Rival:
    """A library's kernel."""

    implementation: str
    """What it is called in tables."""
    device: str
    """Kind of device that it runs on."""
    accepts: Callable[[Case], bool]
    """Whether it can run a case."""
    build: Build
    """Turns inputs into a call that returns outputs by name."""
    direct: Build | None = None
    """The same for gradients, by calling autograd's backward operator directly, which a graph can
    capture. If torch lacks the operator or refuses the case, `build` is used."""

    def takes(self, case: Case) -> bool:
        """Whether the library computes this case."""
        return self.accepts(case)

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        """Draw `sets` inputs and bind a call to each."""
        inputs = [references.draw(case, self.device, seed + i) for i in range(sets)]
        calls, capturable = self._calls(case, inputs)

        def error() -> float:
            outputs = calls[0]()
            tensors = {name: value.detach() for name, value in outputs.items()}
            return references.error(case, inputs[0], tensors, seed)

        return Prepared(calls, error, capturable=capturable)

    def _calls(self, case: Case, inputs: Sequence[Tensors]) -> tuple[tuple[Call, ...], bool]:
        """A call for each set of inputs, and whether a graph can capture it."""
        if case.direction == "fwd":
            return tuple(self.build(case, each) for each in inputs), True
        if self.direct is not None:
            try:
                calls = tuple(self.direct(case, each) for each in inputs)
                calls[0]()
            except (AttributeError, NotImplementedError, RuntimeError, TypeError):
                pass  # this torch has no such operator, or not for this case
            else:
                return calls, True
        return tuple(self.build(case, each) for each in inputs), False


def rivals(device: str) -> tuple[Rival, ...]:
    """Everything that torch offers on `cpu` or `cuda`."""
    import torch

    version = f"torch-{torch.__version__.split('+')[0]}"

    def made(items: Iterable[tuple[Any, ...]]) -> Iterable[Rival]:
        for name, accepts, *builds in items:
            yield Rival(f"{version}:{name}", device, accepts, *builds)

    attention: list[tuple[Any, ...]] = [*_cpu_attention()] if device == "cpu" else _gpu_attention()
    return (*made(attention), *made(_matmuls(device)), *made(_ROWWISE))


# ---- Attention -----------------------------------------------------------------------------------


def _is_attention(case: Case) -> bool:
    return case.op == "attention" and case.dtype != "fp8"


def _unfused_fits(case: Case) -> bool:
    passes = 1 if case.direction == "fwd" else 4
    return _is_attention(case) and passes * case.scores_bytes <= _MOST_UNFUSED


def _cpu_attention() -> list[tuple[str, Any, Any]]:
    forward = lambda case: _is_attention(case) and case.direction == "fwd"  # noqa: E731
    unfused = lambda case: _unfused_fits(case) and case.direction == "fwd"  # noqa: E731
    return [("standard", unfused, _standard), ("sdpa", forward, _sdpa)]


def _gpu_attention() -> list[tuple[Any, ...]]:
    same_heads = lambda case: _is_attention(case) and case.heads_q == case.heads_kv  # noqa: E731
    return [
        # torch's own build of FlashAttention-2, also on Hopper.
        ("flash2", _is_attention, _backend("FLASH_ATTENTION"), _direct("flash_attention")),
        (
            "mem_efficient",
            same_heads,
            _backend("EFFICIENT_ATTENTION"),
            _direct("efficient_attention"),
        ),
        ("cudnn", _is_attention, _backend("CUDNN_ATTENTION"), _direct("cudnn_attention")),
        ("math", _unfused_fits, _backend("MATH")),
    ]


def _standard(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    """Unfused attention: scores, softmax and values as three operators, with a group's heads as
    rows."""
    import torch

    b, g, d = case.size("batch"), case.size("heads_kv"), case.size("head_dim")
    group, rows, keys = case.size("heads_q") // g, case.size("seq_q"), case.size("seq_kv")
    q = inputs["Q"].reshape(b * g, group * rows, d)
    k, v = (inputs[name].reshape(b * g, keys, d) for name in "KV")
    hidden = None
    if case.causal and rows > 1:
        positions = torch.arange(rows, device=q.device)[:, None] + (keys - rows)
        hidden = (torch.arange(keys, device=q.device)[None, :] > positions).repeat(group, 1)

    def call() -> Tensors:
        scores = torch.matmul(q, k.transpose(1, 2)) * d**-0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        out = torch.matmul(torch.softmax(scores, -1), v)
        return {"O": out.reshape(b, g * group, rows, d)}

    return call


def _sdpa(case: Case, inputs: Tensors, context: Any = nullcontext) -> Callable[[], Tensors]:
    """torch's scaled_dot_product_attention, forward or its gradients alone."""
    import torch

    # torch aligns a causal mask to the first key. That is the same mask for equal lengths; one
    # query sees all keys.
    causal = bool(case.causal) and case.size("seq_q") > 1
    is_grouped = case.heads_q != case.heads_kv
    attention = torch.nn.functional.scaled_dot_product_attention
    backward = case.direction == "bwd"
    q, k, v = (inputs[name].requires_grad_(backward) for name in "QKV")

    def forward() -> Any:
        with context():
            return attention(q, k, v, is_causal=causal, enable_gqa=is_grouped)

    if not backward:
        return lambda: {"O": forward()}
    out = forward()

    def gradients() -> Tensors:
        grads = torch.autograd.grad(out, (q, k, v), inputs["dO"], retain_graph=True)
        return dict(zip(("dQ", "dK", "dV"), grads, strict=True))

    return gradients


def _backend(name: str) -> Any:
    def build(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def context() -> AbstractContextManager[Any]:
            kernel: AbstractContextManager[Any] = sdpa_kernel(getattr(SDPBackend, name))
            return kernel

        return _sdpa(case, inputs, context)

    return build


def _direct(backend: str) -> Build:
    """Gradients by the backend's backward operator."""

    def build(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
        arguments = {
            "query": inputs["Q"], "key": inputs["K"], "value": inputs["V"],
            "grad_out": inputs["dO"], "is_causal": bool(case.causal) and case.size("seq_q") > 1,
        }  # fmt: skip
        gradients = attention_gradients(backend, arguments)
        return lambda: dict(zip(("dQ", "dK", "dV"), gradients(), strict=True))

    return build


# ---- Matmul --------------------------------------------------------------------------------------


def _matmuls(device: str) -> list[tuple[str, Any, Any]]:
    dtypes = ("fp64", "fp32", "fp16", "bf16")
    entries: list[tuple[str, Any, Any]] = [
        ("matmul", lambda case: case.op == "gemm" and case.dtype in dtypes, _matmul)
    ]
    if device != "cpu":
        entries += [
            ("scaled_mm", lambda case: _is_single(case, "fp8"), _scaled_mm),
            ("int_mm", lambda case: _is_single(case, "w8a8_int8"), _int_mm),
        ]
    return entries


def _is_single(case: Case, dtype: str) -> bool:
    return case.op == "gemm" and case.dtype == dtype and (case.batch or 1) == 1


def _matmul(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    import torch

    if (case.batch or 1) > 1:
        return lambda: {"C": torch.matmul(inputs["A"], inputs["B"])}
    a, b = inputs["A"][0], inputs["B"][0]
    return lambda: {"C": torch.matmul(a, b)[None]}


def _column_major(matrix: Any) -> Any:
    return matrix.t().contiguous().t()


def _scaled_mm(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    """cuBLAS fp8 with one scale a tensor; it needs B in column-major order."""
    import torch

    a, b = inputs["A"][0], _column_major(inputs["B"][0])
    scale = torch.ones((), device=a.device)
    return lambda: {
        "C": torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)[None]
    }


def _int_mm(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    """cuBLAS int8 with 32-bit results (twice the bytes of a 16-bit one)."""
    import torch

    a, b = inputs["A"][0], _column_major(inputs["B"][0])
    return lambda: {"C": torch._int_mm(a, b)[None]}


# ---- Row-wise and element-wise -------------------------------------------------------------------


def _softmax(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    import torch

    return lambda: {"Y": torch.softmax(inputs["X"], -1)}


def _norm(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    import torch

    shape = (case.size("cols"),)
    backward = case.direction == "bwd"
    x, gamma = (inputs[name].requires_grad_(backward) for name in ("X", "gamma"))
    beta = inputs.get("beta", torch.zeros_like(gamma)).detach().requires_grad_(backward)
    centred = case.op == "layernorm"
    leaves = [x, gamma, *([beta] if centred else [])]

    def forward() -> Any:
        if centred:
            return torch.nn.functional.layer_norm(x, shape, gamma, beta, references.EPSILON)
        return torch.nn.functional.rms_norm(x, shape, gamma, references.EPSILON)

    if not backward:
        return lambda: {"Y": forward()}
    out = forward()

    def gradients() -> Tensors:
        grads = torch.autograd.grad(out, leaves, inputs["dY"], retain_graph=True)
        return dict(zip(("dX", "dgamma", "dbeta"), grads, strict=False))

    return gradients


def _norm_gradients(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    import torch

    x, dy, gamma = (inputs[name] for name in ("X", "dY", "gamma"))
    centred = case.op == "layernorm"
    beta = torch.zeros_like(gamma) if centred else None
    gradients = norm_gradients(centred, x, dy, gamma, beta, references.EPSILON)
    return lambda: dict(zip(("dX", "dgamma", "dbeta"), gradients(), strict=False))


def _pointwise(case: Case, inputs: Tensors) -> Callable[[], Tensors]:
    """Results go to one buffer, as the bundled kernels' do, so that allocation is not timed."""
    import torch

    x, last = inputs["X"][0], inputs["X"][-1]
    y = torch.empty_like(x)
    forms: dict[str, Callable[[], Any]] = {
        "copy": lambda: y.copy_(x),
        "scale": lambda: torch.mul(x, FACTOR, out=y),
        "add": lambda: torch.add(x, last, out=y),
        "triad": lambda: torch.add(x, last, alpha=FACTOR, out=y),
        "gelu": lambda: torch.nn.functional.gelu(x),
    }
    form = forms[case.variant]
    return lambda: {"Y": form()}


_POINTWISE = ("copy", "scale", "add", "triad", "gelu")
_ROWWISE: list[tuple[Any, ...]] = [
    ("softmax", lambda case: case.op == "softmax" and case.direction == "fwd", _softmax),
    ("norm", lambda case: case.op in ("layernorm", "rmsnorm"), _norm, _norm_gradients),
    (
        "pointwise",
        lambda case: case.op == "pointwise" and case.variant in _POINTWISE,
        _pointwise,
    ),
]
