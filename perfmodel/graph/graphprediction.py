"""The prediction for a graph on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.predict import rank
from perfmodel.prediction import Prediction


def bounds(kernel: Prediction) -> tuple[str, str]:
    """Limiter and runner-up of a kernel's own time, in which the launch does not count."""
    terms = {name: np.array([seconds]) for name, seconds in kernel.terms.items()}
    launch, terms["launch"] = terms["launch"], np.zeros(1)
    first, second = rank(terms, kernel.seconds - launch)
    return str(first[0]), str(second[0])


@dataclass(frozen=True)
class NodePrediction:
    """One node of a graph: times of all its runs, in seconds."""

    name: str
    """Name of the node."""
    operator: str
    """Name of the operator."""
    repeat: int
    """Number of runs."""
    seconds: float
    """Seconds of its kernels, without gaps and host."""
    low_seconds: float
    """Low end of the 80 % range."""
    high_seconds: float
    """High end of the range."""
    live_bytes: float
    """Bytes alive in the device's memory while it runs."""
    scratch_bytes: float
    """The part of `live_bytes` that belongs to no tensor of the graph: the operator's
    intermediates."""
    prediction: Prediction
    """The prediction of one of its runs alone, with what the nodes before it left in the caches."""

    @property
    def limiter(self) -> str:
        """The resource with the longest time; launch starts count for the graph, not for nodes."""
        return self._bounds[0]

    @property
    def runner_up(self) -> str:
        """The resource with the second longest time."""
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[str, str]:
        return bounds(self.prediction)

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

    The time is the sum of nodes, gaps between their kernels, and waiting for the start and the
    host.
    """

    graph: str
    """The graph's name."""
    device: str
    """The device's slug."""
    harness: str
    """How it is timed."""
    sizes: Mapping[str, Any]
    """The sizes that the graph was made from."""
    nodes: tuple[NodePrediction, ...]
    """Nodes in launch order."""
    seconds: float
    """Total time."""
    low_seconds: float
    """Low end of its 80 % range (`perfmodel.graph.graphspread`)."""
    high_seconds: float
    """High end of the range."""
    gap_seconds: float
    """Sum of the gaps between kernels."""
    waiting_seconds: float
    """Start of the first kernel, and later waiting for the host."""
    by_operator: Mapping[str, float]
    """Seconds of the nodes of each operator, the longest first."""
    live_bytes: Mapping[str, tuple[float, ...]]
    """Bytes alive at each node, by level."""
    fits_at: Mapping[str, bool]
    """Whether the peak fits in each level with known capacity."""
    assumptions: tuple[str, ...]
    """Values that were assumed where device or graph leave them open, each once."""

    @property
    def peak_bytes(self) -> float:
        """Most bytes alive at once in the device's own memory."""
        return self.footprints["hbm"]

    @property
    def peak_node(self) -> str:
        """The first node with that many bytes alive."""
        live = self.live_bytes["hbm"]
        return self.nodes[live.index(max(live))].name

    @property
    def footprints(self) -> dict[str, float]:
        """Most bytes alive at once, by level."""
        return {level: max(alive) for level, alive in self.live_bytes.items()}

    @property
    def fits(self) -> bool:
        """Whether the peak fits in every level with known capacity."""
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
