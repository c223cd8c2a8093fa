"""A plain simulation of the scheduler, step by step and request by request, written apart from
`perfmodel.serving.queue`: what the event loop is held against."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Request:
    number: int
    ready: float
    inputs: int
    outputs: int
    cached: int
    priority: int
    pieces: list
    made: int = 0
    left: int = 0
    tokens: int = 0
    blocks: int = 0
    shared: list = field(default_factory=list)
    admitted: int = -1


class Cache:
    """Blocks, counted from what requests hold; kept prefixes in order of their last use."""

    def __init__(self, blocks, block, piece):
        self.total, self.block, self.size = blocks, block, max(piece // block, 1)
        self.users, self.own, self.most = {}, 0, 0

    @property
    def unused(self):
        return [piece for piece, users in self.users.items() if users == 0]

    @property
    def free(self):
        return self.total - self.own - len(self.users) * self.size

    def room(self, without=()):
        return self.free + self.size * sum(piece not in without for piece in self.unused)

    def take(self, blocks):
        while self.free < blocks:
            del self.users[self.unused[0]]
        self.own += blocks
        self.most = max(self.most, self.total - self.room())


class Copy:
    def __init__(self, site, requests, piece):
        self.site, self.rules = site, site.batching
        self.coming, self.waiting, self.prompts, self.running = list(requests), [], [], []
        self.cache = Cache(site.blocks, site.block, piece)
        self.piece, self.preempted, self.clock = piece, 0, 0

    def idle(self):
        return not (self.waiting or self.prompts or self.running)

    def look(self, until):
        for request in [r for r in self.coming if r.ready <= until]:
            self.coming.remove(request)
            self.waiting.append(request)

    def need(self, tokens):
        return -(-tokens // self.site.block)

    def leave(self, request):
        self.cache.own -= request.blocks
        for piece in reversed(request.shared):
            users = self.cache.users.pop(piece) - 1
            self.cache.users[piece] = users  # a piece that nobody uses goes to the end of the line
        request.blocks, request.shared = 0, []

    def make_room(self):
        preempted = False
        while True:
            need = 0
            for request in self.running:
                if not self.rules.reserves and request.tokens % self.site.block == 0:
                    need += 1
            if not self.running or need <= self.cache.room():
                return preempted
            holders = self.running + self.prompts
            worst = max(r.priority for r in holders)
            victim = [r for r in holders if r.priority == worst][-1]
            (self.running if victim in self.running else self.prompts).remove(victim)
            self.leave(victim)
            self.waiting.append(victim)
            self.preempted += 1
            preempted = True

    def chunks(self, taken, admits):
        room, chosen = self.rules.tokens - taken, []

        def size(left):
            if self.rules.chunked:
                return min(left, room)
            return left if left <= room or not (chosen or taken) else 0

        if not self.rules.continuous and (self.running or self.prompts):
            admits = False
        for request in self.prompts:
            if room > 0 and size(request.left):
                chosen.append((request, size(request.left)))
                room -= chosen[-1][1]
        while admits and self.waiting and room > 0:
            if len(self.running) + len(self.prompts) >= self.rules.sequences:
                break
            request = min(self.waiting, key=lambda r: (r.priority, r.number))
            hits = []
            for piece in request.pieces:
                if piece not in self.cache.users:
                    break
                hits.append(piece)
            tokens = request.inputs + request.made
            cached = min(max(len(hits) * self.piece, request.cached), tokens - 1)
            take = size(tokens - cached)
            end = request.inputs + request.outputs if self.rules.reserves else tokens
            blocks = self.need(end) - len(hits) * self.need(self.piece)
            growing = self.running if self.rules.mixed and not self.rules.reserves else []
            growth = sum(r.tokens % self.site.block == 0 for r in growing)
            if not take or blocks + growth > self.cache.room(without=hits):
                break
            for piece in hits:
                self.cache.users[piece] += 1
            self.cache.take(blocks)
            self.waiting.remove(request)
            request.blocks, request.shared, request.left = blocks, hits, tokens - cached
            request.tokens = tokens
            self.prompts.append(request)
            chosen.append((request, take))
            room -= take
        return chosen

    def plan(self, hold):
        if self.rules.mixed:
            blocked = self.make_room()
            chosen = [] if hold else self.chunks(len(self.running), not blocked)
            return chosen, list(self.running)
        chosen = [] if hold else self.chunks(0, True)
        if not chosen:
            self.make_room()
        return chosen, [] if chosen else list(self.running)

    def seconds(self, chosen, decoding):
        total = sum(r.tokens for r in decoding)
        mean = total / len(decoding) if decoding else 0.0
        if not chosen:
            return self.site.table.decode(len(decoding)).at(mean) if decoding else 0.0
        tokens = sum(size for _, size in chosen)
        before = sum(size * (r.inputs + r.made - r.left) for r, size in chosen) / tokens
        return self.site.table.mixed(len(decoding), mean, len(chosen), tokens, before)

    def finish(self, chosen, decoding, now, record):
        ended = []
        for request in decoding:
            if not self.rules.reserves and request.tokens % self.site.block == 0:
                self.cache.take(1)
                request.blocks += 1
            request.tokens += 1
            request.made += 1
        ended += sorted((r for r in decoding if r.made == r.outputs), key=lambda r: r.number)
        for request in ended:
            self.running.remove(request)
        for request, size in chosen:
            request.left -= size
            if request.left:
                continue
            self.prompts.remove(request)
            if not request.made:
                record.first[request.number] = now
            inside = (request.inputs + request.made) // self.piece
            for piece in dict.fromkeys(request.pieces[:inside]):
                if piece not in self.cache.users:
                    self.cache.users[piece] = 1
                    self.cache.own -= self.cache.size
                    request.blocks -= self.cache.size
                    request.shared = [*request.shared, piece]
            request.made += 1
            if request.made == request.outputs:
                ended.append(request)
            else:
                self.running.append(request)
        for request in ended:
            self.leave(request)
            record.end[request.number] = now
        return ended


@dataclass
class Record:
    sent: dict
    first: dict = field(default_factory=dict)
    end: dict = field(default_factory=dict)
    preempted: int = 0
    fullest: int = 0
    tokens: int = 0


def simulate(site, arrivals):
    """When each request was sent, got its first token and ended."""
    record = Record(dict(enumerate(arrivals.seconds.tolist())))
    for number in range(site.loops):
        _loop(site, arrivals, number, record)
    return record


def _loop(site, arrivals, number, record):
    rules, admitted = site.batching, [0.0]

    def request(i, now):
        record.sent[i] = now
        start = max(now, admitted[-1])  # the server admits them in turn
        admitted.append(start + site.admit)
        return Request(
            i, start + site.request, int(arrivals.inputs[i]), int(arrivals.outputs[i]),
            int(arrivals.cached[i]), int(arrivals.priorities[i]),
            list(arrivals.pieces[i]) if arrivals.pieces else [],
        )  # fmt: skip

    copies, later = [Copy(site, [], arrivals.piece) for _ in range(site.together)], []
    places = site.together * site.loops
    for i in range(len(arrivals)):
        turn = i % (arrivals.clients or 10**9) % places
        if turn // site.together == number and (not arrivals.clients or i < arrivals.clients):
            copy = copies[turn % site.together]
            copy.coming.append(request(i, float(arrivals.seconds[i])))
    for c in range(site.together):
        place = number * site.together + c
        own = [i for i in range(len(arrivals)) if i % (arrivals.clients or 10**9) % places == place]
        later.append([i for i in own if arrivals.clients and i >= arrivals.clients])
    starts, step, held = [0.0], 0, 0
    while True:
        if all(copy.idle() for copy in copies):
            ready = [r.ready for copy in copies for r in copy.coming]
            if not ready:
                return
            starts, step = [max(starts[-1], min(ready))], 0
        if step % rules.poll == 0:
            for copy in copies:
                copy.look(starts[max(len(starts) - 1 - rules.ahead, 0)])
        having = [bool(copy.prompts or copy.waiting) for copy in copies]
        hold = (
            held + 1 < rules.gather and any(having) and not all(having)
            and all(copy.running for copy in copies)
        )  # fmt: skip
        held = held + 1 if hold else 0
        plans = [copy.plan(hold) for copy in copies]
        now = starts[-1] + max(
            copy.seconds(*plan) for copy, plan in zip(copies, plans, strict=True)
        )
        for copy, (chosen, decoding), rest in zip(copies, plans, later, strict=True):
            record.tokens += len(decoding)
            ended = copy.finish(chosen, decoding, now, record)
            record.fullest = max(record.fullest, copy.cache.most)
            assert copy.cache.free >= 0
            for _ in ended if arrivals.clients else ():
                if rest:
                    copy.coming.append(request(rest.pop(0), now))
        record.preempted = sum(copy.preempted for copy in copies)
        starts.append(now)
        step += 1
