"""From steps to requests: latency and rates of a load.

    static batch     TTFT = prefill(B · ISL), TPOT = Σ decode(B, ISL + j) / (OSL − 1)
    full load        n resident requests, of which n / OSL are replaced in each step
    closed loop      c clients, each with its next request when the last one ends
    open loop        λ requests a second; n = λ · (TTFT + OSL · step(n)) resident (Little)

TTFT: seconds to the first token; TPOT: seconds between tokens; ISL and OSL: input and output tokens
of a request. The time of a decode step is nearly linear in the cached tokens, so Simpson's rule
over three steps gives the sum over all steps of a request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.serving.memory import check_weights, fitting_batch, more
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import Times

_HALVINGS = 30
_SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
ROUNDS = 10
"""Requests of a client: the usual number in benchmarks of a given concurrency."""
PAIR = 2
"""Prompts that join a step together, for clients out of phase with equal requests."""
KNEE = 0.95
"""Share of the largest rate above which waiting times diverge."""


@dataclass(frozen=True)
class Load:
    """Requests as arrays with one entry a load."""

    isl: np.ndarray
    """Tokens of a prompt (ISL)."""
    osl: np.ndarray
    """Output tokens (OSL)."""
    resident: np.ndarray
    """Concurrent requests of each copy."""
    ttft: np.ndarray
    """Seconds to the first token."""
    tpot: np.ndarray
    """Seconds between tokens."""
    requests_per_s: np.ndarray
    """Completed requests a second of each copy."""
    prompt: Times
    """The step that the first token waits for."""
    token: Times
    """The step that each further token waits for."""
    seconds: np.ndarray
    """Seconds of a request from its start to its last token; for a static batch, of the batch."""


def decoding(steps: Steps, batch: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Times:
    """The mean decode step of `batch` sequences, from their second token to their last."""
    last = np.maximum(isl + osl - 2, isl)
    past = np.stack([isl, (isl + last) / 2.0, last], axis=1).reshape(-1)
    return steps.decode(np.repeat(batch, 3), past).mean(_SIMPSON)


def static(steps: Steps, batch: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Load:
    """Batches that start and end together.

    If a batch does not fit, an engine with continuous batching runs what fits, then the rest. Any
    other engine refuses it with `ProblemError`.
    """
    batch, isl, osl = _together(batch, isl, osl)
    resident = _resident(steps, batch, isl, osl)
    waves = np.floor(batch / resident)
    rest = batch - waves * resident
    load = _wave(steps, resident, isl, osl)
    seconds = waves * load.seconds
    if np.any(rest > 0):
        seconds = seconds + np.where(
            rest > 0, _wave(steps, np.maximum(rest, 1.0), isl, osl).seconds, 0.0
        )
    return replace(load, requests_per_s=batch / seconds, seconds=seconds)


def _wave(steps: Steps, batch: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Load:
    """Sequences that are resident together from start to end."""
    prompt = steps.prefill(batch, isl)
    token = decoding(steps, batch, isl, osl)
    ttft = prompt.total + steps.of.engine.request_seconds
    seconds = ttft + (osl - 1) * token.total
    return Load(isl, osl, batch, ttft, token.total, batch / seconds, prompt, token, seconds)


def _resident(steps: Steps, batch: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> np.ndarray:
    """Sequences of each batch that fit at once."""
    check_weights(steps.of)
    lengths = (isl + osl).astype(int).tolist()
    fits = np.array([fitting_batch(steps.of, length) for length in lengths], dtype=float)
    for size, length, most in zip(batch, lengths, fits, strict=True):
        if size > most and (most == 0 or not steps.of.engine.batching.continuous):
            none = most == 0
            subject = "not one sequence" if none else f"{size:.0f} sequences"
            raise ProblemError(
                f"{subject} of {length:,} tokens {'fits' if none else 'do not fit'} "
                f"{steps.of.device.slug} "
                f"beside {steps.of.network.name}; "
                + ("give fewer tokens" if none else f"{most:.0f} do: give a smaller batch")
                + ", or more devices by --tensor"
            )
    return np.asarray(np.minimum(batch, fits))


def steady(steps: Steps, resident: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Load:
    """Steady state with requests of all ages: each step ends resident / OSL and starts as many."""
    resident, isl, osl = _together(resident, isl, osl)
    prompt, step = _cycle(steps, resident, isl, osl, np.ones_like(osl))
    ttft = prompt.total + step.total / 2.0 + steps.of.engine.request_seconds
    rate = resident / osl / step.total
    seconds = ttft + (osl - 1) * step.total
    return Load(isl, osl, resident, ttft, step.total, rate, prompt, step, seconds)


def closed(steps: Steps, clients: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Load:
    """`clients` clients with `ROUNDS` equal requests each; all of them start at once.

    An engine that runs prefill first keeps its clients in phase: each round starts with all of
    their prompts, and the mean first token waits for half of those steps. An engine that mixes
    prefill and decode spreads the prompts out after the first round, down to `PAIR` a step. Clients
    that do not fit wait by Little's law.
    """
    steps = steps.streaming()
    clients, isl, osl = _together(clients, isl, osl)
    most = _most_of(steps, isl, osl)
    held = np.where(clients > steps.of.engine.batching.held, steps.of.engine.batching.held, 0)
    resident = np.minimum(clients - held, most)
    all_ = steps.prefill(resident, isl)
    rounds = np.ceil(resident * isl / np.maximum(steps.of.engine.batching.tokens, isl))
    half = all_.times((rounds + 1.0) / (2.0 * rounds))
    if steps.of.engine.batching.mixed:
        pair, token = _cycle(steps, resident, isl, osl, np.minimum(resident, PAIR))
        first = half.times(1.0 / ROUNDS).plus(pair.times(1.0 - 1.0 / ROUNDS))
        waits = token.total / 2.0
    else:
        rest = all_.times((rounds - 1.0) / (2.0 * rounds) / np.maximum(osl - 1, 1))
        first, token = half, decoding(steps, resident, isl, osl).plus(rest)
        waits = np.zeros_like(isl)
    round_ = first.total + (osl - 1) * token.total
    waits = waits + (clients - resident) / resident * round_
    ttft = first.total + steps.of.engine.request_seconds + waits
    seconds = ttft + (osl - 1) * token.total
    return Load(isl, osl, resident, ttft, token.total, resident / round_, first, token, seconds)


def _cycle(
    steps: Steps, resident: np.ndarray, isl: np.ndarray, osl: np.ndarray, together: np.ndarray
) -> tuple[Times, Times]:
    """The step of prompts that join together, and the mean time between tokens.

    Of OSL steps, resident / (OSL · prompts) hold prompts. A step holds whole prompts as far as its
    tokens allow, together with decoding or alone.
    """
    batching = steps.of.engine.batching
    past = isl + osl / 2.0
    prompts = np.maximum(together, resident / osl)
    share = resident / osl / prompts
    if not batching.mixed:
        prompt = steps.prefill(prompts, isl)
        return prompt, steps.decode(resident, past).plus(prompt.times(share))
    room = np.maximum(batching.tokens - resident, batching.tokens / 8.0)
    held = np.ceil(prompts * isl / room) if batching.chunked else np.ones_like(isl)
    prompt = steps.mixed(resident, past, prompts / held, isl, 0.0 * isl).times(held)
    alone = np.maximum(1.0 - share * held, 0.0)
    return prompt, prompt.times(share).plus(steps.decode(resident, past).times(alone))


def full(steps: Steps, isl: np.ndarray, osl: np.ndarray) -> Load:
    """As many concurrent requests as fit."""
    _, isl, osl = _together(1, isl, osl)
    return steady(steps, _most_of(steps, isl, osl), isl, osl)


def open_loop(steps: Steps, rate: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Load:
    """`rate` requests a second for each copy, in an open loop.

    Raises `ProblemError` for a rate above the knee, `KNEE` of the largest rate, where waiting times
    depend on chance. The message names the limit.
    """
    steps = steps.streaming()
    rate, isl, osl = _together(rate, isl, osl)
    most = _most_of(steps, isl, osl)
    top = steady(steps, most, isl, osl).requests_per_s
    for wanted, best in zip(rate * steps.of.data, top * steps.of.data, strict=True):
        _check_rate(steps, float(wanted), float(best))
    low, high = np.zeros_like(rate), most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        load = steady(steps, middle, isl, osl)
        short = rate * load.seconds > middle
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return steady(steps, high, isl, osl)


def _check_rate(steps: Steps, rate: float, top: float) -> None:
    """Raise `ProblemError` for a rate, over all copies, at which waits diverge or depend on
    chance."""
    if rate > top:
        raise ProblemError(
            f"{rate:.4g} requests a second are more than the {top:.4g} that {steps.of.devices} x "
            f"{steps.of.device.slug} serves; give a lower rate, or more devices"
        )
    if rate > KNEE * top:
        raise ProblemError(
            f"{rate:.4g} requests a second are beyond the knee, {KNEE * top:.4g} of at most "
            f"{top:.4g}: waits there depend on chance; give a rate below the knee"
        )


def _most(steps: Steps, isl: int, osl: int) -> int:
    """Maximum concurrent requests, with half of their output on average."""
    found = fitting_batch(steps.of, isl + osl // 2)
    if not found:
        raise ProblemError(
            f"not one request of {isl:,} + {osl:,} tokens fits {steps.of.device.slug} beside "
            f"{steps.of.network.name} in {steps.of.weights}; "
            f"give {more(steps.of, isl + osl // 2)}a smaller format"
        )
    return found


def _most_of(steps: Steps, isl: np.ndarray, osl: np.ndarray) -> np.ndarray:
    pairs = zip(isl.astype(int).tolist(), osl.astype(int).tolist(), strict=True)
    return np.array([_most(steps, *pair) for pair in pairs], dtype=float)


def _together(*values: object) -> tuple[np.ndarray, ...]:
    return tuple(np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in values)))
