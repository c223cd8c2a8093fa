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
from perfmodel.serving.cachememory import check_weights, fitting_batch, memory, more
from perfmodel.serving.clients import STATISTICS, Round, queued, window
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import HOST, Line, Times

_HALVINGS = 30
_PASSES = 6
"""Times that the clients who wait for the server's processes are taken from those in the steps."""
_BEFORE = 0.5
"""Share of that wait before the first token, where requests and the tokens of others take turns:
chosen, not derived. Closed-loop runs of TensorRT-LLM show 0.20 to 0.45."""
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
        values = (sizes, self.isl, self.osl, self.cached, self.vary, self.groups)
        size, *rest = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in values))
        return size, Requests(*rest)

    def times(self, count: int) -> Requests:
        """Every request `count` times over."""
        _, req = self.beside(0.0)
        return Requests(
            *(np.tile(v, count) for v in (req.isl, req.osl, req.cached, req.vary, req.groups))
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
    batch, req = of.beside(batch)
    resident = _resident_counts(steps, batch, req)
    waves = np.floor(batch / resident)
    rest = batch - waves * resident
    load = _wave(steps, resident, req)
    seconds = waves * load.seconds
    if np.any(rest > 0):
        last = _wave(steps, np.maximum(rest, 1.0), req)
        seconds = seconds + np.where(rest > 0, last.seconds, 0.0)
    return replace(load, requests_per_s=batch / seconds, seconds=seconds)


def _wave(steps: Steps, batch: np.ndarray, req: Requests) -> Load:
    """Sequences that are resident together from start to end."""
    fill = 1.0 + (req.groups - 1.0) / steps.of.pipeline
    prompt = steps.prefill(batch, req.new, req.cached).times(fill)
    token = decoding(steps, batch, req.isl, req.osl)
    seconds = prompt.total + (req.osl - 1) * token.total
    return Load(req, batch, prompt.total, token.total, batch / seconds, prompt, token, seconds)


def _resident_counts(steps: Steps, batch: np.ndarray, req: Requests) -> np.ndarray:
    """Sequences of each batch that fit at once."""
    check_weights(steps.of)
    limits, engine = resident_limit(steps, req, whole=True), steps.of.engine
    if engine.batching.sequences == 1 and np.any(batch > 1):
        raise ProblemError(f"{engine.name} runs one sequence at a time; give --batch 1")
    for size, most in zip(batch * req.groups, limits * req.groups, strict=True):
        if size > most and not engine.batching.continuous:
            raise ProblemError(
                f"{size:.0f} sequences do not fit {steps.of.device.slug} beside "
                f"{steps.of.network.name}; {most:.0f} do: give a smaller batch, or more devices by "
                "--tensor"
            )
    return np.asarray(np.minimum(batch, limits))


def steady(steps: Steps, resident: np.ndarray, of: Requests) -> Load:
    """Steady state with requests of all ages: each step ends resident / OSL and starts as many."""
    resident, req = of.beside(resident)
    prompt, step = _cycle(steps, resident, req)
    waits = (0.5 + _gate_steps(steps, resident, resident / req.osl)) * step.total
    ttft = prompt.total + waits + steps.of.engine.request_seconds
    seconds = ttft + (req.osl - 1) * step.total
    rate = resident / req.osl / step.total
    return Load(req, resident, ttft, step.total, rate, prompt, step, seconds)


def closed(steps: Steps, clients: np.ndarray, of: Requests) -> Load:
    """Clients that each send their next request when the last one ends (`clients.Round`).

    Clients that do not fit wait by Little's law; so do those that wait for the server: for the
    process that admits them, and for the slower one of its two where that is always busy.
    """
    engine = steps.of.engine
    clients, req = of.beside(clients)
    limit = resident_limit(steps, req)
    resident, slowest = np.minimum(clients, limit), engine.served_seconds(req.osl)
    all_clients = clients * req.groups * steps.of.together
    for _ in range(_PASSES if np.any(slowest) else 0):
        load = _round(steps, clients, resident, req)
        cycle = load.seconds * resident / clients
        admission = queued(all_clients, np.full_like(cycle, engine.admit_seconds), cycle)
        wait = np.maximum(admission, all_clients * slowest - cycle)
        resident = np.minimum(resident, clients * cycle / (cycle + wait))
    load = _round(steps, clients, resident, req)
    waits = np.where(resident < limit, load.seconds * (1.0 - resident / clients), 0.0)
    return _later(load, (1.0 - _BEFORE) * waits)


def _later(load: Load, seconds: np.ndarray) -> Load:
    """The load with seconds of each first token's wait among its further tokens."""
    if not np.any(seconds):
        return load
    each = seconds / np.maximum(load.requests.osl - 1, 1)
    return replace(
        load, ttft=load.ttft - seconds, tpot=load.tpot + each,
        token=load.token.plus(Times.exactly(Line("clients", HOST, HOST), each)),
        quantiles={name: value - seconds for name, value in load.quantiles.items()},
    )  # fmt: skip


def _round(steps: Steps, clients: np.ndarray, resident: np.ndarray, req: Requests) -> Load:
    """Clients of whom some are resident at a time; the others wait by Little's law."""
    batching = steps.of.engine.batching
    burst = steps.prefill(resident, req.new, req.cached)
    rounds = np.ceil(resident * req.new / np.maximum(batching.tokens, req.new))
    half = burst.total * (rounds + 1.0) / (2.0 * rounds)
    admitted = steps.of.engine.admit_seconds * clients * req.groups * steps.of.together
    decode = decoding(steps, resident, req.isl, req.osl)
    solo = steps.prefill(np.ones_like(resident), req.new, req.cached)
    ends = window(req.vary, req.osl, decode.total)
    drift = ends / (ends + solo.total)
    mixed, token = _cycle(steps, resident, req, drift) if batching.mixed else (solo, decode)
    share = resident / req.osl
    gates = _gate_steps(steps, resident, share) * token.total
    round_ = Round(
        resident, mixed, np.maximum(burst.total, admitted), np.maximum(half, admitted / 2.0),
        decode.total, ends, steps.of.engine.request_seconds,
        batching, steps.of.together, 1.0 + drift * (_gate_period(steps, resident, share) - 1.0),
        np.minimum(gates, ends / 2.0),
    )  # fmt: skip
    if not batching.mixed:  # a request's tokens wait for the prompts that its first did not
        drifted = resident * solo.total * _stall_factor(steps, resident, share)
        stall = round_.alike * burst.total + (1.0 - round_.alike) * drifted
        rest = np.maximum(stall - solo.total - round_.queue, 0.0) / solo.total
        token = decode.plus(solo.times(rest / np.maximum(req.osl - 1, 1)))
    cycle = round_.mean + (req.osl - 1) * token.total
    waits = (clients - resident) / resident * cycle
    prompt = mixed.times((mixed.total + round_.queue) / mixed.total)
    return Load(
        req, resident, round_.mean + waits, token.total, resident / cycle, prompt, token,
        cycle + waits, {name: value + waits for name, value in round_.quantiles().items()},
    )  # fmt: skip


def _cycle(
    steps: Steps, resident: np.ndarray, req: Requests, drift: np.ndarray | float = 1.0
) -> tuple[Times, Times]:
    """The step of prompts that join together, and the mean time between tokens; `drift` is the
    share of prompts that do not come together with those of other copies.

    Of OSL steps, resident / (OSL · prompts) hold prompts: one, or more where several end in a step.
    A step holds whole prompts as far as its tokens allow, together with decoding or alone.
    """
    batching = steps.of.engine.batching
    past = req.isl + req.osl / 2.0
    prompts = np.maximum(1.0, resident / req.osl)
    share = resident / req.osl / prompts
    stalls = share * (1.0 + drift * (_stall_factor(steps, resident, share) - 1.0))
    if not batching.mixed:
        prompt = steps.prefill(prompts, req.new, req.cached)
        decodes = 1.0 + share - stalls
        return prompt, steps.decode(resident, past).times(decodes).plus(prompt.times(stalls))
    room = np.maximum(batching.tokens - resident, batching.tokens / 8.0)
    pieces = np.ceil(prompts * req.new / room) if batching.chunked else np.ones_like(req.new)
    prompt = steps.mixed(resident, past, prompts / pieces, req.new, req.cached).times(pieces)
    stalls = share * (1.0 + drift * (_stall_factor(steps, resident, share * pieces) - 1.0))
    decodes = np.maximum(1.0 - stalls * pieces, 0.0)
    return prompt, prompt.times(stalls).plus(steps.decode(resident, past).times(decodes))


def _stall_factor(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Steps with prompts of any copy over those of one, of whose steps a `share` has prompts
    (F / f of `clients`)."""
    if steps.of.together == 1:
        return np.ones_like(share)
    share = np.clip(share, 1e-9, 1.0)
    period = _gate_period(steps, resident, share)
    chance = 1.0 - (1.0 - share) ** (steps.of.together * period)
    return np.asarray(np.maximum(chance / period / share, 1.0))


def _gate_period(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Steps from one in which prompts may run to the next (g of `clients`)."""
    limit = steps.of.engine.batching.gather if steps.of.together > 1 else 1.0
    extra = np.maximum(np.minimum(limit, 1.0 / np.maximum(share, 1e-9)), 1.0) - 1.0
    return np.asarray(1.0 + extra * np.clip(resident - 1.0, 0.0, 1.0))


def _gate_steps(steps: Steps, resident: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mean steps that prompts are held back for those of other copies (gate of `clients`)."""
    period = _gate_period(steps, resident, share)
    return np.asarray((period - 1.0) / 2.0 * (1.0 + share * period))


def full(steps: Steps, of: Requests) -> Load:
    """As many concurrent requests as fit."""
    _, req = of.beside(0.0)
    return steady(steps, resident_limit(steps, req), req)


def open_loop(steps: Steps, rate: np.ndarray, of: Requests) -> Load:
    """`rate` requests a second for each group, in an open loop.

    Raises `ProblemError` for a rate above the knee, `KNEE` of the largest rate, where waiting times
    depend on chance. The message names the limit. The largest rate is that of the best number of
    resident requests: many of them leave little room for prompts in a step.
    """
    rate, req = of.beside(rate)
    best, top = _peak(steps, resident_limit(steps, req), req)
    engine, sharing = steps.of.engine, steps.of.together * req.groups
    slowest = engine.served_seconds(req.osl) * sharing
    top = np.minimum(top, 1.0 / np.maximum(slowest, 1e-12))
    copies = steps.of.data * req.groups
    for demand, limit in zip(rate * copies, top * copies, strict=True):
        _check_rate(steps, float(demand), float(limit))
    low, high = np.zeros_like(rate), best
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        short = rate > steady(steps, middle, req).requests_per_s
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    load = steady(steps, high, req)
    waits = _wait_quantiles(steps, rate, load)
    busy = np.minimum(rate * sharing * engine.admit_seconds, KNEE)  # M/D/1, of admissions
    delay = busy / (2.0 * (1.0 - busy)) * engine.admit_seconds
    waits = {name: wait + delay for name, wait in waits.items()}
    ttft = load.prompt.total + waits["mean"]
    seconds = ttft + (req.osl - 1) * load.tpot
    quantiles = {name: load.prompt.total + wait for name, wait in waits.items() if name != "mean"}
    return replace(
        load, resident=rate * seconds, ttft=ttft, seconds=seconds, quantiles=quantiles
    )  # fmt: skip


def _wait_quantiles(steps: Steps, rate: np.ndarray, load: Load) -> dict[str, np.ndarray]:
    """Seconds that requests which arrive at random (Poisson) wait before their prompt's step.

    They wait for the server's host, for half of the step that is running, for those scheduled
    already, and for prompts of other copies (`clients`). Where prompts run alone they also queue,
    by M/D/1: ρ S / (2 (1 − ρ)) on average, with a tail of exp(−2 (1 − ρ) t / S) (heavy traffic).
    """
    batching, prompt = steps.of.engine.batching, load.prompt.total
    decode = steps.decode(load.resident, load.requests.isl + load.requests.osl / 2.0).total
    busy = np.minimum(rate * prompt, KNEE)
    share = load.resident / load.requests.osl
    copies = steps.of.together if batching.mixed else steps.of.together - 1
    chance = (1.0 - (1.0 - busy) ** copies) / _gate_period(steps, load.resident, share)
    step = (chance * prompt + (1.0 - chance) * decode) * np.minimum(load.resident, 1.0)
    gate = _gate_steps(steps, load.resident, share) * load.tpot
    wait = steps.of.engine.request_seconds + (batching.poll / 2.0 + batching.ahead) * step
    scale = 0.0 * prompt if batching.mixed else prompt / (2.0 * (1.0 - busy))
    quantiles = {
        name: wait
        + 2.0 * quantile * gate
        + scale * np.log(np.maximum(busy / (1.0 - quantile), 1.0))
        for name, quantile in STATISTICS.items()
    }
    return {**quantiles, "mean": wait + gate + busy * scale}


def _peak(steps: Steps, limit: np.ndarray, req: Requests) -> tuple[np.ndarray, np.ndarray]:
    """The number of resident requests, up to `limit`, with the largest rate; and that rate."""
    resident = limit * np.geomspace(1.0 / limit.max(), 1.0, _SIZES)[:, None]
    rates = steady(steps, resident.reshape(-1), req.times(_SIZES)).requests_per_s
    rates = rates.reshape(_SIZES, -1)
    best, loads = rates.argmax(axis=0), np.arange(len(limit))
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


def resident_limit(steps: Steps, req: Requests, *, whole: bool = False) -> np.ndarray:
    """Maximum concurrent requests of a group, with half of their output on average, or with the
    `whole`, which some engines reserve."""
    answers = req.osl if whole or steps.of.engine.batching.reserves else req.osl // 2
    lengths = (req.isl + answers).astype(int)
    has = memory(steps.of)
    fits = {length: fitting_batch(steps.of, length, has=has) for length in set(lengths.tolist())}
    for isl, osl, length in zip(req.isl, req.osl, lengths.tolist(), strict=True):
        if not fits[length]:
            raise ProblemError(
                f"not one request of {isl:,.0f} + {osl:,.0f} tokens fits {steps.of.device.slug} "
                f"beside {steps.of.network.name} in {steps.of.weights}; "
                f"give {more(steps.of, length)}fewer tokens, or a smaller format"
            )
    return np.array([fits[length] for length in lengths.tolist()], dtype=float) / req.groups
