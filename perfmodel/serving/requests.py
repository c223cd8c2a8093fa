"""From steps to requests: latency and rates of a load.

    static batch     TTFT = prefill(B · ISL), TPOT = Σ decode(B, ISL + j) / (OSL − 1)
    full load        n resident requests, of which n / OSL are replaced in each step
    closed loop      c clients, each with its next request when the last one ends
    open loop        λ requests a second; n = λ · (TTFT + OSL · step(n)) resident (Little)

TTFT: seconds to the first token; TPOT: seconds between tokens; ISL and OSL: input and output tokens
of a request. The time of a decode step is nearly linear in the cached tokens, so Simpson's rule
over three steps gives the sum over all steps of a request.

Pipeline stages work at the same time, each on a group of the sequences. Every function takes the
sequences of one group; the groups of a copy share its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.serving.clients import STATISTICS, Round, window
from perfmodel.serving.memory import check_weights, fitting_batch, more
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import Times

_HALVINGS = 30
_SIZES = 64
"""Numbers of resident requests among which the best is searched."""
_SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
KNEE = 0.95
"""Share of the largest rate above which waiting times diverge."""


@dataclass(frozen=True)
class Requests:
    """The requests of each load, as arrays that go together."""

    isl: np.ndarray
    """Tokens of a prompt (ISL)."""
    osl: np.ndarray
    """Output tokens (OSL)."""
    cached: np.ndarray | float = 0.0
    """Tokens of the prompt whose keys and values are in the cache already: they are attended to
    and take room, but no products."""
    vary: np.ndarray | float = 0.0
    """(longest − shortest) / mean of the output lengths of clients in a closed loop."""
    groups: np.ndarray | float = 1.0
    """Groups of a copy's sequences, each in another pipeline stage."""

    @property
    def new(self) -> np.ndarray:
        """Tokens of a prompt that are computed."""
        return self.isl - self.cached

    def beside(self, sizes: object) -> tuple[np.ndarray, Requests]:
        """Sizes of loads and their requests, as arrays of one shape."""
        size, *rest = _together(sizes, self.isl, self.osl, self.cached, self.vary, self.groups)
        return size, Requests(*rest)

    def times(self, count: int) -> Requests:
        """Every request `count` times over."""
        _, of = self.beside(0.0)
        return Requests(
            *(np.tile(v, count) for v in (of.isl, of.osl, of.cached, of.vary, of.groups))
        )


@dataclass(frozen=True)
class Load:
    """Requests as arrays with one entry a load."""

    requests: Requests
    """The requests."""
    resident: np.ndarray
    """Concurrent requests of each group."""
    ttft: np.ndarray
    """Seconds to the first token."""
    tpot: np.ndarray
    """Seconds between tokens."""
    requests_per_s: np.ndarray
    """Completed requests a second of each group."""
    prompt: Times
    """The step that the first token waits for."""
    token: Times
    """The step that each further token waits for."""
    seconds: np.ndarray
    """Seconds of a request from its start to its last token; for a static batch, of the batch."""
    quantiles: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Seconds to the first token by other statistics than the mean, where they differ."""


def decoding(steps: Steps, batch: np.ndarray, isl: np.ndarray, osl: np.ndarray) -> Times:
    """The mean decode step of `batch` sequences, from their second token to their last."""
    last = np.maximum(isl + osl - 2, isl)
    past = np.stack([isl, (isl + last) / 2.0, last], axis=1).reshape(-1)
    return steps.decode(np.repeat(batch, 3), past).mean(_SIMPSON)


def static(steps: Steps, batch: np.ndarray, of: Requests) -> Load:
    """Batches that start and end together. The last group's prompts enter the first stage after
    those of the other groups have left it.

    If a batch does not fit, an engine with continuous batching runs what fits, then the rest. Any
    other engine refuses it with `ProblemError`.
    """
    batch, of = of.beside(batch)
    resident = _resident(steps, batch, of)
    waves = np.floor(batch / resident)
    rest = batch - waves * resident
    load = _wave(steps, resident, of)
    seconds = waves * load.seconds
    if np.any(rest > 0):
        last = _wave(steps, np.maximum(rest, 1.0), of)
        seconds = seconds + np.where(rest > 0, last.seconds, 0.0)
    return replace(load, requests_per_s=batch / seconds, seconds=seconds)


def _wave(steps: Steps, batch: np.ndarray, of: Requests) -> Load:
    """Sequences that are resident together from start to end."""
    fill = 1.0 + (of.groups - 1.0) / steps.of.pipeline
    prompt = steps.prefill(batch, of.new, of.cached).times(fill)
    token = decoding(steps, batch, of.isl, of.osl)
    seconds = prompt.total + (of.osl - 1) * token.total
    return Load(of, batch, prompt.total, token.total, batch / seconds, prompt, token, seconds)


def _resident(steps: Steps, batch: np.ndarray, of: Requests) -> np.ndarray:
    """Sequences of each batch that fit at once."""
    check_weights(steps.of)
    lengths = (of.isl + of.osl).astype(int).tolist()
    fits = np.array([fitting_batch(steps.of, length) for length in lengths], dtype=float)
    for size, length, most in zip(batch * of.groups, lengths, fits, strict=True):
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
    return np.asarray(np.minimum(batch, fits / of.groups))


def steady(steps: Steps, resident: np.ndarray, of: Requests) -> Load:
    """Steady state with requests of all ages: each step ends resident / OSL and starts as many."""
    resident, of = of.beside(resident)
    prompt, step = _cycle(steps, resident, of)
    waits = (0.5 + _held(steps, resident, resident / of.osl)) * step.total
    ttft = prompt.total + waits + steps.of.engine.request_seconds
    seconds = ttft + (of.osl - 1) * step.total
    rate = resident / of.osl / step.total
    return Load(of, resident, ttft, step.total, rate, prompt, step, seconds)


def closed(steps: Steps, clients: np.ndarray, of: Requests) -> Load:
    """Clients that each send their next request when the last one ends (`clients.Round`).

    Clients that do not fit wait by Little's law.
    """
    steps = steps.streaming()
    batching = steps.of.engine.batching
    clients, of = of.beside(clients)
    resident = np.minimum(clients, _most_of(steps, of))
    burst = steps.prefill(resident, of.new, of.cached)
    rounds = np.ceil(resident * of.new / np.maximum(batching.tokens, of.new))
    half = burst.times((rounds + 1.0) / (2.0 * rounds))
    decode = decoding(steps, resident, of.isl, of.osl)
    alone = steps.prefill(np.ones_like(resident), of.new, of.cached)
    ends = window(of.vary, of.osl, decode.total)
    apart = ends / (ends + alone.total)
    mixed, token = _cycle(steps, resident, of, apart) if batching.mixed else (alone, decode)
    share = resident / of.osl
    held = _held(steps, resident, share) * token.total
    round_ = Round(
        resident, mixed, burst, half, decode.total, ends, steps.of.engine.request_seconds,
        batching, steps.of.together, 1.0 + apart * (_every(steps, resident, share) - 1.0),
        np.minimum(held, ends / 2.0),
    )  # fmt: skip
    if not batching.mixed:  # a request's tokens wait for the prompts that its first did not
        drifted = resident * alone.total * _stalled(steps, resident, share)
        others = round_.alike * burst.total + (1.0 - round_.alike) * drifted
        rest = np.maximum(others - alone.total - round_.queue, 0.0) / alone.total
        token = decode.plus(alone.times(rest / np.maximum(of.osl - 1, 1)))
    usual = round_.mean + (of.osl - 1) * token.total
    waits = (clients - resident) / resident * usual
    prompt = mixed.times((mixed.total + round_.queue) / mixed.total)
    return Load(
        of, resident, round_.mean + waits, token.total, resident / usual, prompt, token,
        usual + waits, {name: value + waits for name, value in round_.quantiles().items()},
    )  # fmt: skip


def _cycle(
    steps: Steps, resident: np.ndarray, of: Requests, apart: np.ndarray | float = 1.0
) -> tuple[Times, Times]:
    """The step of prompts that join together, and the mean time between tokens; `apart` is the
    share of prompts that do not come together with those of other copies.

    Of OSL steps, resident / (OSL · prompts) hold prompts: one, or more where several end in a step.
    A step holds whole prompts as far as its tokens allow, together with decoding or alone.
    """
    batching = steps.of.engine.batching
    past = of.isl + of.osl / 2.0
    prompts = np.maximum(1.0, resident / of.osl)
    share = resident / of.osl / prompts
    stalls = share * (1.0 + apart * (_stalled(steps, resident, share) - 1.0))
    if not batching.mixed:
        prompt = steps.prefill(prompts, of.new, of.cached)
        alone = 1.0 + share - stalls
        return prompt, steps.decode(resident, past).times(alone).plus(prompt.times(stalls))
    room = np.maximum(batching.tokens - resident, batching.tokens / 8.0)
    pieces = np.ceil(prompts * of.new / room) if batching.chunked else np.ones_like(of.new)
    prompt = steps.mixed(resident, past, prompts / pieces, of.new, of.cached).times(pieces)
    stalls = share * (1.0 + apart * (_stalled(steps, resident, share * pieces) - 1.0))
    alone = np.maximum(1.0 - stalls * pieces, 0.0)
    return prompt, prompt.times(stalls).plus(steps.decode(resident, past).times(alone))


def _stalled(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Steps with prompts of any copy over those of one, of whose steps a `share` has prompts
    (F / f of `clients`)."""
    if steps.of.together == 1:
        return np.ones_like(share)
    share = np.clip(share, 1e-9, 1.0)
    every = _every(steps, resident, share)
    some = 1.0 - (1.0 - share) ** (steps.of.together * every)
    return np.asarray(np.maximum(some / every / share, 1.0))


def _every(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Steps from one in which prompts may run to the next (g of `clients`)."""
    most = steps.of.engine.batching.gather if steps.of.together > 1 else 1.0
    held = np.maximum(np.minimum(most, 1.0 / np.maximum(share, 1e-9)), 1.0) - 1.0
    return np.asarray(1.0 + held * np.clip(resident - 1.0, 0.0, 1.0))


def _held(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mean steps that prompts are held back for those of other copies (gate of `clients`)."""
    every = _every(steps, resident, share)
    return np.asarray((every - 1.0) / 2.0 * (1.0 + share * every))


def full(steps: Steps, of: Requests) -> Load:
    """As many concurrent requests as fit."""
    _, of = of.beside(0.0)
    return steady(steps, _most_of(steps, of), of)


def open_loop(steps: Steps, rate: np.ndarray, of: Requests) -> Load:
    """`rate` requests a second for each group, in an open loop.

    Raises `ProblemError` for a rate above the knee, `KNEE` of the largest rate, where waiting times
    depend on chance. The message names the limit. The largest rate is that of the best number of
    resident requests: many of them leave little room for prompts in a step.
    """
    steps = steps.streaming()
    rate, of = of.beside(rate)
    best, top = _best(steps, _most_of(steps, of), of)
    copies = steps.of.data * of.groups
    for wanted, most in zip(rate * copies, top * copies, strict=True):
        _check_rate(steps, float(wanted), float(most))
    low, high = np.zeros_like(rate), best
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        short = rate > steady(steps, middle, of).requests_per_s
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    load = steady(steps, high, of)
    waits = _waits(steps, rate, load)
    ttft = load.prompt.total + waits["mean"]
    seconds = ttft + (of.osl - 1) * load.tpot
    quantiles = {name: load.prompt.total + wait for name, wait in waits.items() if name != "mean"}
    return replace(
        load, resident=rate * seconds, ttft=ttft, seconds=seconds, quantiles=quantiles
    )  # fmt: skip


def _waits(steps: Steps, rate: np.ndarray, load: Load) -> dict[str, np.ndarray]:
    """Seconds that requests which arrive at random (Poisson) wait before their prompt's step.

    They wait for the server's host, for half of the step that is running, for those scheduled
    already, and for prompts of other copies (`clients`). Where prompts run alone they also queue,
    by M/D/1: ρ S / (2 (1 − ρ)) on average, with a tail of exp(−2 (1 − ρ) t / S) (heavy traffic).
    """
    batching, own = steps.of.engine.batching, load.prompt.total
    decode = steps.decode(load.resident, load.requests.isl + load.requests.osl / 2.0).total
    busy = np.minimum(rate * own, KNEE)
    share = load.resident / load.requests.osl
    copies = steps.of.together if batching.mixed else steps.of.together - 1
    chance = (1.0 - (1.0 - busy) ** copies) / _every(steps, load.resident, share)
    step = (chance * own + (1.0 - chance) * decode) * np.minimum(load.resident, 1.0)
    held = _held(steps, load.resident, share) * load.tpot
    wait = steps.of.engine.request_seconds + (batching.poll / 2.0 + batching.ahead) * step
    scale = 0.0 * own if batching.mixed else own / (2.0 * (1.0 - busy))
    quantiles = {
        name: wait
        + 2.0 * quantile * held
        + scale * np.log(np.maximum(busy / (1.0 - quantile), 1.0))
        for name, quantile in STATISTICS.items()
    }
    return {**quantiles, "mean": wait + held + busy * scale}


def _best(steps: Steps, most: np.ndarray, of: Requests) -> tuple[np.ndarray, np.ndarray]:
    """The number of resident requests, up to `most`, with the largest rate; and that rate."""
    resident = most * np.geomspace(1.0 / most.max(), 1.0, _SIZES)[:, None]
    rates = steady(steps, resident.reshape(-1), of.times(_SIZES)).requests_per_s
    rates = rates.reshape(_SIZES, -1)
    best, loads = rates.argmax(axis=0), np.arange(len(most))
    return resident[best, loads], rates[best, loads]


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


def _most_of(steps: Steps, of: Requests) -> np.ndarray:
    """Maximum concurrent requests of a group."""
    pairs = zip(of.isl.astype(int).tolist(), of.osl.astype(int).tolist(), strict=True)
    return np.array([_most(steps, *pair) for pair in pairs], dtype=float) / of.groups


def _together(*values: object) -> tuple[np.ndarray, ...]:
    return tuple(np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in values)))
