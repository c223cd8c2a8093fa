"""Peak memory of a policy on device, host and disk.

Source: FlexGen, 2303.06865, appendix A.2; its cost_model.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfmodel.arithmetic import Number
from perfmodel.graph.live import Span
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.policy import Policy

LEVELS = ("hbm", "host", "disk")
"""Levels of memory, in the order of a policy's shares."""
MOMENTS = ("prefill", "decode")
"""Phases in which they hold data."""
_PREFILL, _DECODE = range(2)
_SCORE_BYTES = 2.0


def spans(shape: LayerShape, request: Request, policy: Policy) -> tuple[Span, ...]:
    """Data in its place, and buffers of data in transit while a layer runs."""
    return (*_homes(shape, request, policy), *_buffers(shape, request, policy))


def _homes(shape: LayerShape, request: Request, policy: Policy) -> Iterator[Span]:
    """Weights and cache of all layers, and the activations of each sequence's tokens."""
    for i, place in enumerate(LEVELS):
        cache = shape.cache_bytes * request.tokens * policy.batch * policy.cache[i]
        layers = shape.layers * (shape.weight_bytes * policy.weights[i] + cache)
        yield Span("layers", layers, _PREFILL, _DECODE, place)
        for phase, tokens in ((_PREFILL, request.prompt), (_DECODE, 1)):
            activations = shape.activation_bytes * tokens * policy.batch * policy.activations[i]
            yield Span("activations", activations, phase, phase, place)


def _buffers(shape: LayerShape, request: Request, policy: Policy) -> Iterator[Span]:
    """Buffers while a layer runs.

    On the device: the weights of two layers and a part's activations in transit, and temporaries:
    in prefill nine tensors of the activations' size, the inner one, and the scores of all heads; in
    decoding seven, and two copies of a part's cache if it is on the device. On the host: a layer's
    weights and a part's activations in transit; in decoding data from disk, and the scores of a
    part whose attention runs there.
    """
    s, total, part = request.prompt, request.tokens, policy.part
    away, gone = 1.0 - policy.weights[0], 1.0 - policy.activations[0]

    def transit(layers: float, tokens: int) -> Number:
        return layers * shape.weight_bytes * away + shape.activation_bytes * tokens * part * gone

    tensors = part * (
        9.0 * shape.activation_bytes * s
        + _SCORE_BYTES * s * shape.inner
        + _SCORE_BYTES * shape.heads * s**2
    )
    yield Span("buffers", transit(2.0, s) + tensors, _PREFILL, _PREFILL, "hbm")
    tensors = part * (7.0 * shape.activation_bytes + _SCORE_BYTES * shape.inner)
    attention = part * (
        2.0 * shape.cache_bytes * total
        + 2.0 * shape.activation_bytes
        + _SCORE_BYTES * shape.heads * total
    )
    on_device = transit(2.0, 1) + tensors + attention * policy.cache[0]
    yield Span("buffers", on_device, _DECODE, _DECODE, "hbm")
    yield Span("buffers", transit(1.0, s), _PREFILL, _PREFILL, "host")
    from_disk = shape.weight_bytes * policy.weights[2] + 2.0 * part * (
        shape.cache_bytes * total * policy.cache[2] + shape.activation_bytes * policy.activations[2]
    )
    scores = part * (_SCORE_BYTES * shape.heads * total + shape.activation_bytes)
    yield Span("buffers", from_disk + scores, _DECODE, _DECODE, "host")
