"""Predictions of collectives: of one as plain numbers, of many as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from perfmodel.collectives.problem import Collective
from perfmodel.hardware import System

DeviceKnown = Literal["fitted", "sibling", "unseen"]
LibraryKnown = Literal["fitted", "assumed"]
LinkKnown = Literal["fitted", "unseen"]
Number = TypeVar("Number")
Name = TypeVar("Name")
_MICRO, _GIGA = 1e6, 1e9


@dataclass(frozen=True)
class CollectiveKnown:
    """How much is known of the device, library and link of a prediction; its range depends on
    it."""

    device: DeviceKnown
    """`fitted`: the fit includes collectives on this device; `sibling`: on another device of its
    architecture."""
    library: LibraryKnown
    """`fitted`: the fit includes collectives of this library; `assumed`: another library stands
    in."""
    link: LinkKnown
    """`fitted`: a link between devices in one node; `unseen`: PCIe and networks, without measured
    runs."""


@dataclass(frozen=True, kw_only=True)
class Numbers(Generic[Number, Name]):
    """What is predicted of collectives: plain numbers of one, arrays of many. Times in seconds;
    `terms` add up to the time."""

    library: str
    """Library of the collective."""
    algorithm: Name
    """ring, tree, nvls, pairwise, one-shot, two-shot, multimem; none for one rank."""
    protocol: Name
    """LL, LL128, Simple, pull or push; none for one rank."""
    seconds: Number
    """The time."""
    low_seconds: Number
    """Lower end of the 80 % range."""
    high_seconds: Number
    """Upper end of the 80 % range."""
    limiter: Name
    """The largest term."""
    terms: Mapping[str, Number]
    """Seconds by resource: start, hops, links by name, hbm, host."""
    sent_bytes: Number
    """Bytes that each rank must send by the counting rule; an algorithm may send more."""
    bus_bytes_per_s: Number
    """Bus bandwidth by the definition of nccl-tests."""
    assumptions: tuple[str, ...]
    """Assumptions where system and caller leave something open."""


@dataclass(frozen=True, kw_only=True)
class CollectivePrediction(Numbers[float, str]):
    """One collective on one system."""

    system: str
    """Slug of the system."""
    device: str
    """Slug of its device."""
    op: str
    """Kind of collective."""
    problem: Mapping[str, Any]
    """Bytes, ranks, ranks per node, type."""
    known: CollectiveKnown
    """How much is known."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: microseconds and bytes, the unit in every name that needs one."""
        return {
            "system": self.system,
            "device": self.device,
            "library": self.library,
            "collective": self.op,
            "problem": dict(self.problem),
            "algorithm": self.algorithm,
            "protocol": self.protocol,
            "time_us": self.seconds * _MICRO,
            "low_us": self.low_seconds * _MICRO,
            "high_us": self.high_seconds * _MICRO,
            "limiter": self.limiter,
            "terms_us": {name: value * _MICRO for name, value in self.terms.items()},
            "sent_bytes": self.sent_bytes,
            "bus_gb_per_s": self.bus_bytes_per_s / _GIGA,
            "known": asdict(self.known),
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True, kw_only=True)
class CollectivePredictions(Numbers[np.ndarray, np.ndarray]):
    """Predictions of n collectives of one kind on one system, as arrays of length n."""

    system: System
    """The system."""
    problem: Collective
    """The collectives; every value is an array."""
    known: tuple[CollectiveKnown, ...]
    """How much is known of each."""

    def __len__(self) -> int:
        return len(self.seconds)

    def one(self, i: int) -> CollectivePrediction:
        """The i-th prediction."""
        problem = self.problem
        names = ("bytes", "ranks", "dtype", "ranks_per_node")
        values = {name: getattr(problem, name) for name in names}
        sizes = {
            name: value if name == "dtype" else np.asarray(value)[i].item()
            for name, value in values.items()
            if value is not None
        }
        numbers: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(Numbers)}
        for name, array in numbers.items():
            if isinstance(array, np.ndarray):
                numbers[name] = array[i].item() if array.dtype.kind == "f" else array[i]
        numbers["terms"] = {name: float(v[i]) for name, v in self.terms.items() if v[i]}
        return CollectivePrediction(
            **numbers,
            system=self.system.slug,
            device=self.system.device,
            op=problem.op,
            problem=sizes,
            known=self.known[i],
        )
