"""Disaggregated serving: prefill and decode on separate devices, and the transfer of the cache.

A copy that only prefills serves 1 / t_prompt(ISL) requests a second. A copy that only decodes
serves n / (OSL · step(n)). Pools are balanced where both rates are equal:

    prefill copies / decode copies = rate_decode / rate_prefill

Each request's cache moves once, KV(ISL) bytes over the network, layer by layer during the prefill.
The first token of the decode pool waits for the last layer's share. A link slower than the prefill
bounds the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.serving.cachememory import fitting_batch, token_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.requests import decoding
from perfmodel.serving.steps import Steps

_SIZES = 48
"""Numbers of resident requests that a split is asked for."""


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
    step = float(_token_seconds(decode, np.array([float(resident)]), isl, osl)[0])
    transfer_s = _transfer_seconds(decode, isl)
    prefill_rate = 1.0 / max(prompt / prefill.of.pipeline, transfer_s)
    decode_rate = resident / (osl * step)
    share = decode_rate / (prefill_rate + decode_rate)
    rate = share * prefill_rate
    devices = share * prefill.of.devices + (1.0 - share) * decode.of.devices
    return Pools(share, prompt, step, resident, transfer_s, rate, rate * osl / devices)


@dataclass(frozen=True)
class Split:
    """Pools of whole copies that meet targets."""

    prefill: Deployment
    """A copy for prompts."""
    prefill_copies: int
    """Their number."""
    decode: Deployment
    """A copy for tokens."""
    decode_copies: int
    """Their number."""
    resident: int
    """Requests of a decode copy."""
    ttft_seconds: float
    """Mean seconds to the first token: queue, prompt, and the last layer's share of the cache."""
    tpot_seconds: float
    """Seconds between tokens."""
    requests_per_s: float
    """Requests a second of all copies."""

    @property
    def devices(self) -> int:
        """Devices of both pools."""
        return self.prefill.devices * self.prefill_copies + self.decode.devices * self.decode_copies

    def rank(self, rate: float) -> tuple[float, float]:
        """Least is best: the devices where a rate is asked for, else the requests a second."""
        return (self.devices if rate else 0.0, -self.requests_per_s)


@dataclass(frozen=True)
class Side:
    """A copy as either pool: for prompts, and for tokens."""

    steps: Steps
    """Its steps."""
    isl: int
    """Tokens of a prompt."""
    osl: int
    """Tokens of an answer."""

    @property
    def of(self) -> Deployment:
        """The copy."""
        return self.steps.of

    @cached_property
    def prompt_seconds(self) -> float:
        """Seconds of a prompt by itself."""
        return float(self.steps.prefill(np.array([1]), np.array([self.isl])).total[0])

    @cached_property
    def transfer_seconds(self) -> float:
        """Seconds of the transfer of a prompt's cache to it."""
        return _transfer_seconds(self.steps, self.isl)

    @cached_property
    def resident(self) -> np.ndarray:
        """Numbers of requests up to as many as fit; empty where none does."""
        most = fitting_batch(self.of, self.isl + self.osl // 2)
        return np.unique(np.geomspace(1, max(most, 1), _SIZES).round()) if most else np.empty(0)

    @cached_property
    def token_seconds(self) -> np.ndarray:
        """Seconds between tokens at each number of resident requests."""
        return _token_seconds(self.steps, self.resident, self.isl, self.osl)


def split(
    prefill: Side, decode: Side, limits: tuple[float, float], gpus: int, rate: float = 0.0
) -> Split | None:
    """The pools on at most `gpus` devices with most requests a second, within limits: seconds to
    the first token and between tokens. None where there are none.

    Prompts queue for each copy as for one server (M/D/1), which bounds its load. Where `rate`
    requests a second must be served, the fewest devices are best.
    """
    prompt, transfer = prefill.prompt_seconds, decode.transfer_seconds
    fixed = prompt + transfer / decode.of.network.layers + prefill.of.engine.request_seconds
    wait = min(limits[0] - fixed, 9.0 * prompt / 2.0)  # a load of 0.9
    sizes = decode.resident
    if wait < 0.0 or not len(sizes):
        return None
    seconds = decode.token_seconds
    within = np.flatnonzero(seconds <= limits[1])
    if not len(within):
        return None
    last = within[np.argmax(sizes[within] / seconds[within])]
    service = max(prompt / prefill.of.pipeline, transfer)
    prompts = 2.0 * wait / (prompt + 2.0 * wait) / service * prefill.of.data
    answers = sizes[last] / (decode.osl * seconds[last]) * decode.of.data
    best: Split | None = None
    for x in range(1, gpus // prefill.of.devices + 1):
        y = min(
            (gpus - x * prefill.of.devices) // decode.of.devices, math.ceil(x * prompts / answers)
        )
        served = min(x * prompts, y * answers)
        if y < 1 or served < rate:
            continue
        pair = Split(
            prefill.of, x, decode.of, y, int(sizes[last]), fixed + wait, float(seconds[last]),
            served,
        )  # fmt: skip
        if best is None or pair.rank(rate) < best.rank(rate):
            best = pair
    return best


def _token_seconds(decode: Steps, resident: np.ndarray, isl: int, osl: int) -> np.ndarray:
    """Seconds between tokens of copies that only decode."""
    groups = resident / decode.of.pipeline  # stages work at the same time
    lengths = (np.full(len(resident), float(length)) for length in (isl, osl))
    return decoding(decode, groups, *lengths).total


def _transfer_seconds(decode: Steps, isl: int) -> float:
    """Seconds of the transfer of a prompt's cache."""
    size = round(token_bytes(decode.of) * isl)
    return float(
        predict_collective(Collective("send-receive", size, 2, 1), decode.of.fabric).seconds[0]
    )
