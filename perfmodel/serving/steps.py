"""Steps of a deployment: prefill, decode of a token of each sequence, and both together.

steps = Steps(deployment)
steps.decode(np.array([1, 64]), np.array([1024, 4096])).total      # seconds of two steps
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from perfmodel.algorithms import Attention, Rowwise
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.problem import Problem
from perfmodel.collectives import Collective, predict_collective
from perfmodel.graph.asks import answers
from perfmodel.networks import hosts
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import Indexer, SelfAttention, State
from perfmodel.networks.networktime import sustained
from perfmodel.networks.operations.attention import index_problem
from perfmodel.networks.operations.states import KERNELS, state_problem, taps_problem
from perfmodel.operators import operator_of
from perfmodel.predict import predict_arrays
from perfmodel.serving.cachememory import sequence_bytes
from perfmodel.serving.deployment import PLACES, Deployment
from perfmodel.serving.kernels import (
    absorbed,
    exchange_times,
    exchanges,
    expanded,
    kernels,
)
from perfmodel.serving.times import COMMUNICATION, HOST, Line, Times, around, beside
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.training.overlap import FABRIC_UNITS

_HARNESS = "kernel"
_DRAFTED = 16
"""Tokens of a sequence, behind its cache, up to which they are drafts: decoding's kernels verify
them, and states after each of them are kept."""


@dataclass
class _Tables:
    """Predictions of kernels at the sizes that were asked for, by size. Deployments that differ in
    batching, host, cache or copies alone share them."""

    layers: dict[int, Times] = field(default_factory=dict)
    """Layers without attention, by tokens."""
    heads: dict[int, Times] = field(default_factory=dict)
    """The head, by rows."""
    decoding: dict[tuple[int, int], Times] = field(default_factory=dict)
    """Attention of a token of each sequence, by sequences and cached tokens."""
    prompts: dict[tuple[int, int, int], Times] = field(default_factory=dict)
    """Attention of prompts, by their number, their tokens, and those before them."""
    kept: dict[str, object] = field(default_factory=dict)
    """The device and the system, whose identity is in the key."""


@lru_cache(maxsize=256)
def _tables(kernels: Hashable, constants: Hashable) -> _Tables:
    """The tables of all deployments with equal kernels."""
    return _Tables()


class Steps:
    """Times of steps. Raises what `perfmodel.predict.predict` raises for an unsupported format."""

    def __init__(self, deployment: Deployment) -> None:
        self.of = deployment
        self.values = sustained(default(), deployment.device)
        self.gap_seconds = float(machine(deployment.device).at_clock(self.values["kernel_gap"]))
        tables = _tables(deployment.kernel_key, tuple(self.values.items()))
        tables.kept.setdefault(deployment.device.slug, (deployment.device, deployment.system))
        self._layers, self._heads = tables.layers, tables.heads
        self._decoding, self._prompts = tables.decoding, tables.prompts

    # -- whole steps ---------------------------------------------------------------------------

    def decode(self, batch: np.ndarray, past: np.ndarray) -> Times:
        """One token of each of `batch` sequences, each with `past` tokens cached; with drafts, the
        share of a pass that one token takes."""
        if self.of.drafted:
            return self._drafted(batch, past)
        batch, past = np.broadcast_arrays(np.asarray(batch, float), np.asarray(past, float))
        turns = self.turns(batch)
        parts = [
            self.layers(batch / turns).times(turns),
            self.head(batch),
            self.decoding(batch / turns, past).times(turns),
        ]
        return self._step(parts, batch, batch, prompt=False)

    def prefill(
        self, prompts: np.ndarray, tokens: np.ndarray, past: np.ndarray | float = 0.0
    ) -> Times:
        """Prefill of `tokens` tokens of each of `prompts` prompts, after `past` cached tokens.

        A step holds at most the engine's limit of tokens. More prompts take several steps; so does
        a longer prompt where the engine splits prompts. Equal pieces attend to half of the prompt
        on average, and attention is linear in the tokens that it reads.
        """
        prompts, tokens, past = np.broadcast_arrays(
            np.asarray(prompts, float), np.asarray(tokens, float), np.asarray(past, float)
        )
        batching, share = self.of.engine.batching, tokens / (tokens + past)
        prefix = past
        pieces = np.ceil(tokens / batching.tokens) if batching.chunked else np.ones_like(tokens)
        tokens, past = tokens / pieces, past + (pieces - 1.0) / 2.0 * tokens / pieces
        steps = np.ceil(prompts * tokens / np.maximum(batching.tokens, tokens))
        batch = prompts / steps
        turns = self.turns(batch * tokens)
        layers = self.layers(batch * tokens / turns).times(turns)
        parts = [layers, self.head(batch), self.prompts(batch, tokens, past)]
        step = self._step(parts, batch * tokens, batch, prompt=True)
        sent = self._from_outside(batch, prefix, step.total).times(steps)
        images = self.encoding(batch).times(steps * share)
        return step.times(steps * pieces).beside(sent).beside(images)

    def mixed(
        self, batch: np.ndarray, past: np.ndarray, prompts: np.ndarray, tokens: np.ndarray,
        before: np.ndarray | float,
    ) -> Times:  # fmt: skip
        """One token of each of `batch` sequences together with `tokens` of each of `prompts`
        prompts."""
        batch, past, prompts, tokens, before = np.broadcast_arrays(
            *(np.asarray(value, float) for value in (batch, past, prompts, tokens, before))
        )
        work = batch * (1 + self.of.drafted) + prompts * tokens
        turns = self.turns(work)
        parts = [
            self.layers(work / turns).times(turns),
            self.head(batch + prompts),
            self.decoding(batch / turns, past).times(turns),
            self.prompts(prompts, tokens, before),
        ]
        step = self._step(parts, work, batch + prompts, prompt=True)
        sent = self._from_outside(prompts, before, step.total)
        lengths = tokens + before
        share = np.divide(tokens, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        images = self.encoding(prompts).times(share)
        return step.beside(sent).beside(images)

    def _from_outside(self, prompts: np.ndarray, past: np.ndarray, computing: np.ndarray) -> Times:
        """What a step of `computing` seconds waits for the `past` tokens of its prompts, where they
        lie in host memory or on a disk; elsewhere no line.

        Each of L layers needs its share of the transfer T before it, and the link sends the next
        layers' meanwhile: T/L before the first layer, or C/L after the last share if T is longer,

            C + wait = max(C + T/L, T + C/L)

        Every device reads its shard over its own link; stages read at the same time.
        """
        if self.of.cached_at == PLACES[0] or not np.any(past > 0):
            return Times((), *[np.zeros((0, len(prompts)))] * 3)
        sizes, places = np.unique(past.astype(int), return_inverse=True)
        kept = np.array([sequence_bytes(self.of, size) if size else 0.0 for size in sizes.tolist()])
        seconds = prompts * kept[places] / self.of.cache_bytes_per_s
        layers = -(-self.of.network.layers // self.of.pipeline)
        both = np.maximum(computing + seconds / layers, seconds + computing / layers)
        wait = np.where(seconds > 0, both - computing, 0.0)
        return Times.exactly(
            Line(f"cache from {self.of.cached_at}", COMMUNICATION, COMMUNICATION), wait
        )

    @cached_property
    def _encoder(self) -> Steps | None:
        """What reads images, or an encoder-decoder's input; None where there are none."""
        encoder = self.of.encoder if self.of.passes[0] else None
        return None if encoder is None else Steps(encoder)

    def encoding(self, prompts: np.ndarray) -> Times:
        """The encoder's passes for `prompts` prompts, together, before their first step; a fraction
        of a prompt takes that fraction of its time. Without an encoder it has no lines."""
        (each, rows), prompts = self.of.passes, np.asarray(prompts, float)
        if self._encoder is None:
            return Times((), *[np.zeros((0, len(prompts)))] * 3)
        counts = np.maximum(np.ceil(prompts), 1.0)
        passes = counts * each
        times = self._encoder.passes(passes, np.full_like(passes, rows))
        return times.times(prompts / counts)

    def passes(self, count: np.ndarray, rows: np.ndarray) -> Times:
        """`count` passes of an encoder over `rows` rows each, with gaps and launches; lines are
        named after the encoder."""
        work = count * rows
        parts = [self.layers(work), self.head(work), self.prompts(count, rows, 0.0 * rows)]
        body = self._launched(beside(parts), self.of.engine.prefill)
        lines = (replace(line, name=f"encoder {line.name}") for line in body.lines)
        return replace(body, lines=tuple(lines))

    def verify(self, batch: np.ndarray, past: np.ndarray, tokens: int) -> Times:
        """`tokens` of each sequence at once, after its cache: the verification of drafts."""
        batch, past = np.broadcast_arrays(np.asarray(batch, float), np.asarray(past, float))
        lengths = np.full_like(batch, tokens)
        turns = self.turns(batch * tokens)
        parts = [self.layers(batch * tokens / turns).times(turns), self.head(batch * tokens)]
        parts.append(self.prompts(batch, lengths, past))
        return self._step(parts, batch * tokens, batch, prompt=False)

    def _drafted(self, batch: np.ndarray, past: np.ndarray) -> Times:
        """A pass that verifies drafts, and the module that makes them (DeepSeek-V3, 2412.19437,
        section 2.2): a layer and the head for each; over the tokens that the pass makes."""
        count, layers = self.of.drafted, self.of.network.layers
        batch, past = np.broadcast_arrays(np.asarray(batch, float), np.asarray(past, float))
        drafts = beside([
            self.layers(batch).times(count / layers), self.head(batch).times(count),
            self.decoding(batch, past).times(count / layers),
        ])  # fmt: skip
        check = self.verify(batch, past, count + 1)
        return check.plus(drafts).times(1.0 / self.of.pass_tokens)

    def _step(
        self, parts: list[Times], tokens: np.ndarray, sequences: np.ndarray, *, prompt: bool
    ) -> Times:
        """Kernels with gaps, launches, sends between stages, and the engine's host time."""
        turns = self.turns(tokens)
        body = self._overlap(beside(parts), turns, FABRIC_UNITS if prompt else 0.0)
        engine = self.of.engine
        host = engine.prefill if prompt else self.of.setting(1).stack.host
        pieces = [self._launched(body, host, turns)]
        if self.of.pipeline > 1:
            pieces.append(self.sends(tokens))
        engine_s = engine.host_seconds(sequences, shared=self.of.tensor > 1)
        pieces.append(Times.exactly(Line("engine", HOST, HOST), engine_s))
        return beside(pieces)

    def _launched(self, body: Times, host: str, turns: np.ndarray | float = 1.0) -> Times:
        """Kernels with gaps, and what the device waits for their launches."""
        launches = body.launches * turns
        gaps = launches * self.gap_seconds
        device = body.total + gaps
        waits = np.maximum(launches * hosts.load(host).forward_seconds - device, 0.0)
        pieces = [body, Times.exactly(Line("gaps", HOST, HOST), gaps + np.zeros(len(device)))]
        if np.any(waits):
            pieces.append(Times.exactly(Line("launches", HOST, HOST), waits))
        return beside(pieces)

    def sends(self, tokens: np.ndarray) -> Times:
        """Sends of `tokens` tokens from stage to stage."""
        columns = self.of.network.hidden * self.of.network.streams
        volume = np.ceil(tokens * columns * 2.0 / self.of.tensor).astype(np.int64)
        time = predict_collective(Collective("send-receive", volume, 2, 2), self.of.fabric)
        line = Line("send-receive", COMMUNICATION, COMMUNICATION, 1)
        ends = (time.seconds, time.low_seconds, time.high_seconds)
        return Times((line,), *(end[None] for end in ends)).times(self.of.pipeline - 1)

    def turns(self, tokens: np.ndarray) -> np.ndarray:
        """Parts of a step that run in turn: two where the engine overlaps exchanges with experts,
        and each has a token."""
        return np.where(self.of.overlaps & (tokens >= 2.0), 2.0, 1.0)

    @staticmethod
    def _overlap(body: Times, turns: np.ndarray, units: float) -> Times:
        """Steps of two turns, with the part of their exchanges with experts that stays exposed.

        All exchanges E of both halves are beside the computing of both, the other half's each time
        (`training.overlap`), and occupy a share u of the units: in prompts that of a collective, in
        decoding none (DeepSeek, profile-data: the messages of decoding leave by RDMA and occupy no
        SM).

        Products P stay off these units for the whole step (SGLang, operations_strategy.py:
        deep_gemm_num_sms = total_num_sms − DeepEPConfig.num_sms of prompts; vLLM does the same by
        VLLM_DBO_COMM_SMS); other kernels O while rows are on their way:

            P / (1 − u) + O + u · E · O / (P + O)

        but no less than either resource, nor more than both in turn. The first half's first
        products and the last exchange are beside nothing; of 61 layers that is a hundredth, left
        out.
        """
        mask = np.array([line.joins_experts for line in body.lines])
        if not (np.any(mask) and np.any(turns > 1.0)):
            return body
        products = np.array([line.kind == "matmul" for line in body.lines])
        crossing, multiplying = (body.seconds[rows].sum(axis=0) for rows in (mask, products))
        computing = body.total - crossing
        others = computing - multiplying
        total = multiplying / (1.0 - units) + others
        total = total + units * crossing * others / np.maximum(computing, 1e-12)
        exposed = np.clip(total, crossing, crossing + computing) - computing
        share = np.where(turns > 1.0, exposed / np.maximum(crossing, 1e-12), 1.0)
        return body.times(np.where(mask[:, None], share, 1.0))

    @cached_property
    def _kinds(self) -> dict[SelfAttention, int]:
        """Every kind of attention, with the number of layers that have it."""
        kinds: dict[SelfAttention, int] = {}
        for block in self.of.network.blocks:
            for kind in filter(None, (block.attention, block.cross)):
                kinds[kind] = kinds.get(kind, 0) + block.repeat
        return kinds

    # -- parts of a step -----------------------------------------------------------------------

    def layers(self, tokens: np.ndarray) -> Times:
        """Embedding, layers and their exchanges over `tokens` tokens, without attention."""
        return _interpolation(tokens, self._layers, partial(self._fill, head=False))

    def head(self, rows: np.ndarray) -> Times:
        """Final norm and logits of `rows` tokens."""
        return _interpolation(rows, self._heads, partial(self._fill, head=True))

    def decoding(self, batch: np.ndarray, past: np.ndarray) -> Times:
        """Attention of one token of each sequence, interpolated in batch and cache length."""
        low, high, way = around(batch)
        p0, p1, ratio = around(np.maximum(past, 1))
        corners = [(low, p0), (high, p0), (low, p1), (high, p1)]
        keys = [
            list(zip(*(c.astype(int).tolist() for c in corner), strict=True)) for corner in corners
        ]
        self._fill_decoding(dict.fromkeys(key for corner in keys for key in corner))
        places = {key: i for i, key in enumerate(dict.fromkeys(k for c in keys for k in c))}
        table = _concat([self._decoding[key] for key in places])
        a, b, c, d = (np.array([places[key] for key in corner]) for corner in keys)
        short, long = table.between(a, b, way), table.between(c, d, way)
        times = short.times(1.0 - ratio).added(long.times(ratio))
        return times.times(self._rereads(times.lines))

    def _rereads(self, lines: tuple[Line, ...]) -> np.ndarray:
        """Factor of each line of attention for the cache that grouped heads read again."""
        groups = iter([k.heads // k.kv_heads for k in self._kinds if k.state is None])
        reread = self.of.engine.kernels.reread
        return np.array([
            [1.0 + reread * (next(groups) - 1)] if line.name == "attention" else [1.0]
            for line in lines
        ])  # fmt: skip

    def prompts(self, prompts: np.ndarray, tokens: np.ndarray, past: np.ndarray) -> Times:
        """Attention of prompts; a fraction of a prompt takes that fraction of its time."""
        counts = np.maximum(np.round(prompts), 1).astype(int).tolist()
        sizes = (np.maximum(np.round(tokens), 1).astype(int).tolist(), past.astype(int).tolist())
        keys = list(zip(counts, *sizes, strict=True))
        gaps = [key for key in dict.fromkeys(keys) if key not in self._prompts]
        if gaps:
            rows = np.array(gaps)
            times = beside(list(self._attention(rows[:, 0], rows[:, 1], rows[:, 2])))
            for i, key in enumerate(gaps):
                self._prompts[key] = times.at(np.array([i]))
        table = _concat([self._prompts[key] for key in keys])
        return table.times(prompts / np.array(counts))

    # -- predictions ---------------------------------------------------------------------------

    def _fill(self, sizes: list[int], *, head: bool) -> None:
        """Predict the layers, or the head, at several numbers of tokens in one call."""
        steps = [list(kernels(self.of, size, head=head)) for size in sizes]
        questions = [k.asked for step in steps for k in step]
        costs = answers(questions, self.of.device, harness=_HARNESS, constants=self.values)
        values = np.array([
            [p.seconds - p.terms["launch"], p.low_seconds, p.high_seconds, p.seconds] for p in costs
        ]).reshape(len(sizes), -1, 4)  # fmt: skip
        lines = tuple(
            Line(k.name, k.kind, operator_of(k.asked.problem).family(k.asked.problem),
                 k.launches) for k in steps[0]
        )  # fmt: skip
        repeat = np.array([[k.launches for k in step] for step in steps])
        seconds = values[:, :, 0] * repeat
        low, high = (seconds * values[:, :, i] / values[:, :, 3] for i in (1, 2))
        times = Times(lines, seconds.T, low.T, high.T).merged()
        crossing = None if head else exchange_times(
            self.of, [list(exchanges(self.of, size)) for size in sizes]
        )  # fmt: skip
        times = times if crossing is None else times.beside(crossing)
        table = self._heads if head else self._layers
        table.update({size: times.at(np.array([i])) for i, size in enumerate(sizes)})

    def _fill_decoding(self, keys: dict[tuple[int, int], None]) -> None:
        gaps = [key for key in keys if key not in self._decoding]
        if not gaps:
            return
        batch, past = np.array(gaps).T
        times = beside(list(self._attention(batch, np.ones_like(batch), past)))
        for i, key in enumerate(gaps):
            self._decoding[key] = times.at(np.array([i]))

    def _attention(self, batch: np.ndarray, seq: np.ndarray, past: np.ndarray) -> Iterator[Times]:
        """Attention of every kind of layer; prefill (seq > 1) and decode separately."""
        decoding = bool(np.all(seq <= _DRAFTED) and np.all(past > 0))
        for kind, repeat in self._kinds.items():
            if kind.state is not None:
                yield from self._state(kind, kind.state, batch, seq, past, repeat)
                continue
            if kind.indexer is not None:
                yield from self._choice(kind.indexer, batch, seq, past, repeat)
            names = self.of.engine.kernels
            kernel = names.decode if decoding else names.prefill
            name = "attention" if kind.causal or not self.of.encoded else "cross attention"
            seen = past if name == "attention" else self.of.encoded - seq
            problem = _problem(self.of, kind, batch, seq, seen, decoding=decoding)
            yield self._predict(name, "attention", problem, kernel, repeat)
            if kind.latent is not None:
                absorbs = decoding or kind.indexer is not None
                build = absorbed if absorbs else expanded
                for product in build(self.of, kind.latent, kind.heads // self.of.tensor, 1):
                    name = "absorbed projections" if absorbs else "kv up"
                    sized = product.having(m=batch * seq)
                    yield self._predict(name, "matmul", sized, "torch", repeat)

    def _state(
        self, kind: SelfAttention, state: State, batch: np.ndarray, seq: np.ndarray,
        past: np.ndarray, repeat: int,
    ) -> Iterator[Times]:  # fmt: skip
        """The convolution and the state of a layer that has no keys and values."""
        setup = self.of
        heads, key_heads = kind.heads // setup.tensor, max(kind.kv_heads // setup.tensor, 1)
        single = bool(np.all(seq == 1) and np.all(past > 0))
        drafted = bool(np.all(seq <= _DRAFTED) and np.all(past > 0)) and not single
        problem: DeclaredProblem = state_problem(
            state, batch=batch, seq=seq, heads=heads, key_heads=key_heads,
            value_size=kind.head_size, dtype=setup.dtype,
        )  # fmt: skip
        kernel = KERNELS.get(problem.operator, "") if single else ""
        if drafted and problem.operator == "gated-delta":
            kernel = "delta-verify"
        yield self._predict("state", "attention", problem, kernel, repeat)
        if state.taps:
            keys = 0 if state.selective else 2 * key_heads * state.key_size
            problem = taps_problem(
                state,
                batch=batch,
                seq=seq,
                channels=keys + heads * kind.head_size,
                dtype=setup.dtype,
            )
            kernel = KERNELS[problem.operator] if single else ""
            yield self._predict("taps", "attention", problem, kernel, repeat)

    def _choice(
        self, indexer: Indexer, batch: np.ndarray, seq: np.ndarray, past: np.ndarray, repeat: int
    ) -> Iterator[Times]:
        """Scores of an indexer, and the choice of keys, by every device."""
        keys = past + seq
        scores = index_problem(indexer, batch=batch, seq_q=seq, keys=keys, dtype=self.of.dtype)
        yield self._predict("indexer", "attention", scores, "", repeat)
        best = Rowwise("softmax", batch * seq, keys, "fp32")
        yield self._predict("choice", "attention", best, "", repeat)

    def _predict(self, name: str, kind: str, problem: Problem, kernel: str, repeat: int) -> Times:
        time = predict_arrays(
            problem, self.of.device, implementation=kernel or None, harness=_HARNESS,
            constants=self.values,
        )  # fmt: skip
        seconds = (time.seconds - time.terms["launch"]) * repeat
        low, high = (seconds * end / time.seconds for end in (time.low_seconds, time.high_seconds))
        line = Line(name, kind, operator_of(problem).family(problem), repeat)
        return Times((line,), seconds[None], low[None], high[None])


def _problem(
    setup: Deployment, kind: SelfAttention, batch: np.ndarray, seq: np.ndarray, past: np.ndarray,
    *, decoding: bool,
) -> Attention:  # fmt: skip
    """Attention of one layer on one device."""
    heads = Layer(setup.network, setup.setting(1)).share(
        "heads", kind.heads, setup.tensor, "tensor"
    )
    reach = kind.reach
    keys = np.minimum(past + seq, np.maximum(reach, seq)) if reach else past + seq
    if kind.indexer is not None:  # of a prompt's tokens, the mean has seen half
        keys = np.maximum(np.minimum(past + (seq + 1) // 2, reach), 1)
    cache_type = None if setup.cache_type == setup.dtype else setup.cache_type
    if kind.latent is not None and (decoding or kind.indexer is not None):
        width = kind.latent.kv_rank + kind.latent.rope
        if not decoding:  # every token has keys of its own
            batch, seq = batch * seq, np.ones_like(seq)
        return Attention(
            batch, heads, 1, seq, keys, width, kind.latent.kv_rank, causal=True, dtype=setup.dtype,
            kv_dtype=cache_type, keys_only=True,
        )  # fmt: skip
    if not kind.causal and kind.chunk:  # chunks are sequences of their own
        size = np.minimum(seq, kind.chunk)
        batch, seq, keys = batch * -(-seq // size), size, size
    kv_heads = max(kind.kv_heads // setup.tensor, 1)
    v_width = None if kind.value_width == kind.score_width else kind.value_width
    window = reach if reach and not decoding and np.any(seq > reach) else None
    return Attention(
        batch, heads, kv_heads, seq, keys, kind.score_width, v_width, causal=kind.causal,
        window=window, dtype=setup.dtype, kv_dtype=cache_type,
    )  # fmt: skip


def _interpolation(
    sizes: np.ndarray, times: dict[int, Times], fill: Callable[[list[int]], None]
) -> Times:
    """Times at sizes, interpolated between knots."""
    low, high, way = around(np.maximum(sizes, 1))
    points = sorted({*low.astype(int).tolist(), *high.astype(int).tolist()})
    gaps = [size for size in points if size not in times]
    if gaps:
        fill(gaps)
    table = _concat([times[size] for size in points])
    places = np.array(points)
    return table.between(np.searchsorted(places, low), np.searchsorted(places, high), way)


def _concat(parts: list[Times]) -> Times:
    """Steps with equal lines, concatenated."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return Times(
        first.lines,
        *(np.concatenate([getattr(part, name) for part in parts], axis=1)
          for name in ("seconds", "low", "high")),
    )  # fmt: skip
