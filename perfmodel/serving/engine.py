"""What an engine does with a network (`engines/*.yaml`): kernels, host time, exchanges, batching.

A file an engine; each fact with a source. Numbers that were read off published runs stand in
`fitted`, at most `MOST_FITTED` an engine, and none of them belongs to a device. Files of the user's
own lie in engines/ of a folder in PERFMODEL_PATH; packages bring folders under the entry point
`perfmodel.engines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from perfmodel import plugins, yamltable
from perfmodel.collectives.predict import libraries
from perfmodel.entries import Misfit, made
from perfmodel.errors import ProblemError, SpecError, UnknownName
from perfmodel.hardware.catalogue import normalise
from perfmodel.networks import hosts, stack

MOST_FITTED = 3
"""Constants of an engine that may come from measured runs."""
GROUP = "engines"
"""The entry point, after `perfmodel.`, and the folder of one's own files."""
FOLDER = Path(__file__).with_name(GROUP)
"""The shipped files."""
_MICRO = 1e-6


@dataclass(frozen=True)
class Host:
    """What the host does once a step, while the device waits."""

    step_us: Annotated[float, "us"] = 0.0
    """Of any step: requests scheduled, inputs prepared, tokens sampled and read back."""
    sequence_us: Annotated[float, "us"] = 0.0
    """More for each sequence of the step."""
    sharing_us: Annotated[float, "us"] = 0.0
    """More in a step of several devices: processes that tell each other what to run."""
    request_us: Annotated[float, "us"] = 0.0
    """Once a request, before its first step: tokens made of text, a connection."""
    client_us: Annotated[float, "us"] = 0.0
    """For each client of a step that tokens are streamed to, while the device goes on."""
    source: str = ""
    """Where they come from."""


@dataclass(frozen=True)
class Kernels:
    """Kernels that it calls, by name (`timing/libraries/names.yaml`); empty: a good library's."""

    prefill: str = ""
    """Attention of prompts."""
    decode: str = ""
    """Attention of one token a sequence."""
    weight_only: str = ""
    """Products with weights that are widened first."""
    reread: float = 0.0
    """Share of the cache that decoding reads again for each further query head of a group, where
    its kernel has no form for groups."""
    source: str = ""
    """Where the names come from."""


@dataclass(frozen=True)
class Cache:
    """How keys and values are kept."""

    block: int = 1
    """Tokens of a block: a sequence takes whole ones."""
    share: float = 0.9
    """Share of memory that the engine takes."""
    of: Literal["memory", "free"] = "memory"
    """Of all memory, weights included, or of what weights and activations leave."""
    narrow: bool = False
    """Whether the cache is fp8 where the weights are fp8 or nvfp4 and nothing else is said."""
    source: str = ""
    """Where the numbers come from."""

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ProblemError("cache: block is 0; a block has 1 token or more")
        if not 0.0 < self.share <= 1.0:
            raise ProblemError(f"cache: share is {self.share}; it is above 0 and at most 1")


@dataclass(frozen=True)
class Batching:
    """Which tokens a step may hold."""

    tokens: int = 8192
    """Most tokens of a step."""
    sequences: int = 256
    """Most sequences of a step."""
    continuous: bool = True
    """Whether requests enter and leave between steps; else a batch runs from start to end."""
    mixed: bool = False
    """Whether prompts run beside tokens of other requests; else on their own, before those."""
    chunked: bool = False
    """Whether a prompt may be split over steps."""
    held: int = 0
    """Places that requests which have ended still hold, of as many as there are clients."""
    source: str = ""
    """Where the numbers come from."""


@dataclass(frozen=True)
class Engine:
    """An inference engine."""

    name: str
    """As the command line calls it."""
    about: str
    """One line for a person."""
    version: str
    """Releases that the facts hold for."""
    stack: str
    """Which operations share a kernel (`networks/stacks.yaml`)."""
    source: str
    """Where its facts come from, those apart that say so themselves."""
    aliases: tuple[str, ...] = ()
    """Further names."""
    until: str = ""
    """First release that is another engine's (`after`); empty: the latest are its own."""
    after: str = ""
    """The engine of later releases."""
    residual_norm: bool = True
    """Whether a residual sum and the norm that follows are one kernel."""
    cache_write: bool = True
    """Whether rotary positions and the cache's write are one kernel; else the write is its own."""
    prefill: str = "graph"
    """How the kernels of a prompt are launched (`networks/hosts.yaml`)."""
    all_reduce: str = "nccl"
    """Whose all-reduce devices run (`collectives`)."""
    host: Host = field(default_factory=Host)
    """The host's work."""
    kernels: Kernels = field(default_factory=Kernels)
    """Names of kernels."""
    cache: Cache = field(default_factory=Cache)
    """Keys and values."""
    batching: Batching = field(default_factory=Batching)
    """Steps."""
    fitted: tuple[str, ...] = ()
    """Numbers that were read off published runs: host.step_us, kernels.reread ..."""

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
        """What the device waits for in a step of so many sequences, `shared` by several devices."""
        host = self.host
        more = host.sharing_us if shared else 0.0
        return (host.step_us + more + host.sequence_us * sequences) * _MICRO

    def client_seconds(self, clients: Any) -> Any:
        """The least that a step takes whose tokens are streamed to so many clients."""
        return self.host.client_us * clients * _MICRO

    def constant(self, name: str) -> float:
        """A number by its dotted name; raises `UnknownName`."""
        part, _, key = name.partition(".")
        value = getattr(getattr(self, part, None), key, None)
        if not isinstance(value, int | float):
            raise UnknownName("number of an engine", name, [f"host.{x.name}" for x in fields(Host)])
        return float(value)

    def having(self, values: Mapping[str, float]) -> Engine:
        """The same with other numbers, by dotted names."""
        found = self
        for name, value in values.items():
            part, _, key = name.partition(".")
            found = replace(found, **{part: replace(getattr(found, part), **{key: value})})
        return found

    @property
    def request_seconds(self) -> float:
        """The host's work once a request."""
        return self.host.request_us * _MICRO


def load(name: str) -> Engine:
    """The engine of this name or alias: the user's own, else the shipped one, else a package's.

    Raises `UnknownName` with the nearest ones.
    """
    wanted = normalise(name)
    for one in every():
        if wanted in _spellings(one):
            return one
    raise UnknownName("engine", name, names())


def names() -> list[str]:
    """Every engine that `load` knows, aliases apart."""
    return list(dict.fromkeys(one.name for one in every()))


def every() -> Iterator[Engine]:
    """Every engine in the order in which `load` looks; of two with one name the first is meant."""
    yield from _others(tuple(plugins.files(plugins.folders(GROUP))))
    yield from engines().values()
    yield from _others(tuple(plugins.files(plugins.packages(GROUP))))


def released(name: str, version: str) -> Engine:
    """The engine that a release of it is: of a version before `until` the older one."""
    found = load(name)
    while version:
        older = next((one for one in engines().values() if one.after == found.name), None)
        if older is None or _order(version) >= _order(older.until):
            break
        found = older
    return found


@lru_cache(maxsize=1)
def engines() -> Mapping[str, Engine]:
    """The engines that come with the package, by name."""
    return {one.name: one for one in map(read, plugins.files([FOLDER]))}


@lru_cache(maxsize=8)
def _others(paths: tuple[Path, ...]) -> Sequence[Engine]:
    """The engines of files that are not ours; what is broken is left out with a warning."""
    return tuple(plugins.readable(paths, read))


def read(path: Path) -> Engine:
    """The engine of a file; raises `SpecError` with the key and what to write."""
    try:
        document = dict(yamltable.read(path))
        name = document.pop("engine")
        found: Engine = made(Engine, document, {"name": name})
    except KeyError:
        raise SpecError(f"{path}: engine: the key is missing; add it") from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: {error}") from None
    except Misfit as misfit:
        raise SpecError(f"{path}: {misfit}") from None
    return found


def _spellings(one: Engine) -> Iterator[str]:
    return (normalise(name) for name in (one.name, *one.aliases))


def _order(version: str) -> tuple[int, ...]:
    """A version's leading numbers: 0.5.1.post1 is (0, 5, 1)."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)
