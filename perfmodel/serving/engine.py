"""Facts about an inference engine (`engines/*.yaml`): kernels, host time, exchanges, batching.

Each engine has a file; each fact has a source. Numbers that were fitted to published runs are
listed in `fitted`, at most `MOST_FITTED` an engine, and none of them is for one device. A user's
own files are found under engines/ in each folder of PERFMODEL_PATH. Packages bring folders under
the entry point `perfmodel.engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from perfmodel import yamltable
from perfmodel.catalogue import Catalogue, of_kind
from perfmodel.collectives.collectivetime import libraries
from perfmodel.entries import Misfit, made
from perfmodel.errors import ProblemError, SpecError, UnknownName
from perfmodel.networks import hosts, stack

MOST_FITTED = 3
"""Limit on the constants of an engine that are fitted to measured runs."""
GROUP = "engines"
"""The entry point, after `perfmodel.`, and the name of the folder of a user's files."""
FOLDER = Path(__file__).with_name(GROUP)
"""The shipped files."""
_MICRO = 1e-6


@dataclass(frozen=True)
class Host:
    """Host time of a step, during which the device waits."""

    step_us: Annotated[float, "us"] = 0.0
    """For any step: scheduling, preparing inputs, sampling, reading tokens back."""
    sequence_us: Annotated[float, "us"] = 0.0
    """Added for each sequence of the step."""
    sharing_us: Annotated[float, "us"] = 0.0
    """Added in a step on several devices, whose processes synchronise."""
    request_us: Annotated[float, "us"] = 0.0
    """Once a request of a client, around its first step: connection, tokenisation, first reply."""
    admit_us: Annotated[float, "us"] = 0.0
    """Once a request, of the process that admits them, one at a time."""
    client_us: Annotated[float, "us"] = 0.0
    """For each token, of the process that streams them to clients."""
    source: str = ""
    """Source."""


@dataclass(frozen=True)
class Kernels:
    """Names of its kernels (`timing/libraries/names.yaml`); empty: a generic good library's."""

    prefill: str = ""
    """Attention of prompts."""
    decode: str = ""
    """Attention of decoding, one token a sequence."""
    weight_only: str = ""
    """Products whose weights are dequantised first (weight-only quantisation)."""
    reread: float = 0.0
    """Share of the cache that decoding reads again for each further query head of a group, if its
    kernel does not support grouped heads."""
    source: str = ""
    """Source of the names."""


@dataclass(frozen=True)
class Cache:
    """The KV cache."""

    block: int = 1
    """Tokens of a block; a sequence occupies whole blocks."""
    share: float = 0.9
    """Share of memory that the engine uses."""
    of: Literal["memory", "free"] = "memory"
    """What `share` is of: all memory, weights included, or memory left by weights and
    activations."""
    narrow: bool = False
    """Whether the cache is fp8 by default where the weights are fp8 or nvfp4."""
    source: str = ""
    """Source of the numbers."""

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ProblemError("cache: block is 0; a block has 1 token or more")
        if not 0.0 < self.share <= 1.0:
            raise ProblemError(f"cache: share is {self.share}; it is above 0 and at most 1")


@dataclass(frozen=True)
class Batching:
    """Limits on the tokens of a step, and how requests join it."""

    tokens: int = 8192
    """Maximum tokens of a step."""
    sequences: int = 256
    """Maximum sequences of a step."""
    continuous: bool = True
    """Whether requests join and leave between steps; otherwise a batch runs from start to end."""
    mixed: bool = False
    """Whether prefill and decode share a step; otherwise prefill runs alone, and first."""
    chunked: bool = False
    """Whether a prompt may be split over steps (chunked prefill)."""
    piped: bool = True
    """Whether pipeline stages work at the same time, each on a group of the sequences."""
    poll: int = 1
    """Steps from one look at new requests to the next."""
    ahead: int = 0
    """Steps that are scheduled before the running one ends (overlapped scheduling)."""
    reserves: bool = False
    """Whether a request is admitted only with room for its whole answer, so none is preempted."""
    gather: int = 1
    """Most steps that prompts wait until every copy that shares experts has one to run."""
    overlap: Literal["never", "option", "always"] = "never"
    """Whether a step runs as two halves of its tokens in turn, one of which computes while rows of
    the other are on their way to experts (two-batch overlap); as an option it is off by default."""
    source: str = ""
    """Source of the numbers."""


@dataclass(frozen=True)
class Launch:
    """The command that starts a server; an option stands in it where it is needed."""

    command: str = ""
    """The command, with {network}; empty: none is known."""
    tensor: str = ""
    """Tensor parallelism, with {}."""
    pipeline: str = ""
    """Pipeline stages, with {}."""
    data: str = ""
    """Copies that share experts, with {}."""
    expert: str = ""
    """Expert parallelism, with or without {}."""
    sequences: str = ""
    """Sequences of a step, with {}."""
    weights: str = ""
    """Weights that are narrowed to fp8 when they are loaded."""
    cache: str = ""
    """An fp8 cache."""
    source: str = ""
    """Source of the options."""

    def line(self, network: str, sizes: Mapping[str, int], *, weights: str, cache: str) -> str:
        """The command of a copy; `sizes` by the names of the fields, those of 1 are left out."""
        words = [self.command.format(network=network)]
        words += [
            getattr(self, name).format(size)
            for name, size in sizes.items()
            if size > 1 and getattr(self, name)
        ]
        words += [self.weights] if weights == "fp8" else []
        words += [self.cache] if cache == "fp8" else []
        return " ".join(filter(None, words)) if self.command else ""


@dataclass(frozen=True)
class Engine:
    """An inference engine."""

    name: str
    """Name on the command line."""
    about: str
    """One-line description."""
    version: str
    """Releases that the facts are for."""
    stack: str
    """Software stack, which decides what operations share a kernel (`networks/stacks.yaml`)."""
    source: str
    """Source of its facts, except those with a source of their own."""
    aliases: tuple[str, ...] = ()
    """Other names."""
    until: str = ""
    """First release that another entry (`after`) describes; empty: none."""
    after: str = ""
    """The entry for later releases."""
    residual_norm: bool = True
    """Whether a residual sum and the following norm share a kernel."""
    cache_write: bool = True
    """Whether rotary positions and the write to the cache share a kernel."""
    prefill: str = "graph"
    """Launch times of a prefill's kernels (`networks/hosts.yaml`)."""
    all_reduce: str = "nccl"
    """Library of the all-reduce (`collectives`)."""
    host: Host = field(default_factory=Host)
    """Host time."""
    kernels: Kernels = field(default_factory=Kernels)
    """Names of kernels."""
    cache: Cache = field(default_factory=Cache)
    """The KV cache."""
    batching: Batching = field(default_factory=Batching)
    """Batching."""
    launch: Launch = field(default_factory=Launch)
    """How a server is started."""
    fitted: tuple[str, ...] = ()
    """Numbers that were fitted to published runs: host.step_us, kernels.reread ..."""

    def __post_init__(self) -> None:
        if len(self.fitted) > MOST_FITTED:
            raise ProblemError(f"fitted: {len(self.fitted)} constants; {MOST_FITTED} at most")
        for name in self.fitted:
            self.constant(name)
        stack.load(self.stack)
        hosts.load(self.prefill)
        if self.all_reduce not in libraries():
            raise UnknownName("library of collectives", self.all_reduce, libraries())

    def host_seconds(self, sequences: Any, *, shared: bool) -> Any:
        """Seconds that the device waits for the host in a step of `sequences`; `shared` by several
        devices."""
        host = self.host
        sharing = host.sharing_us if shared else 0.0
        return (host.step_us + sharing + host.sequence_us * sequences) * _MICRO

    @property
    def admit_seconds(self) -> float:
        """Seconds of the process that admits requests, one at a time."""
        return self.host.admit_us * _MICRO

    @property
    def stream_seconds(self) -> float:
        """Seconds of the process that streams tokens, for each token."""
        return self.host.client_us * _MICRO

    def served_seconds(self, tokens: Any) -> Any:
        """Seconds from one request with an answer of `tokens` to the next, at most as fast as the
        slower of the two processes."""
        return np.maximum(self.admit_seconds, self.stream_seconds * tokens)

    def constant(self, name: str) -> float:
        """A number by its dotted name. Raises `UnknownName`."""
        part, _, key = name.partition(".")
        value = getattr(getattr(self, part, None), key, None)
        if not isinstance(value, int | float):
            raise UnknownName("number of an engine", name, [f"host.{x.name}" for x in fields(Host)])
        return float(value)

    def having(self, values: Mapping[str, float]) -> Engine:
        """A copy with other numbers, by dotted names."""
        engine = self
        for name, value in values.items():
            part, _, key = name.partition(".")
            engine = replace(engine, **{part: replace(getattr(engine, part), **{key: value})})
        return engine

    def overlapping(self) -> Engine:
        """The engine with exchanges with experts beside computing. Raises `ProblemError` where it
        has no such option."""
        if self.batching.overlap == "never":
            names = [e.name for e in engines().values() if e.batching.overlap != "never"]
            raise ProblemError(
                f"{self.name} runs no two halves of a step in turn; drop --overlap, or take "
                f"{', '.join(names)}"
            )
        return replace(self, batching=replace(self.batching, overlap="always"))

    @property
    def request_seconds(self) -> float:
        """Host seconds once a request."""
        return self.host.request_us * _MICRO


def released(name: str, version: str) -> Engine:
    """The engine of a release: versions before `until` use this entry, later ones `after`."""
    engine = load(name)
    while version:
        older = next((e for e in engines().values() if e.after == engine.name), None)
        if older is None or _order(version) >= _order(older.until):
            break
        engine = older
    return engine


def read(path: Path) -> Engine:
    """The engine of a file. Raises `SpecError` with the key and its correction."""
    return yamltable.kept(path, "engine", lambda: _decoded(path))


def _decoded(path: Path) -> Engine:
    try:
        document = dict(yamltable.parse(path.read_text(encoding="utf-8")))
        name = document.pop("engine")
        engine: Engine = made(Engine, document, {"name": name})
    except KeyError:
        raise SpecError(f"{path}: engine: the key is missing; add it") from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: {error}") from None
    except Misfit as misfit:
        raise SpecError(f"{path}: {misfit}") from None
    return engine


ENGINES = Catalogue("engine", read, *of_kind(GROUP, FOLDER), ("engine", "aliases"))
"""The engines: the user's own, the shipped ones, those of packages (`perfmodel.engines`)."""
load, names = ENGINES.load, ENGINES.names


def engines() -> Mapping[str, Engine]:
    """The engines whose files can be read, by name."""
    return {engine.name: engine for engine in ENGINES.every()}


def _order(version: str) -> tuple[int, ...]:
    """A version's leading numbers: 0.5.1.post1 and an image's tag, sglang:v0.5.1-cu130, give
    (0, 5, 1)."""
    numbers = []
    for part in version.rpartition(":")[2].lstrip("vV").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
