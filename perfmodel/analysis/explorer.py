"""Grids of sizes on all devices, for a page with sliders: operators, and networks as served.

    {"operators": [{"title", "sizes", "columns", "useful", "times": {device: {"us", ...}},
                    "lacking": {device: why}}], ...}

Arrays are over the grid, first size slowest, as text: numbers of three digits between commas, none
where there is no answer; `limiter` has one letter a case. A device without what a question needs
has no times for it, and `lacking` says why.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device, specs
from perfmodel.networks import library
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.network import Network
from perfmodel.predict import predict_arrays
from perfmodel.serving import cachememory
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps

KINDS = ("gpu",)
"""Kinds of devices for which predictions were compared with runs."""

TYPES = ("bf16", "fp16")
"""Types of 16 bits in order of preference."""


@dataclass(frozen=True)
class Answer:
    """What one device answers over the grid. Arrays have NaN where it has no answer."""

    seconds: np.ndarray
    """The time by which devices are ranked."""
    low_seconds: np.ndarray
    """Lower ends of the 80 % ranges."""
    high_seconds: np.ndarray
    """Upper ends of the 80 % ranges."""
    limiter: Sequence[str]
    """What takes most of the time."""
    useful: np.ndarray
    """Operations that count: of the call, or of all devices' prompts."""
    more: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Further arrays by the key of the page's data."""


@dataclass(frozen=True)
class Operator:
    """One operator, with the sizes that can be chosen and the fixed parameters."""

    title: str
    """Title of the question."""
    sizes: Mapping[str, Sequence[int]]
    """Values of each size that can be chosen."""
    make: Callable[..., Problem]
    """Makes the problem from arrays of the sizes, in the order of `sizes`."""
    columns: Sequence[str] = ("time", "range", "rate", "limiter")
    """What the page shows."""

    def answer(self, device: Device) -> Answer:
        """Times of one call."""
        problem = self.make(*_grid(self.sizes), dtype=_wide_type(device))
        calls = predict_arrays(problem, device)
        names = [calls.levels.get(name, name) for name in calls.limiter.tolist()]
        ends = calls.low_seconds, calls.high_seconds
        return Answer(calls.seconds, *ends, names, calls.useful_flops)


_LETTERS = string.ascii_letters
_OUTPUT = 256
"""Tokens of each answer: over these the time a token is averaged."""


@dataclass(frozen=True)
class Service:
    """A network that serves a batch of equal requests, on one device or several."""

    network: Network
    """The network."""
    columns: Sequence[str] = ("token", "range", "tokens", "first", "mfu", "limiter")
    """What the page shows."""

    @property
    def title(self) -> str:
        """Title of the question."""
        return f"{self.network.name}: batches of equal requests, {_OUTPUT} tokens each"

    @property
    def sizes(self) -> Mapping[str, Sequence[int | str]]:
        """Values of each size that can be chosen."""
        formats = [self.network.weights] if self.network.weights else ["bf16", "fp8", "int4-g128"]
        return {
            "tokens of a prompt": (1024, 8192, 32768),
            "batch": (1, 16, 128),
            "devices": (1, 2, 4, 8),
            "weights": formats,
        }

    def answer(self, device: Device) -> Answer:
        """Times of decoding a token, by an engine without a host's time (`ideal`)."""
        isl, batch, count, weights = _grid(self.sizes)
        lacking = np.full(isl.size, np.nan)
        rows = {key: lacking.copy() for key in ("tpot", "low", "high", "first", "mfu")}
        limiter, flops = [""] * isl.size, np.zeros(isl.size)
        reasons = []
        formats = {"bf16": _wide_type(device)}
        for number in self.sizes["devices"]:
            for name in self.sizes["weights"]:
                places = np.flatnonzero((count == number) & (weights == name))
                try:
                    stored = formats.get(str(name), str(name))
                    deployment = Deployment(
                        self.network, device, weights=stored, tensor=int(number)
                    )
                    flops[places] = self._flops(isl[places], batch[places])
                    places = places[_fits(deployment, isl[places], batch[places])]
                    loads = self._served(deployment, isl[places], batch[places])
                    peak = device.matrix_flops(matmul_format(deployment.product).compute)
                except PerfmodelError as error:
                    reasons.append(str(error))
                    continue
                for i, load in zip(places.tolist(), loads, strict=True):
                    ends = (value * 1e-3 for value in load.metric("tpot_ms"))
                    rows["tpot"][i], rows["low"][i], rows["high"][i] = ends
                    rows["first"][i], limiter[i] = load.ttft_seconds, load.limiter
                    rows["mfu"][i] = 100.0 * flops[i] / (load.ttft_seconds * peak * int(number))
        if np.isnan(rows["tpot"]).all():
            raise ProblemError(reasons[0] if reasons else "too little memory")
        more = {"first": rows["first"], "mfu": np.round(rows["mfu"])}
        return Answer(rows["tpot"], rows["low"], rows["high"], limiter, flops, more)

    def _flops(self, isl: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Operations of all prompts, forward only: a third of those of training."""
        per_token = [flops_per_token(self.network, int(tokens)) / 3.0 for tokens in isl]
        return np.asarray(np.array(per_token) * isl * batch)

    def _served(self, deployment: Deployment, isl: np.ndarray, batch: np.ndarray) -> Sequence[Any]:
        if not isl.size:
            return ()
        return serve(Steps(deployment), "static batch", batch, isl, np.full_like(isl, _OUTPUT))


def _fits(deployment: Deployment, isl: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Whether each batch fits in the memory."""
    room = cachememory.memory(deployment)
    limits = [cachememory.fitting_batch(deployment, int(n) + _OUTPUT, has=room) for n in isl]
    return np.asarray(batch) <= np.array(limits)


_POWERS = tuple(2**i for i in range(14))
_LENGTHS = tuple(2**i for i in range(9, 17))

OPERATORS = (
    Operator(
        "gemm, 16 bits: C[m, n] = A[m, k] B[k, n], n = k",
        {"m": _POWERS, "n = k": (1024, 2048, 4096, 8192, 16384)},
        lambda m, n, dtype: Matmul(m, n, n, dtype=dtype),
    ),
    Operator(
        "attention, 16 bits: prefill, causal, 32 heads of 128, 8 of keys",
        {"sequence": _LENGTHS, "batch": (1, 2, 4, 8, 16)},
        lambda seq, batch, dtype: Attention(batch, 32, 8, seq, seq, 128, causal=True, dtype=dtype),
    ),
    Operator(
        "attention, 16 bits: decode of one token, 32 heads of 128, 8 of keys",
        {"cached keys": _LENGTHS, "batch": (1, 4, 16, 64, 256)},
        lambda keys, batch, dtype: Attention(batch, 32, 8, 1, keys, 128, dtype=dtype),
    ),
)


def explored(
    devices: Sequence[Device] | None = None, networks: Sequence[str] = ()
) -> dict[str, Any]:
    """The grid of `devices`, by default of all shipped GPUs, for the operators and for networks."""
    gpus = list(devices if devices is not None else (d for d in specs() if d.kind in KINDS))
    questions: list[Operator | Service] = [
        *(Service(library.load(name)) for name in networks),
        *OPERATORS,
    ]
    limiters: dict[str, str] = {}
    note = (
        "Times are the model's for the usual library of each device, with bf16, or fp16 where a "
        "matrix unit lacks that; three digits. The range is the median of the grid's 80 % ranges, "
        "about the time. Tick devices to draw their curves."
    )
    if networks:
        note += (
            " Networks: devices split each layer (tensor parallelism); kernels and exchanges, "
            "no engine's host time; MFU is that of the prompts, against the peak of the type that "
            "multiplies."
        )
    return {
        "devices": [device.slug for device in gpus],
        "operators": [_answers(question, gpus, limiters) for question in questions],
        "limiters": {letter: name for name, letter in limiters.items()},
        "note": note,
    }


def _wide_type(device: Device) -> str:
    """The type of 16 bits: the first of `TYPES` that the matrix unit has. Raises `ProblemError` if
    it has none."""
    for name in TYPES:
        if name in device.matrix_types:
            return name
    raise ProblemError(f"without a matrix rate of {' or '.join(TYPES)} in the spec")


def _grid(sizes: Mapping[str, Sequence[Any]]) -> list[np.ndarray]:
    """An array of each size over the grid."""
    return [values.ravel() for values in np.meshgrid(*sizes.values(), indexing="ij")]


def _answers(
    question: Operator | Service, devices: Sequence[Device], limiters: dict[str, str]
) -> dict[str, Any]:
    times: dict[str, Any] = {}
    failures: dict[str, str] = {}
    flops = np.zeros(1)
    for i, device in enumerate(devices):
        try:
            answer = question.answer(device)
        except PerfmodelError as error:
            failures[str(i)] = str(error)
            continue
        flops = np.maximum(flops, answer.useful)
        letters = [limiters.setdefault(n, _LETTERS[len(limiters)]) for n in answer.limiter]
        ends = (answer.low_seconds / answer.seconds, answer.high_seconds / answer.seconds)
        times[str(i)] = {
            "us": _numbers(answer.seconds * 1e6),
            "limiter": "".join(letters),
            "range": [round(float(np.nanmedian(end)), 3) for end in ends],
            **{key: _numbers(values) for key, values in answer.more.items()},
        }
    return {
        "title": question.title,
        "sizes": [{"name": name, "values": list(each)} for name, each in question.sizes.items()],
        "columns": list(question.columns),
        "useful": _numbers(flops),
        "times": times,
        "lacking": failures,
    }


def _numbers(values: Any) -> str:
    """Numbers of three digits between commas, each in its shortest form; nothing if not finite."""
    texts = (f"{value:.3g}" if np.isfinite(value) else "" for value in values)
    return ",".join(re.sub(r"(?:\.0+)?e\+?(-?)0*", r"e\1", text) for text in texts)
