"""Gradients by torch's own backward operators, called as autograd calls them.

`torch.autograd.grad` runs on the stream of the forward pass, which is not the stream that a CUDA
graph captures. Timing by events would also include its host time. The fused kernels behind it are
operators that can be called directly. Their arguments are matched by name: the forward operator's
arguments and results, the incoming gradient, and the few names that differ between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# A result of a forward operator → what its backward operator calls it.
_BACKWARD_NAMES = {
    "output": "out",
    "logsumexp": "log_sumexp",
    "log_sumexp": "logsumexp",
    "rng_state": "philox_seed",
    "unused": "philox_offset",
}
Gradients = Callable[[], Sequence[Any]]


def attention_gradients(backend: str, given: Mapping[str, Any]) -> Gradients:
    """A call that returns dQ, dK and dV by a backend's backward operator.

    `backend` is part of an operator's name (`flash_attention`, `cudnn_attention`,
    `efficient_attention`, `flash_attention_for_cpu`); `given` holds query, key, value, grad_out and
    is_causal. The forward pass runs once, during this call. Raises torch's error if it has no such
    operator or the operator refuses the problem.
    """
    forward = _operator(f"_scaled_dot_product_{backend}")
    backward = _operator(f"_scaled_dot_product_{backend}_backward")
    settings = {
        **given, "compute_log_sumexp": True, "attn_bias": None, "dropout_p": 0.0,
        "grad_out_": given["grad_out"], "grad_input_mask": [True, True, True, False],
    }  # fmt: skip
    names = [item.name for item in forward._schema.returns]
    results = dict(zip(names, forward(**_arguments(forward, settings)), strict=True))
    outputs = {_BACKWARD_NAMES[name]: results[name] for name in results.keys() & _BACKWARD_NAMES}
    values = {**outputs, **results, **settings}
    arguments = _arguments(backward, values)
    return lambda: backward(**arguments)[:3]


def norm_gradients(
    centred: bool, x: Any, dy: Any, gamma: Any, beta: Any, epsilon: float
) -> Gradients:
    """A call that returns dX, dgamma and, where `centred`, dbeta; the forward pass runs once, here.

    Raises torch's error if it has no such operator.
    """
    shape = [x.shape[-1]]
    if centred:
        forward, backward = _operator("native_layer_norm"), _operator("native_layer_norm_backward")
        _, mean, rstd = forward(x, shape, gamma, beta, epsilon)
        return lambda: backward(dy, x, shape, mean, rstd, gamma, beta, [True, True, True])
    forward, backward = _operator("_fused_rms_norm"), _operator("_fused_rms_norm_backward")
    _, rstd = forward(x, shape, gamma, epsilon)
    return lambda: backward(dy, x, shape, rstd, gamma, [True, True])


def _operator(name: str) -> Any:
    import torch

    return getattr(torch.ops.aten, name).default


def _arguments(operator: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The operator's arguments; raises `TypeError` where one without a default is not known."""
    arguments = {}
    for argument in operator._schema.arguments:
        if argument.name in values:
            arguments[argument.name] = values[argument.name]
        elif not argument.has_default_value():
            raise TypeError(f"{operator} wants {argument.name}, which its forward does not give")
    return arguments
