"""What a prediction of collectives says: of one as plain numbers, of many as arrays."""

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
    """How much a prediction knows: its range goes by it."""

    device: DeviceKnown
    """`fitted`: collectives on it are in the fit; `sibling`: those on another device of its
    architecture are."""
    library: LibraryKnown
    """`fitted`: collectives of it are in the fit; `assumed`: another library is taken for it."""
    link: LinkKnown
    """`fitted`: a link between devices within one node; `unseen`: PCIe and networks, of which no
    run was compared."""

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
    """Whose collective it is."""
    op: str
    """What is exchanged."""
    problem: Mapping[str, Any]
    """Bytes, ranks, ranks per node, type."""
    algorithm: str
    """ring, tree, nvls, pairwise, one-shot, two-shot ...; none for one rank."""
    protocol: str
    """LL, LL128, Simple or direct; none for one rank."""
    seconds: float
    """The time."""
    low_seconds: float
    """Lower end of the 80 % range."""
    high_seconds: float
    """Upper end of the 80 % range."""
    limiter: str
    """The largest term."""
    terms: Mapping[str, float]
    """Seconds by resource: start, hops, links by name, hbm."""
    sent_bytes: float
    """Bytes that each rank has to send, by the counting rule; an algorithm may send more."""
    bus_bytes_per_s: float
    """Bus bandwidth as nccl-tests has it."""
    known: CollectiveKnown
    """What is known."""
    assumptions: tuple[str, ...]
    """What was taken for what the system or the caller leaves open."""

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
    """Whose collectives they are."""
    problem: Collective
    """What is exchanged, every value an array."""
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
    """Bytes that each rank has to send."""
    bus_bytes_per_s: np.ndarray
    """Bus bandwidths."""
    known: tuple[CollectiveKnown, ...]
    """What is known of each."""
    assumptions: tuple[str, ...]
    """What was taken for what is open, of all of them."""

    def __len__(self) -> int:
        return len(self.seconds)

    def one(self, i: int) -> CollectivePrediction:
        """The i-th prediction."""
        problem = self.problem
        said: dict[str, Any] = {
            "bytes": np.asarray(problem.bytes)[i].item(),
            "ranks": np.asarray(problem.ranks)[i].item(),
            "dtype": problem.dtype,
        }
        if problem.ranks_per_node is not None:
            said["ranks_per_node"] = np.asarray(problem.ranks_per_node)[i].item()
        return CollectivePrediction(
            system=self.system.slug,
            device=self.system.device,
            library=self.library,
            op=problem.op,
            problem=said,
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
