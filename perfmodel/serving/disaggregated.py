"""Prompts and tokens on separate devices: how many of each, and what the cache's way costs.

A copy that only runs prompts serves 1 / t_prompt(ISL) requests a second, one that only decodes
n / (OSL · step(n)). Pools are balanced where both rates are equal:

    prefill copies / decode copies = rate_decode / rate_prefill

Each request's cache moves once, KV(ISL) bytes over the network, layer by layer beside the prompt:
the first token of the second pool waits for the last layer's share, and a link that is slower than
the prompts bounds the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.serving.memory import fitting_batch, token_bytes
from perfmodel.serving.requests import decoding
from perfmodel.serving.steps import Steps


@dataclass(frozen=True)
class Pools:
    """A balanced pair of pools."""

    prefill_share: float
    """Copies for prompts, of all."""
    ttft_seconds: float
    """A prompt by itself."""
    tpot_seconds: float
    """Between tokens, of a full copy that only decodes."""
    resident: int
    """Requests of such a copy."""
    transfer_seconds: float
    """The cache's way from one pool to the other."""
    requests_per_s: float
    """Of a copy, both pools together."""
    output_tokens_per_s_per_device: float
    """The same in tokens."""


def pools(prefill: Steps, decode: Steps, isl: int, osl: int) -> Pools:
    """Pools in balance, of steps of a deployment each; they may have different devices or shards.

    Raises `ProblemError` where not one request fits.
    """
    prompt = float(prefill.prefill(np.array([1]), np.array([isl])).total[0])
    resident = max(fitting_batch(decode.of, isl + osl // 2), 1)
    one = (np.array([float(resident)]), np.array([float(isl)]), np.array([float(osl)]))
    step = float(decoding(decode, *one).total[0])
    sent = predict_collective(
        Collective("send-receive", round(token_bytes(decode.of) * isl), 2, 1), decode.of.fabric
    )
    moved = float(sent.seconds[0])
    made = 1.0 / max(prompt, moved)
    used = resident / (osl * step)
    share = used / (made + used)
    rate = share * made
    devices = share * prefill.of.devices + (1.0 - share) * decode.of.devices
    return Pools(share, prompt, step, resident, moved, rate, rate * osl / devices)
