"""The answer for a graph on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.predict import rank
from perfmodel.prediction import Prediction


@dataclass(frozen=True)
class NodePrediction:
    """One node of a graph: times of all its runs, in seconds."""

    name: str
    """The node's."""
    operator: str
    """What runs."""
    repeat: int
    """How often."""
    seconds: float
    """Its kernels, without gaps and host."""
    low_seconds: float
    """Low end of the 80 % range."""
    high_seconds: float
    """High end."""
    live_bytes: float
    """Bytes alive in the device's memory while it runs."""
    scratch_bytes: float
    """Those of them that no tensor of the graph has: what is kept within the operator."""
    prediction: Prediction
    """One of its runs, as it would be timed by itself with what the nodes before it left."""

    @property
    def limiter(self) -> str:
        """The resource with the longest time; a start is the graph's, not a node's."""
        return self._ranked[0]

    @property
    def runner_up(self) -> str:
        """The next one."""
        return self._ranked[1]

    @cached_property
    def _ranked(self) -> tuple[str, str]:
        one = self.prediction
        terms = {name: np.array([value]) for name, value in one.terms.items()}
        started = terms["launch"]
        terms["launch"] = np.zeros(1)
        first, second = rank(terms, one.seconds - started)
        return str(first[0]), str(second[0])

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: microseconds and bytes."""
        return {
            "node": self.name,
            "operator": self.operator,
            "repeat": self.repeat,
            "time_us": self.seconds * 1e6,
            "low_us": self.low_seconds * 1e6,
            "high_us": self.high_seconds * 1e6,
            "limiter": self.limiter,
            "runner_up": self.runner_up,
            "live_bytes": self.live_bytes,
            "scratch_bytes": self.scratch_bytes,
            "prediction": self.prediction.as_dict(),
        }


@dataclass(frozen=True)
class GraphPrediction:
    """A graph on one device. Times in seconds.

    The time is that of the nodes, the gaps between their kernels, and what the device waits for
    its start and for the host.
    """

    graph: str
    """The graph's name."""
    device: str
    """The device's slug."""
    harness: str
    """How it would be timed."""
    sizes: Mapping[str, Any]
    """The sizes that the graph was made from."""
    nodes: tuple[NodePrediction, ...]
    """In launch order."""
    seconds: float
    """The whole."""
    low_seconds: float
    """Low end of its 80 % range (`perfmodel.graph.spread`)."""
    high_seconds: float
    """High end."""
    gap_seconds: float
    """Between kernels."""
    waiting_seconds: float
    """Start of the first kernel, and what the host is late later."""
    by_operator: Mapping[str, float]
    """Seconds of the nodes of each operator, the longest first."""
    live_bytes: Mapping[str, tuple[float, ...]]
    """Bytes alive at each node, by level."""
    fits_at: Mapping[str, bool]
    """Whether the peak of each level fits there, where its capacity is known."""
    assumptions: tuple[str, ...]
    """What was taken for what the device or the graph leaves open, each once."""

    @property
    def peak_bytes(self) -> float:
        """The most that is alive at once in the device's own memory."""
        return self.footprints["hbm"]

    @property
    def peak_node(self) -> str:
        """The first node at which that is so."""
        own = self.live_bytes["hbm"]
        return self.nodes[own.index(max(own))].name

    @property
    def footprints(self) -> dict[str, float]:
        """The most that is alive at once in each level."""
        return {level: max(alive) for level, alive in self.live_bytes.items()}

    @property
    def fits(self) -> bool:
        """Whether every level whose capacity is known holds its part."""
        return all(self.fits_at.values())

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: microseconds and bytes, the unit in every name that needs one."""
        return {
            "graph": self.graph,
            "device": self.device,
            "harness": self.harness,
            "sizes": dict(self.sizes),
            "time_us": self.seconds * 1e6,
            "low_us": self.low_seconds * 1e6,
            "high_us": self.high_seconds * 1e6,
            "gap_us": self.gap_seconds * 1e6,
            "waiting_us": self.waiting_seconds * 1e6,
            "by_operator_us": {name: value * 1e6 for name, value in self.by_operator.items()},
            "peak_bytes": self.peak_bytes,
            "peak_node": self.peak_node,
            "footprints": self.footprints,
            "fits": self.fits,
            "fits_at": dict(self.fits_at),
            "nodes": [node.as_dict() for node in self.nodes],
            "assumptions": list(self.assumptions),
        }
