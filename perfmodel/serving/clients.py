"""Clients in a closed loop: each sends its next request when the last one ends.

All clients start at once. Requests of one length also end at once. Lengths that vary by a share v,
(longest − shortest) / mean, spread the ends of the k-th requests over

    W = v · √k · (OSL − 1) · D

seconds of decoding, as an end is the sum of k lengths; D is a step without prompts. A first token
takes the time S of its own prompt, of those before it, of the step that is running, of the steps
that are scheduled already, and c of the server's host:

    TTFT = S + queue + max(L, c + poll · L / 2) + ahead · L

An engine that runs prompts first keeps clients of one length in phase: each round begins with all
prompts, and the mean one waits for half of them. Where ends are spread, the queue is that of one
server with n arrivals in W (M/D/1), which adds n S² / 2W. Both are limits of

    queue = (half − S) · S / (S + W),    L = D

An engine that mixes prompts with decoding ends few requests in a step, so no queue forms. The
running step holds another prompt with the chance p = (n − 1) S / ((n − 1) S + W):

    queue = 0,    L = p S + (1 − p) D

Copies that share experts step together, P of them, and each takes the time of the longest. Of the
steps of one copy a share f holds prompts, so F of all steps hold prompts of a copy:

    F = 1 − (1 − f)^P

The running step holds another copy's prompt too: p has n P − 1 prompts, or n (P − 1) where the
copy's own run first. Decoding goes on beside prompts of other copies (SGLang, scheduler.py,
get_next_batch_to_run: a step has the prompts of some copies and the tokens of others, and
dp_attention.py pads no prompts: DpPaddingMode.SUM_LEN).

An engine may hold prompts back until every copy has one, or for G steps (TensorRT-LLM,
py_executor.py, _balance_adp_requests: attention_dp_timeout_iters). Then it runs one prompt of each
copy, at most every g steps, and a prompt waits for half of them, and for g steps more behind each
other prompt of its copy, of which f g / 2 wait on average (D/1, first order in its load f g ≤ 1):

    g = min(G, 1 / f),    F = (1 − (1 − f)^(P g)) / g ≥ f,    gate = (g − 1) / 2 · (1 + f g) · TPOT

Requests of one length end together in all copies: then F = f, and a share W / (S + W) of prompts
come apart. The gate lasts no longer than W / 2, in which half of the prompts come. A copy without a
request that decodes ends it (all_ranks_have_gen_requests), so a copy's only client never waits. The
step that runs before a prompt that was held has another one in one of g cases: p / g.

The median is that of a round. The mean over `ROUNDS` rounds holds the first one, where all prompts
arrive at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfmodel.serving.engine import Batching
from perfmodel.serving.times import Times

ROUNDS = 10
"""Requests of a client: the usual number in benchmarks of a given concurrency."""
STATISTICS: Mapping[str, float] = {"mean": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99}
"""Statistics of first tokens, with the quantile; the mean has none."""
_DRIFT = float(np.mean(np.sqrt(np.arange(1, ROUNDS))))
"""The mean of √k over the rounds after the first."""


@dataclass(frozen=True)
class Round:
    """A round of requests, as arrays with one entry a load."""

    clients: np.ndarray
    """Clients that are served at the same time, n."""
    prompt: Times
    """The step of one prompt, S; beside the tokens of the others where the engine mixes."""
    burst: np.ndarray
    """Seconds of all prompts at once, or of their admission."""
    half: np.ndarray
    """Seconds of the mean first token of all prompts at once."""
    decode: np.ndarray
    """Seconds of a step without prompts, D."""
    window: np.ndarray
    """Seconds of decoding over which the ends of requests are spread, W."""
    host: float
    """Seconds of the server's host for a request, c."""
    batching: Batching
    """How the engine schedules."""
    together: int = 1
    """Copies that step together, P."""
    every: np.ndarray | float = 1.0
    """Steps from one in which prompts may run to the next, g."""
    gate: np.ndarray | float = 0.0
    """Mean seconds that a prompt is held back for those of other copies."""

    @property
    def alike(self) -> np.ndarray:
        """Share of clients in phase, where prompts run first."""
        prompt = self.prompt.total
        return np.asarray(0.0 if self.batching.mixed else prompt / (prompt + self.window))

    @property
    def queue(self) -> np.ndarray:
        """Seconds of other prompts before one's own."""
        return np.asarray((self.half - self.prompt.total) * self.alike)

    @property
    def wait(self) -> np.ndarray:
        """Seconds for the host, for other copies, and for the steps that run or are scheduled."""
        run = self.prompt.total
        rivals = self.clients * self.together - 1.0
        queued = 0.0 if self.batching.mixed else self.clients - 1.0  # of its own copy
        load = (rivals - queued) * run
        chance = load / (load + self.window + 1e-12) / self.every
        step = (chance * run + (1.0 - chance) * self.decode) * (self.clients * self.together > 1.0)
        boundary = np.maximum(step, self.host + self.batching.poll * step / 2.0)
        drifted = boundary + self.batching.ahead * step
        in_phase = (self.alike > 0.0) & (self.window == 0.0)
        return np.where(in_phase, self.host, drifted) + self.gate

    @property
    def usual(self) -> np.ndarray:
        """Seconds of a first token in a round: the median."""
        return np.asarray(self.prompt.total + self.queue + self.wait)

    @property
    def mean(self) -> np.ndarray:
        """The mean over all rounds, of which the first has all prompts at once."""
        first = self.half + self.host
        return np.asarray(self.usual + (first - self.usual) / ROUNDS)

    def quantile(self, share: float) -> np.ndarray:
        """Seconds that `share` of the first tokens take at most, above the median.

        The wait of a queue with load ρ falls off as exp(−2 (1 − ρ) t / S) (heavy traffic). Of the
        first burst, a share of the prompts has run after that share of its time.
        """
        prompt = self.prompt.total
        load = self.clients * prompt / (self.clients * prompt + self.window)
        tail = np.log(np.maximum(load / (1.0 - share), 1.0)) * prompt / 2.0
        tail = np.minimum(tail / np.maximum(1.0 - load, 1e-9), self.burst - prompt)
        in_burst = np.where(self.window == 0.0, share, 1.0 - (1.0 - share) * ROUNDS)
        burst = np.maximum(in_burst, 0.0) * self.burst + self.host
        if self.batching.mixed:
            tail, burst = 0.0 * tail, (1.0 - (1.0 - share) * ROUNDS) * self.burst
        gate = 2.0 * (share - 0.5) * self.gate  # evenly spread, up to twice the mean
        return np.asarray(np.maximum(self.usual + gate + np.maximum(tail - self.queue, 0.0), burst))

    def quantiles(self) -> dict[str, np.ndarray]:
        """First tokens by the name of their statistic, without the mean."""
        tails = {name: self.quantile(share) for name, share in STATISTICS.items() if share > 0.5}
        return {"p50": self.usual, **tails}


def queued(clients: np.ndarray, service: np.ndarray, think: np.ndarray) -> np.ndarray:
    """Mean seconds that each of `clients` waits at a server that takes `service` seconds of each
    request, one at a time, and sees it again after `think` seconds elsewhere.

    Approximate mean value analysis of a closed network: an arriving request sees what the others
    leave on average, and of the one in service half (Reiser, 1979; Schweitzer, 1979):

        R = S (1 - f ρ / 2) / (1 - f ρ),    ρ = X S,    X (R + Z) = n,    f = (n - 1) / n

    which is a quadratic equation of the load ρ, at most 1.
    """
    turn = think / np.maximum(service, 1e-12)
    half, most = turn + clients, (clients - 1.0) / clients * (turn + 0.5) * clients
    load = np.minimum(2.0 * clients / (half + np.sqrt(np.maximum(half**2 - 4.0 * most, 0.0))), 1.0)
    return np.asarray(np.maximum(clients / load - turn - 1.0, 0.0) * service)


def window(vary: np.ndarray | float, osl: np.ndarray, decode: np.ndarray) -> np.ndarray:
    """Seconds of decoding over which ends are spread, W, in the mean of the rounds."""
    return np.asarray(vary * _DRIFT * (osl - 1.0) * decode)
