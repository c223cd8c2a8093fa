"""Disaggregated serving: prefill and decode on separate devices, and the transfer of the cache.

Copies that only run prompts are servers that the requests of a closed loop come back to
(`clients.queued`), after their answer of OSL − 1 steps of a copy that only decodes:

    X = n / (S + wait + Z),    Z = host + way + (OSL − 1) · step(X · (OSL − 1) · step)

S is a prompt by itself. Each request's cache moves once, KV(ISL) bytes over the network, layer by
layer during the prefill; the first token waits for the last layer's share (the way) and for the
running step of its new copy. A link slower than the prefill bounds the rate. Where the clients that
prompts leave to decoding do not fit, they wait too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.serving.cachememory import fitting_batch, token_bytes
from perfmodel.serving.clients import queued
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.requests import Load, Requests, decoding, resident_limit
from perfmodel.serving.steps import Steps

_SIZES = 48
"""Numbers of resident requests that a split is asked for."""
_HALVINGS = 20


def closed(steps: Steps, clients: np.ndarray, of: Requests) -> Load:
    """Clients in a closed loop, of a copy that decodes and its share of those for prompts."""
    setup, engine = steps.of, steps.of.engine
    clients, req = of.beside(clients)
    prompts = Steps(setup.for_prompts)
    prompt = prompts.prefill(np.ones_like(clients), req.new, req.cached)
    way = _transfer_seconds(setup, req.isl)
    service = np.maximum(prompt.total / prompts.of.pipeline, way)
    each = clients * req.groups * setup.copies / (setup.counts[0] * prompts.of.data)
    fits = np.minimum(clients, resident_limit(steps, req))
    low, high = np.zeros_like(clients), fits
    for _ in range(_HALVINGS):  # as many decode as the rate of prompts keeps there
        resident = (low + high) / 2.0
        token = decoding(steps, resident, req.isl, req.osl)
        answer = (req.osl - 1) * token.total
        start = way / setup.network.layers + engine.request_seconds
        start = start + (0.5 + engine.batching.ahead) * token.total
        wait = queued(np.maximum(each, 1.0), service, answer + start)
        more = clients * answer / (prompt.total + wait + start + answer) > resident
        low, high = np.where(more, resident, low), np.where(more, high, resident)
    before = clients / np.maximum(resident, 1e-9) * answer - answer
    ttft = np.maximum(prompt.total + wait + start, before)
    seconds = ttft + answer
    first = prompt.times(ttft / prompt.total)
    return Load(
        req, clients, ttft, token.total, clients / seconds, first, token, seconds
    )  # fmt: skip


def shared_out(
    group: Sequence[Steps], isl: int, osl: int, limits: tuple[float, float], gpus: int,
    rate: float = 0.0,
) -> Deployment | None:  # fmt: skip
    """The pools of whole copies on at most `gpus` devices with most requests a second, within
    limits: seconds to the first token and between tokens; where `rate` must be served, the fewest
    devices. None where there are none. They are chosen by rates alone: prompts queue for each copy
    as for one server (M/D/1), which bounds its load.
    """
    best: tuple[tuple[float, float], Deployment] | None = None
    sides = [(steps.of, *_alone(steps, isl, osl, limits[1])) for steps in group]
    for prefill, prompt, _, _ in sides:
        for decode, _, answers, way in sides:
            start = way / decode.network.layers + prefill.engine.request_seconds
            wait = min(limits[0] - prompt - start, 9.0 * prompt / 2.0)  # a load of 0.9
            if wait < 0.0 or not answers:
                continue
            prompts = prefill.data / max(prompt / prefill.pipeline, way)
            prompts *= 2.0 * wait / (prompt + 2.0 * wait)
            for x in range(1, gpus // prefill.devices + 1):
                rest = (gpus - x * prefill.devices) // decode.devices
                y = min(rest, math.ceil(x * prompts / answers))
                served = min(x * prompts, y * answers)
                if y < 1 or served < rate:
                    continue
                pooled = replace(decode, pools=f"{x}:{y}", prefill=prefill)
                rank = (pooled.devices if rate else 0.0, -served)
                if best is None or rank < best[0]:
                    best = rank, pooled
    return best and best[1]


def _alone(steps: Steps, isl: int, osl: int, limit: float) -> tuple[float, float, float]:
    """Of a copy for prompts alone, their seconds; of one for tokens, most answers a second within
    a limit on the seconds between tokens, and seconds of a cache's way to it."""
    copy = steps.of
    isl += copy.image_tokens
    prompt = float(steps.prefill(np.array([1]), np.array([isl])).total[0])
    most = fitting_batch(copy, isl + osl // 2)
    sizes = np.unique(np.geomspace(1, max(most, 1), _SIZES).round())
    lengths = (np.full(len(sizes), float(length)) for length in (isl, osl))
    seconds = decoding(steps, sizes / copy.pipeline, *lengths).total
    rates = np.where((seconds <= limit) & (most > 0), sizes / (osl * seconds), 0.0)
    way = float(_transfer_seconds(copy, np.array([isl]))[0])
    return prompt, float(rates.max()) * copy.data, way


def _transfer_seconds(decode: Deployment, isl: np.ndarray) -> np.ndarray:
    """Seconds of the transfer of the caches of prompts."""
    sizes = np.ceil(token_bytes(decode) * isl).astype(np.int64)
    problem = Collective("send-receive", sizes, 2, 1)
    return np.asarray(predict_collective(problem, decode.fabric).seconds)
