"""Peak memory of a policy on device, host and disk.

Source: FlexGen, 2303.06865, appendix A.2; its cost_model.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.policy import Policy

_DEVICE, _HOST, _DISK = range(3)
_SCORE_BYTES = 2.0


@dataclass(frozen=True)
class Held:
    """Peak bytes of a policy: the larger of prefill and decoding."""

    device: Number
    """On the device."""
    host: Number
    """In host memory."""
    disk: Number
    """On disk."""


def held(shape: LayerShape, request: Request, policy: Policy) -> Held:
    """Data in its place, and buffers of data in transit while a layer runs."""
    prompt = request.prompt
    return Held(
        np.maximum(
            _home(shape, request, policy, _DEVICE, prompt) + _prefill(shape, request, policy),
            _home(shape, request, policy, _DEVICE, 1) + _decode(shape, request, policy),
        ),
        np.maximum(
            _home(shape, request, policy, _HOST, prompt) + _host_prefill(shape, policy, prompt),
            _home(shape, request, policy, _HOST, 1) + _host_decode(shape, request, policy),
        ),
        _home(shape, request, policy, _DISK, prompt),
    )


def _home(shape: LayerShape, request: Request, policy: Policy, place: int, tokens: int) -> Number:
    """Weights and cache of all layers, and activations of `tokens` tokens of each sequence."""
    cache = shape.cache_bytes * request.tokens * policy.batch * policy.cache[place]
    activations = shape.activation_bytes * tokens * policy.batch * policy.activations[place]
    return shape.layers * (shape.weight_bytes * policy.weights[place] + cache) + activations


def _prefill(shape: LayerShape, request: Request, policy: Policy) -> Number:
    """Buffers on the device in prefill: weights of two layers, activations of a part, and
    temporaries.

    The temporaries of a layer are nine tensors of the activations' size, the inner one, and the
    scores of all heads.
    """
    s, part = request.prompt, policy.part
    tensors = part * (
        9.0 * shape.activation_bytes * s
        + _SCORE_BYTES * s * shape.inner
        + _SCORE_BYTES * shape.heads * s**2
    )
    return _transit(shape, policy, s) + tensors


def _decode(shape: LayerShape, request: Request, policy: Policy) -> Number:
    """The same in decoding, with two copies of a part's cache if it is on the device."""
    total, part, on_device = request.tokens, policy.part, policy.cache[_DEVICE]
    tensors = part * (7.0 * shape.activation_bytes + _SCORE_BYTES * shape.inner)
    attention = part * (
        2.0 * shape.cache_bytes * total
        + 2.0 * shape.activation_bytes
        + _SCORE_BYTES * shape.heads * total
    )
    return _transit(shape, policy, 1) + tensors + attention * on_device


def _transit(shape: LayerShape, policy: Policy, tokens: int) -> Number:
    """Weights of two layers and activations of a part that are not stored on the device."""
    weights = 2.0 * shape.weight_bytes * (1.0 - policy.weights[_DEVICE])
    activations = shape.activation_bytes * tokens * policy.part
    return weights + activations * (1.0 - policy.activations[_DEVICE])


def _host_prefill(shape: LayerShape, policy: Policy, tokens: int) -> Number:
    """Buffers in host memory in prefill: a layer's weights and a part's activations in transit."""
    activations = shape.activation_bytes * tokens * policy.part
    return shape.weight_bytes * (1.0 - policy.weights[_DEVICE]) + activations * (
        1.0 - policy.activations[_DEVICE]
    )


def _host_decode(shape: LayerShape, request: Request, policy: Policy) -> Number:
    """Buffers in host memory in decoding: data from disk, and scores of a part whose attention runs
    on the host."""
    part, total = policy.part, request.tokens
    from_disk = shape.weight_bytes * policy.weights[_DISK]
    from_disk = from_disk + 2.0 * part * (
        shape.cache_bytes * total * policy.cache[_DISK]
        + shape.activation_bytes * policy.activations[_DISK]
    )
    return from_disk + part * (_SCORE_BYTES * shape.heads * total + shape.activation_bytes)
