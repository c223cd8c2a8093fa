"""Predictions of collectives: of one as plain numbers, of many as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np

from perfmodel.collectives.problem import Collective
from perfmodel.columns import HIGH, RANGE, Column, Result
from perfmodel.hardware import System

DeviceKnown = Literal["fitted", "sibling", "unseen"]
LibraryKnown = Literal["fitted", "assumed"]
LinkKnown = Literal["fitted", "sibling", "unseen"]
Number = TypeVar("Number")
Name = TypeVar("Name")


@dataclass(frozen=True)
class CollectiveKnown(Result):
    """How much is known of the device, library and link of a prediction; its range depends on
    it."""

    device: DeviceKnown
    """`fitted`: the fit includes collectives on this device; `sibling`: on another device of its
    architecture."""
    library: LibraryKnown
    """`fitted`: the fit includes collectives of this library; `assumed`: another library stands
    in."""
    link: LinkKnown
    """`fitted`: the fit includes collectives over this generation of link; `sibling`: over another
    of its generations; `unseen`: PCIe, networks and links of other makers, without measured
    runs."""


@dataclass(frozen=True, kw_only=True)
class Numbers(Generic[Number, Name]):
    """What is predicted of collectives: plain numbers of one, arrays of many. Times in seconds;
    `terms` add up to the time."""

    library: Annotated[str, Column()]
    """Library of the collective."""
    algorithm: Annotated[Name, Column("algorithm", number=False)]
    """ring, tree, nvls, pairwise, one-shot, two-shot, multimem; none for one rank."""
    protocol: Annotated[Name, Column("protocol", number=False)]
    """LL, LL128, Simple, pull or push; none for one rank."""
    seconds: Annotated[Number, Column("time", key="time_us", scale=1e6)]
    """The time."""
    low_seconds: Annotated[Number, RANGE]
    """Lower end of the 80 % range."""
    high_seconds: Annotated[Number, HIGH]
    """Upper end of the 80 % range."""
    bus_bytes_per_s: Annotated[Number, Column("bus", key="bus_gb_per_s", scale=1e-9)]
    """Bus bandwidth by the definition of nccl-tests."""
    limiter: Annotated[Name, Column("limiter", number=False)]
    """The largest term."""
    terms: Annotated[Mapping[str, Number], Column(key="terms_us", scale=1e6)]
    """Seconds by resource: start, hops, links by name, hbm, host."""
    sent_bytes: Annotated[Number, Column()]
    """Bytes that each rank must send by the counting rule; an algorithm may send more."""
    assumptions: Annotated[tuple[str, ...], Column(place=1)]
    """Assumptions where system and caller leave something open."""


@dataclass(frozen=True, kw_only=True)
class CollectivePrediction(Result, Numbers[float, str]):
    """One collective on one system."""

    system: Annotated[str, Column("system")]
    """Slug of the system."""
    device: Annotated[str, Column()]
    """Slug of its device."""
    op: Annotated[str, Column(key="collective")]
    """Kind of collective."""
    problem: Annotated[
        Mapping[str, Any],
        Column(),
        Column("ranks", "problem.ranks"),
        Column("size", "problem.bytes", "binary"),
    ]
    """Bytes, ranks, ranks per node, type."""
    known: Annotated[CollectiveKnown, Column(place=1)]
    """How much is known."""


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
