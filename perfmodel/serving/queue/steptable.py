"""The time of a step by what it holds, as a table that is predicted once and then looked up.

    step = max(device, launches) + host + sends + encoding(prompts that begin)
    device = layers(T) + head(B) + decode attention(n, L) + prompt attention(c, q, p) + gaps

T tokens of B sequences: n decode, each with L tokens cached on average, and c prompts bring q new
tokens each, after p cached ones. Every part is linear between its knots (`times.KNOTS`), and
attention of prompts is linear in its time a token. `Steps` adds the same parts one load at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perfmodel.networks import hosts
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import KNOTS
from perfmodel.training.overlap import FABRIC_UNITS, Work, together_seconds


@dataclass(frozen=True)
class Host:
    """Seconds of a step outside kernels, for steps with or without prompts."""

    launch: float = 0.0
    """The host's time to launch the kernels of a step; the device waits for the rest of it."""
    gaps: float = 0.0
    """Between the kernels of a step."""
    step: float = 0.0
    """The engine's, once a step."""
    sequence: float = 0.0
    """The engine's, for each sequence."""


class Curve:
    """A value that is linear between ascending knots, and beyond them as the last piece."""

    def __init__(self, knots: Sequence[float], values: Sequence[float]) -> None:
        self.knots, self.values = list(knots), list(values)
        pieces = zip(self.knots, self.knots[1:], self.values, self.values[1:], strict=False)
        self._slopes = [(v1 - v0) / (k1 - k0) for k0, k1, v0, v1 in pieces] or [0.0]
        self._last = len(self._slopes) - 1

    def at(self, place: float) -> float:
        """The value at a place."""
        i = min(max(bisect_right(self.knots, place) - 1, 0), self._last)
        return self.values[i] + self._slopes[i] * (place - self.knots[i])

    def along(self, places: np.ndarray) -> np.ndarray:
        """The values at many places: the same bits as `at` gives."""
        knots, values, slopes = self._arrays
        i = np.minimum(np.maximum(knots.searchsorted(places, "right") - 1, 0), self._last)
        return np.asarray(values[i] + slopes[i] * (places - knots[i]))

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array(self.knots), np.array(self.values), np.array(self._slopes)


@dataclass
class StepTable:
    """Seconds of steps, linear between knots."""

    layers: Curve
    """Layers, by tokens."""
    crossing: Curve
    """Exchanges with experts that run beside computing, by tokens; zero where none do."""
    sends: Curve
    """Sends from stage to stage, by tokens."""
    head: Curve
    """Final norm and logits, by sequences."""
    decoding: tuple[Sequence[float], Sequence[float], np.ndarray]
    """Attention of decoding: knots of sequences and of cached tokens, and the seconds."""
    prompts: tuple[Sequence[float], Sequence[float], Sequence[float], np.ndarray]
    """Attention of prompts: knots of prompts, new and cached tokens, and seconds a new token."""
    plain: Host = field(default_factory=Host)
    """Around a step without prompts."""
    prompt: Host = field(default_factory=Host)
    """Around a step with prompts."""
    encoding: Curve = field(default_factory=lambda: Curve([0.0, 1.0], [0.0, 0.0]))
    """Passes of the encoder, by the prompts that begin in a step."""
    stream: float = 0.0
    """Seconds in which a sequence's token is streamed to its client; no step is shorter than those
    of its sequences."""

    def __post_init__(self) -> None:
        self._prompts = self.prompts[-1].tolist()
        self._steps: dict[int, Curve] = {}
        self._attentions: dict[int, Curve] = {}

    def decode(self, sequences: int) -> Curve:
        """A step of decoding sequences, by the mean of their cached tokens."""
        if sequences not in self._steps:
            attention = self._attention(sequences)
            seconds = [
                self._step(value, sequences, sequences, self.plain, 0.0)
                for value in attention.values
            ]
            self._steps[sequences] = Curve(attention.knots, seconds)
        return self._steps[sequences]

    def mixed(self, sequences: int, past: float, prompts: int, tokens: int, before: float) -> float:
        """Seconds of a step of `sequences` decoding sequences with `past` cached tokens each, and
        of `tokens` new tokens in all of `prompts` prompts after `before` cached ones each."""
        attention = self._prompt_attention(prompts, tokens / prompts, before) * tokens
        if sequences:
            attention += self._attention(sequences).at(past)
        work, rows = sequences + tokens, sequences + prompts
        return self._step(attention, work, rows, self.prompt, FABRIC_UNITS)

    def _step(self, attention: float, tokens: int, rows: int, host: Host, units: float) -> float:
        computing = self.layers.at(tokens) + self.head.at(rows) + attention
        crossing = self.crossing.at(tokens)
        if crossing:
            computing = float(together_seconds(Work(computing, 1.0), Work(crossing, units)))
        device = max(computing + host.gaps, host.launch) + host.step + host.sequence * rows
        return max(device + self.sends.at(tokens), self.stream * rows)

    def _attention(self, sequences: int) -> Curve:
        """Attention of decoding sequences, by the mean of their cached tokens."""
        if sequences not in self._attentions:
            counts, knots, seconds = self.decoding
            i, share = _place(counts, sequences)
            row = seconds[i] * (1.0 - share) + seconds[min(i + 1, len(counts) - 1)] * share
            self._attentions[sequences] = Curve(knots, row.tolist())
        return self._attentions[sequences]

    def _prompt_attention(self, prompts: float, tokens: float, before: float) -> float:
        """Seconds a new token."""
        first, second, third, _ = self.prompts
        i, a = _place(first, prompts)
        j, b = _place(second, tokens)
        k, c = _place(third, before)
        value = 0.0
        for row, x in zip(self._prompts[i : i + 2], (1.0 - a, a), strict=False):
            for line, y in zip(row[j : j + 2], (1.0 - b, b), strict=False):
                ends = line[k : k + 2]
                value += x * y * (ends[0] * (1.0 - c) + ends[-1] * c)
        return value


def _place(knots: Sequence[float], value: float) -> tuple[int, float]:
    """The knot at or below a value, and how far it is to the next one, 0 to 1."""
    if value >= knots[-1]:
        return len(knots) - 1, 0.0
    i = max(bisect_right(knots, value) - 1, 0)
    return i, max((value - knots[i]) / (knots[i + 1] - knots[i]), 0.0)


def tabulated(steps: Steps, longest: int, most: int) -> StepTable:
    """The table of a deployment with at most `most` sequences of at most `longest` tokens."""
    engine = steps.of.engine
    piece = min(engine.batching.tokens, longest) if engine.batching.chunked else longest
    tokens = _knots(max(engine.batching.tokens, piece) + most)
    counts, lengths = _knots(most), _powers(longest)
    turns = steps.turns(tokens)
    layers = steps.layers(tokens / turns).times(turns)
    overlapped = [steps.of.overlaps and line.joins_experts for line in layers.lines]
    crossing = layers.seconds[np.array(overlapped)].sum(axis=0)
    head = steps.head(counts)
    n, past = _grid(counts, lengths)
    decoding = steps.decoding(n / steps.turns(n), past).times(steps.turns(n))
    axes = _powers(min(most, 64)), _powers(piece), np.append(0.0, lengths)
    c, q, p = _grid(*axes)
    attention = steps.prompts(c, q, p)
    sends = steps.sends(tokens).total if steps.of.pipeline > 1 else 0.0 * tokens
    kernels = layers.launches + head.launches
    hosted = engine.host_seconds(np.array([0.0, 1.0]), shared=steps.of.tensor > 1)

    def around(launches: float, host: str) -> Host:
        launches *= float(turns.max())
        return Host(
            launches * hosts.load(host).forward_seconds, launches * steps.gap_seconds,
            float(hosted[0]), float(hosted[1] - hosted[0]),
        )  # fmt: skip

    return StepTable(
        Curve(tokens.tolist(), (layers.total - crossing).tolist()),
        Curve(tokens.tolist(), crossing.tolist()),
        Curve(tokens.tolist(), sends.tolist()),
        Curve(counts.tolist(), head.total.tolist()),
        (counts.tolist(), lengths.tolist(), decoding.total.reshape(len(counts), -1)),
        (*(axis.tolist() for axis in axes), (attention.total / (c * q)).reshape([*map(len, axes)])),
        around(kernels + decoding.launches, steps.of.setting(1).stack.host),
        around(kernels + attention.launches, engine.prefill),
        Curve([0.0, *axes[0].tolist()], [0.0, *steps.encoding(axes[0]).total.tolist()]),
        engine.stream_seconds * steps.of.together,
    )


def _knots(most: float) -> np.ndarray:
    """The knots of `times` up to the first that is no less than `most`."""
    return KNOTS[: np.searchsorted(KNOTS, most) + 1].astype(float)


def _powers(most: float) -> np.ndarray:
    """1, 2, 4 ... up to the first power of two that is no less than `most`."""
    return 2.0 ** np.arange(np.ceil(np.log2(max(most, 2))) + 1)


def _grid(*axes: np.ndarray) -> list[np.ndarray]:
    """Each axis repeated over the others, flat."""
    return [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]
