"""Predictions of collectives: of one as plain numbers, of many as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from perfmodel.collectives.problem import Collective
from perfmodel.hardware import System

DeviceKnown = Literal["fitted", "sibling", "unseen"]
LibraryKnown = Literal["fitted", "assumed"]
LinkKnown = Literal["fitted", "unseen"]
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

    def as_dict(self) -> dict[str, str]:
        """The JSON form."""
        return {"device": self.device, "library": self.library, "link": self.link}


@dataclass(frozen=True)
class CollectivePrediction:
    """One collective on one system. Times in seconds; `terms` add up to the time."""

    system: str
    """Slug of the system."""
    device: str
    """Slug of its device."""
    library: str
    """Library of the collective."""
    op: str
    """Kind of collective."""
    problem: Mapping[str, Any]
    """Bytes, ranks, ranks per node, type."""
    algorithm: str
    """ring, tree, nvls, pairwise, one-shot, two-shot, multimem; none for one rank."""
    protocol: str
    """LL, LL128, Simple, pull or push; none for one rank."""
    seconds: float
    """The time."""
    low_seconds: float
    """Lower end of the 80 % range."""
    high_seconds: float
    """Upper end of the 80 % range."""
    limiter: str
    """The largest term."""
    terms: Mapping[str, float]
    """Seconds by resource: start, hops, links by name, hbm, host."""
    sent_bytes: float
    """Bytes that each rank must send by the counting rule; an algorithm may send more."""
    bus_bytes_per_s: float
    """Bus bandwidth by the definition of nccl-tests."""
    known: CollectiveKnown
    """How much is known."""
    assumptions: tuple[str, ...]
    """Assumptions where system and caller leave something open."""

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
            "known": self.known.as_dict(),
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class CollectivePredictions:
    """Predictions of n collectives of one kind on one system, as arrays of length n."""

    system: System
    """The system."""
    library: str
    """Library of the collectives."""
    problem: Collective
    """The collectives; every value is an array."""
    seconds: np.ndarray
    """Times."""
    low_seconds: np.ndarray
    """Lower ends of the 80 % ranges."""
    high_seconds: np.ndarray
    """Upper ends of the 80 % ranges."""
    algorithm: np.ndarray
    """Algorithms."""
    protocol: np.ndarray
    """Protocols."""
    limiter: np.ndarray
    """The largest terms."""
    terms: Mapping[str, np.ndarray]
    """Seconds by resource; they add up to the times."""
    sent_bytes: np.ndarray
    """Bytes that each rank must send."""
    bus_bytes_per_s: np.ndarray
    """Bus bandwidths."""
    known: tuple[CollectiveKnown, ...]
    """How much is known of each."""
    assumptions: tuple[str, ...]
    """Assumptions, of all of them."""

    def __len__(self) -> int:
        return len(self.seconds)

    def one(self, i: int) -> CollectivePrediction:
        """The i-th prediction."""
        problem = self.problem
        sizes: dict[str, Any] = {
            "bytes": np.asarray(problem.bytes)[i].item(),
            "ranks": np.asarray(problem.ranks)[i].item(),
            "dtype": problem.dtype,
        }
        if problem.ranks_per_node is not None:
            sizes["ranks_per_node"] = np.asarray(problem.ranks_per_node)[i].item()
        return CollectivePrediction(
            system=self.system.slug,
            device=self.system.device,
            library=self.library,
            op=problem.op,
            problem=sizes,
            algorithm=str(self.algorithm[i]),
            protocol=str(self.protocol[i]),
            seconds=float(self.seconds[i]),
            low_seconds=float(self.low_seconds[i]),
            high_seconds=float(self.high_seconds[i]),
            limiter=str(self.limiter[i]),
            terms={name: float(v[i]) for name, v in self.terms.items() if v[i]},
            sent_bytes=float(self.sent_bytes[i]),
            bus_bytes_per_s=float(self.bus_bytes_per_s[i]),
            known=self.known[i],
            assumptions=self.assumptions,
        )
