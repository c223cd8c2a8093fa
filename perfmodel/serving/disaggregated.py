"""Disaggregated serving: prefill and decode on separate devices, and the transfer of the cache.

A copy that only prefills serves 1 / t_prompt(ISL) requests a second. A copy that only decodes
serves n / (OSL · step(n)). Pools are balanced where both rates are equal:

    prefill copies / decode copies = rate_decode / rate_prefill

Each request's cache moves once, KV(ISL) bytes over the network, layer by layer during the prefill.
The first token of the decode pool waits for the last layer's share. A link slower than the prefill
bounds the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.serving.cachememory import fitting_batch, token_bytes
from perfmodel.serving.requests import decoding
from perfmodel.serving.steps import Steps


@dataclass(frozen=True)
class Pools:
    """A balanced pair of pools."""

    prefill_share: float
    """Prefill copies, as a share of all."""
    ttft_seconds: float
    """Seconds of a prefill by itself."""
    tpot_seconds: float
    """Seconds between tokens, of a full copy that only decodes."""
    resident: int
    """Requests of a decode copy."""
    transfer_seconds: float
    """Seconds of the cache's transfer from one pool to the other."""
    requests_per_s: float
    """Requests a second of a copy, over both pools."""
    output_tokens_per_s_per_device: float
    """Output tokens a second of a device, over both pools."""


def pools(prefill: Steps, decode: Steps, isl: int, osl: int) -> Pools:
    """Balanced pools. Each takes steps of its own deployment, so devices and shards may differ.

    Raises `ProblemError` where not one request fits.
    """
    prompt = float(prefill.prefill(np.array([1]), np.array([isl])).total[0])
    resident = max(fitting_batch(decode.of, isl + osl // 2), 1)
    group = resident / decode.of.pipeline  # stages work at the same time
    sizes = (np.array([group]), np.array([float(isl)]), np.array([float(osl)]))
    step = float(decoding(decode, *sizes).total[0])
    transfer = predict_collective(
        Collective("send-receive", round(token_bytes(decode.of) * isl), 2, 1), decode.of.fabric
    )
    transfer_s = float(transfer.seconds[0])
    prefill_rate = 1.0 / max(prompt / prefill.of.pipeline, transfer_s)
    decode_rate = resident / (osl * step)
    share = decode_rate / (prefill_rate + decode_rate)
    rate = share * prefill_rate
    devices = share * prefill.of.devices + (1.0 - share) * decode.of.devices
    return Pools(share, prompt, step, resident, transfer_s, rate, rate * osl / devices)
