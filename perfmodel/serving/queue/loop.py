"""The event loop: copies of a network run step after step, and requests come and end between them.

Copies that share experts step together, each step as long as the longest of theirs; others are
loops of their own, as are the groups of pipeline stages. Requests go round the copies in order of
arrival. Steps without prompts are added up at once until something happens.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.serving.cachememory import check_weights, memory, sequence_bytes
from perfmodel.serving.engine import Batching
from perfmodel.serving.queue.cachepool import CachePool
from perfmodel.serving.queue.outcome import Outcome
from perfmodel.serving.queue.server import Plan, Server
from perfmodel.serving.queue.steptable import StepTable, tabulated
from perfmodel.serving.queue.traffic import Arrivals
from perfmodel.serving.steps import Steps

_STRETCH = 4096
"""Most steps that are added up at once."""
_VECTOR = 24
"""Steps from which on arrays are quicker than a loop."""


@dataclass(frozen=True)
class Site:
    """Where requests are served."""

    table: StepTable
    """Seconds of steps."""
    batching: Batching
    """How the engine schedules."""
    blocks: int
    """Blocks of each copy's cache."""
    block: int = 1
    """Tokens of a block."""
    together: int = 1
    """Copies that step together."""
    loops: int = 1
    """Groups of such copies."""
    request: float = 0.0
    """Seconds of the server's host before the scheduler sees a request."""
    admit: float = 0.0
    """Seconds in which the server admits a request, one at a time."""


def simulate(steps: Steps, arrivals: Arrivals) -> Outcome:
    """Serve the requests, each with the deployment's images. Raises `ProblemError` for one that
    does not fit by itself."""
    longest, _ = steps.of.reading(round(float(np.mean(arrivals.inputs))))
    prompts = [steps.of.reading(tokens)[1] for tokens in arrivals.inputs.tolist()]
    arrivals = replace(arrivals, inputs=np.array(prompts))
    return run(site(Steps(longest), arrivals), arrivals)


def site(steps: Steps, arrivals: Arrivals) -> Site:
    """The deployment as the event loop needs it.

    A sequence with a window keeps less than all of its tokens: its blocks are those of a cache
    that is larger in proportion, at the mean length.
    """
    deployment, engine = steps.of, steps.of.engine
    if deployment.pools:
        raise ProblemError("pools are served by closed forms; drop --requests or --arrivals")
    check_weights(deployment)
    mean = max(int(np.mean(arrivals.inputs + arrivals.outputs / 2.0)), engine.cache.block)
    block_bytes = sequence_bytes(deployment, mean) / -(-mean // engine.cache.block)
    groups = deployment.pipeline if engine.batching.piped else 1
    loops = deployment.data // deployment.together * groups
    blocks = int(memory(deployment).cache_bytes / block_bytes) // groups
    most = min(engine.batching.sequences, arrivals.clients or len(arrivals), max(blocks, 1))
    table = tabulated(steps, arrivals.longest, most)
    return Site(
        table, engine.batching, blocks, engine.cache.block, deployment.together, loops,
        engine.request_seconds, engine.admit_seconds,
    )  # fmt: skip


def run(where: Site, arrivals: Arrivals) -> Outcome:
    """Serve the requests at a site. Raises `ProblemError` for one that does not fit."""
    longest = arrivals.longest
    if -(-longest // where.block) > where.blocks:
        raise ProblemError(
            f"a request of {longest:,} tokens does not fit the cache of "
            f"{where.blocks * where.block:,}; give shorter lengths, a smaller format, or more "
            "devices by --tensor"
        )
    if arrivals.pieces and arrivals.piece % where.block:
        raise ProblemError(
            f"hashed pieces of {arrivals.piece} tokens are no blocks of {where.block} of the cache"
        )
    sent, first, end = ([*arrivals.seconds.tolist()] for _ in range(3))
    loops = [_Loop(where, arrivals, k) for k in range(where.loops)]
    for loop in loops:
        loop.run(sent, first, end)
    servers = [server for loop in loops for server in loop.servers]
    return Outcome(
        arrivals, np.array(sent), np.array(first), np.array(end),
        sum(server.preemptions for server in servers), sum(server.hits for server in servers),
        max(server.pool.most for server in servers) / where.blocks,
    )  # fmt: skip


class _Loop:
    """Copies that step together."""

    def __init__(self, where: Site, arrivals: Arrivals, number: int) -> None:
        self.where, self.arrivals = where, arrivals
        copies, stride = where.together, where.together * where.loops
        turns = np.arange(len(arrivals)) % (arrivals.clients or len(arrivals)) % stride
        own = [np.flatnonzero(turns == number * copies + c).tolist() for c in range(copies)]
        first = [[i for i in r if i < arrivals.clients] if arrivals.clients else r for r in own]
        self.later = [deque(r[len(f) :]) for r, f in zip(own, first, strict=True)]  # of clients
        self.servers = [
            Server(
                where.table, where.batching,
                CachePool(where.blocks, where.block, arrivals.piece), arrivals,
            )
            for _ in first
        ]  # fmt: skip
        self.free = 0.0
        """When the server has admitted all that it was sent."""
        for i, copy in sorted((i, c) for c, own in enumerate(first) for i in own):
            self._send(self.servers[copy], i, float(arrivals.seconds[i]))

    def run(self, sent: list[float], first: list[float], end: list[float]) -> None:
        """Serve all requests; fills when each was sent, got its first token, and ended."""
        batching, servers = self.where.batching, self.servers
        now, count, delayed = 0.0, 0, 0
        starts: deque[float] = deque([0.0], maxlen=batching.ahead + 1)
        while True:
            if all(server.idle for server in servers):
                times = [server.coming[0][0] for server in servers if server.coming]
                if not times:
                    return
                now = max(now, min(times))
                starts.clear()
                starts.append(now)
                count = 0
            if count % batching.poll == 0:
                for server in servers:
                    server.look(starts[0])
            hold = self._holds(delayed)
            delayed = delayed + 1 if hold else 0
            plans = [server.plan(hold=hold) for server in servers]
            ends = self._step_ends(plans, now, count, starts)
            starts.extend(ends)
            now, count = ends[-1], count + len(ends)
            self._advance(plans, ends, sent, first, end)

    def _holds(self, delayed: int) -> bool:
        """Whether prompts wait until every copy has one (`batching.gather`)."""
        having = [server.has_prompts for server in self.servers]
        return (
            delayed + 1 < self.where.batching.gather
            and any(having)
            and not all(having)
            and all(server.decoding for server in self.servers)
        )

    def _step_ends(
        self, plans: Sequence[Plan], now: float, count: int, starts: deque[float]
    ) -> list[float]:
        """When the next steps end: one, or as many as hold the same requests."""
        servers, batching = self.servers, self.where.batching
        gathers = batching.gather > 1 and any(s.has_prompts for s in servers)
        quiet = not gathers and not any(plan.chunks for plan in plans)
        steps = min([s.quiet() for s in servers if s.decoding], default=1) if quiet else 1
        if steps < 2:
            return [now + max([s.seconds(p) for s, p in zip(servers, plans, strict=True)])]
        news = min([s.coming[0][0] for s in servers if s.listens], default=math.inf)
        if news <= starts[0]:  # it came, and the engine looks later
            return self._until(now, min(steps, -count % batching.poll or batching.poll))
        if news < math.inf:
            first = max([s.table.decode(s.decoding).at(s.past(0)) for s in servers if s.decoding])
            steps = min(
                steps, int(max(news - now, 0.0) / first) + batching.ahead + batching.poll + 1
            )
        ends = self._until(now, min(steps, _STRETCH))
        limit = bisect_left([*starts, *ends], news) + batching.ahead + 1 - len(starts)
        return ends[: limit + -(count + limit) % batching.poll]

    def _until(self, now: float, steps: int) -> list[float]:
        """The ends of steps in which nothing but decoding happens."""
        curves = [(s, s.table.decode(s.decoding)) for s in self.servers if s.decoding]
        if steps < _VECTOR:
            ends = [now]
            for k in range(steps):
                ends.append(ends[-1] + max([curve.at(s.past(k)) for s, curve in curves]))
            return ends[1:]
        places = np.arange(steps)
        seconds = np.max([curve.along(s.past(places)) for s, curve in curves], axis=0)
        return [*map(float, np.cumsum(np.append(now, seconds))[1:])]

    def _advance(
        self, plans: Sequence[Plan], ends: list[float], sent: list[float], first: list[float],
        end: list[float],
    ) -> None:  # fmt: skip
        now = ends[-1]
        for server, plan, later in zip(self.servers, plans, self.later, strict=True):
            firsts, ended = server.advance(plan, len(ends))
            for i in firsts:
                first[i] = now
            for i in ended:
                end[i] = now
                if later:
                    i = later.popleft()
                    sent[i] = now
                    self._send(server, i, now)

    def _send(self, server: Server, i: int, now: float) -> None:
        """A client sends a request to a copy; the server admits it in turn."""
        start = max(now, self.free)
        self.free = start + self.where.admit
        server.coming.append((start + self.where.request, i))
