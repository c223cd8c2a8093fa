"""The scheduler of one copy of a network: what each step holds.

Decoding requests go on in every step (`batching.mixed`, decode first), or stop while prompts run
(prefill first). Prompts enter in the order of priority, then of arrival, while the step has tokens
and sequences left and the cache has room for the prompt.

A decoding token may need a block. Without one, the request of the least priority that was admitted
last is preempted: it gives up its blocks, waits again, and computes its tokens anew (vLLM V1,
Scheduler.schedule; SGLang, retract_decode).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from perfmodel.serving.engine import Batching
from perfmodel.serving.queue.cachepool import CachePool
from perfmodel.serving.queue.steptable import StepTable
from perfmodel.serving.queue.traffic import Arrivals


class Plan(NamedTuple):
    """What a step holds."""

    chunks: list[tuple[int, int]]
    """Requests whose prompts run, and how many of their tokens."""
    decodes: bool
    """Whether decoding requests go on."""
    starts: float = 0.0
    """Prompts that begin in it and whose images are encoded; of one that is partly cached, the
    rest."""


class Server:
    """A copy, with the requests that it is sent, in order of arrival (`coming`)."""

    def __init__(
        self, table: StepTable, batching: Batching, pool: CachePool, traffic: Arrivals
    ) -> None:
        self.table, self.batching, self.pool, self.traffic = table, batching, pool, traffic
        self.coming: deque[tuple[float, int]] = deque()
        """Requests that were sent, and when the scheduler can see them."""
        self.waiting: list[tuple[int, int]] = []
        self.decoding = 0
        self.preemptions = self.hits = 0
        self._inputs: list[int] = traffic.inputs.tolist()
        self._outputs: list[int] = traffic.outputs.tolist()
        self._made = [0] * len(traffic)
        self._left: dict[int, int] = {}
        self._tokens: dict[int, int] = {}
        self._shared: dict[int, list[int]] = {}
        self._running: dict[int, int] = {}
        self._past = self._count = 0
        self._freed, self._starts = False, 0.0
        self._ends: list[tuple[int, int]] = []
        self._needs = [0] * pool.block

    # -- what comes ----------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not (self.decoding or self._left or self.waiting)

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt runs or waits."""
        return bool(self._left or self.waiting)

    @property
    def listens(self) -> bool:
        """Whether a request that comes may change what is to be done: without priorities none
        overtakes one that waits."""
        blocked = self.waiting and not self.traffic.ranked and self.batching.poll == 1
        return bool(self.coming) and not blocked

    def look(self, until: float) -> None:
        """Queue the requests that came until a time."""
        while self.coming and self.coming[0][0] <= until:
            i = self.coming.popleft()[1]
            heappush(self.waiting, (int(self.traffic.priorities[i]), i))

    # -- what runs -----------------------------------------------------------------------------

    def plan(self, *, hold: bool = False) -> Plan:
        """The next step; `hold` keeps prompts waiting."""
        self._freed, self._starts = False, 0.0
        if self.batching.mixed:
            self._freed = self._make_room()
            chunks = [] if hold else self._chunks(self.decoding, admits=not self._freed)
            return Plan(chunks, self.decoding > 0, self._starts)
        chunks = [] if hold else self._chunks(0, admits=True)
        if not chunks:
            self._freed = self._make_room()
        return Plan(chunks, not chunks and self.decoding > 0, self._starts)

    def _chunks(self, used: int, *, admits: bool) -> list[tuple[int, int]]:
        """Prompts of a step, of whose tokens some are used."""
        if not (self._left or self.waiting):
            return []
        batching = self.batching
        room = batching.tokens - used
        chunks: list[tuple[int, int]] = []
        for i, left in self._left.items():
            if room <= 0:
                return chunks
            size = self._size(left, room, alone=not chunks and not used)
            if size:
                chunks.append((i, size))
                room -= size
        if not batching.continuous and (self.decoding or self._left):
            admits = False
        while admits and self.waiting and room > 0:
            if self.decoding + len(self._left) >= batching.sequences:
                break
            i = self.waiting[0][1]
            pieces = self._hits(i)
            left = self._inputs[i] + self._made[i] - self._hit_tokens(i, pieces)
            size = self._size(left, room, alone=not chunks and not used)
            if not size or not self._admit(i, pieces, left):
                break
            heappop(self.waiting)
            self._starts += left / (self._inputs[i] + self._made[i])
            chunks.append((i, size))
            room -= size
        return chunks

    def _size(self, left: int, room: int, *, alone: bool) -> int:
        """Tokens of a prompt that a step takes; a prompt that is not split may exceed a step."""
        if self.batching.chunked:
            return min(left, room)
        return left if left <= room or alone else 0

    def _hits(self, i: int) -> list[int]:
        pieces = self.traffic.pieces
        return self.pool.known(pieces[i]) if pieces else []

    def _hit_tokens(self, i: int, pieces: Sequence[int]) -> int:
        """Tokens of a prompt that are cached; one at least is computed."""
        cached = max(len(pieces) * self.traffic.piece, int(self.traffic.cached[i]))
        return min(cached, self._inputs[i] + self._made[i] - 1)

    def _admit(self, i: int, pieces: list[int], left: int) -> bool:
        """Give a request its blocks, if the cache has room."""
        tokens = self._inputs[i] + self._made[i]
        stored = self._inputs[i] + self._outputs[i] if self.batching.reserves else tokens
        blocks = self.pool.count(stored) - len(pieces) * self.pool.count(self.traffic.piece)
        decoding = self._needed if self.batching.mixed else 0
        if blocks > self.pool.available - self.pool.unused(pieces) - decoding:
            return False
        self.pool.use(pieces)
        self.pool.take(blocks)
        self.hits += tokens - left
        self._left[i], self._tokens[i], self._shared[i] = left, stored, pieces
        return True

    def _make_room(self) -> bool:
        """Preempt requests until every decoding one has a block for its token; whether any was."""
        preempted = False
        while self.decoding and self._needed > self.pool.available:
            admitted = [*self._running, *self._left]
            ranks = self.traffic.priorities
            self._preempt(
                max(reversed(admitted), key=lambda i: ranks[i])
                if self.traffic.ranked
                else admitted[-1]
            )
            preempted = True
        return preempted

    @property
    def _needed(self) -> int:
        """Blocks of the next token of each decoding request."""
        return self._needs[self._count % self.pool.block]

    def _preempt(self, i: int) -> None:
        self.preemptions += 1
        if i in self._running:
            self._made[i] = self._outputs[i] - (self._running[i] - self._count)
            self._leave(i)
        else:
            del self._left[i]
        self.pool.release(self._tokens.pop(i), self._shared.pop(i))
        heappush(self.waiting, (int(self.traffic.priorities[i]), i))

    def _leave(self, i: int) -> None:
        """Take a request out of those that decode."""
        end = self._running.pop(i)
        tokens = self._inputs[i] + self._outputs[i] - 1 - (end - self._count)
        if not self.batching.reserves:
            self._tokens[i] = tokens
            self._needs[(self._count - tokens) % self.pool.block] -= 1
        self.decoding -= 1
        self._past -= tokens

    # -- time ----------------------------------------------------------------------------------

    def quiet(self) -> int:
        """Steps in which nothing but decoding happens: no request ends before the last of them, and
        each has blocks; 0 without a decoding request."""
        if not self.decoding:
            return 0
        while self._ends[0] != (self._running.get(self._ends[0][1]), self._ends[0][1]):
            heappop(self._ends)
        if self._freed:  # there may be room for a request that was preempted
            return 1
        most = self._ends[0][0] - self._count
        if self.batching.reserves:
            return most
        available, block, count = self.pool.available, self.pool.block, self._count
        rounds, rest = divmod(available, self.decoding)
        safe = rounds * block
        while safe < most and self._needs[(count + safe) % block] <= rest:
            rest -= self._needs[(count + safe) % block]
            safe += 1
        return min(most, safe)

    def seconds(self, plan: Plan) -> float:
        """Seconds of a step; 0 for one that holds nothing."""
        past = self.past(0) if self.decoding else 0.0
        if not plan.chunks:
            return self.table.decode(self.decoding).at(past) if plan.decodes else 0.0
        tokens = sum(size for _, size in plan.chunks)
        before = sum(size * self._before(i) for i, size in plan.chunks) / tokens
        decoding = self.decoding if plan.decodes else 0
        step = self.table.mixed(decoding, past, len(plan.chunks), tokens, before)
        return step + self.table.encoding.at(plan.starts)

    def _before(self, i: int) -> int:
        """Tokens of a prompt that are in the cache."""
        return self._inputs[i] + self._made[i] - self._left[i]

    def past(self, step: Any) -> Any:
        """Mean cached tokens of the decoding requests, `step` steps later."""
        return (self._past + step * self.decoding) / self.decoding

    def advance(self, plan: Plan, steps: int) -> tuple[list[int], list[int]]:
        """Run steps of one plan; the requests with their first token, and those that end."""
        firsts, ended = [], []
        if plan.decodes:
            self._decode(steps)
            while self._ends and self._ends[0][0] <= self._count:
                end, i = heappop(self._ends)
                if self._running.get(i) == end:
                    self._leave(i)
                    ended.append(i)
        for i, size in plan.chunks:
            self._left[i] -= size
            if not self._left[i]:
                if not self._made[i]:
                    firsts.append(i)
                if self._prefilled(i):
                    ended.append(i)
        for i in ended:
            self.pool.release(self._tokens.pop(i), self._shared.pop(i))
        return firsts, ended

    def _decode(self, steps: int) -> None:
        self._past += steps * self.decoding
        if not self.batching.reserves:
            rounds, rest = divmod(steps, self.pool.block)
            places = range(self._count, self._count + rest)
            need = rounds * self.decoding + sum(self._needs[k % self.pool.block] for k in places)
            self.pool.take(need)
        self._count += steps

    def _prefilled(self, i: int) -> bool:
        """The prompt's last step made a token; whether it was the request's last."""
        del self._left[i]
        tokens = self._inputs[i] + self._made[i]
        if self.traffic.pieces:
            self._shared[i] = [*self._shared[i], *self.pool.keep(self.traffic.pieces[i], tokens)]
        self._made[i] += 1
        rest = self._outputs[i] - self._made[i]
        if not rest:
            return True
        self._running[i] = self._count + rest
        heappush(self._ends, (self._count + rest, i))
        if not self.batching.reserves:
            self._needs[(self._count - tokens) % self.pool.block] += 1
        self.decoding += 1
        self._past += tokens
        return False
