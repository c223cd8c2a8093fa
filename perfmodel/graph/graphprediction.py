"""The prediction for a graph on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from perfmodel.columns import Column, Result
from perfmodel.predict import rank
from perfmodel.prediction import Prediction


def bounds(kernel: Prediction) -> tuple[str, str]:
    """Limiter and runner-up of a kernel's own time, in which the launch does not count."""
    terms = {name: np.array([seconds]) for name, seconds in kernel.terms.items()}
    launch, terms["launch"] = terms["launch"], np.zeros(1)
    first, second = rank(terms, kernel.seconds - launch)
    return str(first[0]), str(second[0])


@dataclass(frozen=True)
class NodePrediction(Result):
    """One node of a graph: times of all its runs, in seconds."""

    name: Annotated[str, Column(key="node")]
    """Name of the node."""
    operator: Annotated[str, Column()]
    """Name of the operator."""
    repeat: Annotated[int, Column()]
    """Number of runs."""
    seconds: Annotated[float, Column(key="time_us", scale=1e6)]
    """Seconds of its kernels, without gaps and host."""
    low_seconds: Annotated[float, Column(key="low_us", scale=1e6)]
    """Low end of the 80 % range."""
    high_seconds: Annotated[float, Column(key="high_us", scale=1e6)]
    """High end of the range."""
    live_bytes: Annotated[float, Column()]
    """Bytes alive in the device's memory while it runs."""
    scratch_bytes: Annotated[float, Column()]
    """The part of `live_bytes` that belongs to no tensor of the graph: the operator's
    intermediates."""
    prediction: Annotated[Prediction, Column(place=1)]
    """The prediction of one of its runs alone, with what the nodes before it left in the caches."""

    @property
    def limiter(self) -> Annotated[str, Column()]:
        """The resource with the longest time; launch starts count for the graph, not for nodes."""
        return self._bounds[0]

    @property
    def runner_up(self) -> Annotated[str, Column()]:
        """The resource with the second longest time."""
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[str, str]:
        return bounds(self.prediction)


@dataclass(frozen=True)
class GraphPrediction(Result):
    """A graph on one device. Times in seconds.

    The time is the sum of nodes, gaps between their kernels, and waiting for the start and the
    host.
    """

    graph: Annotated[str, Column()]
    """The graph's name."""
    device: Annotated[str, Column()]
    """The device's slug."""
    harness: Annotated[str, Column()]
    """How it is timed."""
    sizes: Annotated[Mapping[str, Any], Column()]
    """The sizes that the graph was made from."""
    nodes: Annotated[tuple[NodePrediction, ...], Column(place=1)]
    """Nodes in launch order."""
    seconds: Annotated[float, Column(key="time_us", scale=1e6)]
    """Total time."""
    low_seconds: Annotated[float, Column(key="low_us", scale=1e6)]
    """Low end of its 80 % range (`perfmodel.graph.graphspread`)."""
    high_seconds: Annotated[float, Column(key="high_us", scale=1e6)]
    """High end of the range."""
    gap_seconds: Annotated[float, Column(key="gap_us", scale=1e6)]
    """Sum of the gaps between kernels."""
    waiting_seconds: Annotated[float, Column(key="waiting_us", scale=1e6)]
    """Start of the first kernel, and later waiting for the host."""
    by_operator: Annotated[Mapping[str, float], Column(key="by_operator_us", scale=1e6)]
    """Seconds of the nodes of each operator, the longest first."""
    live_bytes: Mapping[str, tuple[float, ...]]
    """Bytes alive at each node, by level."""
    fits_at: Annotated[Mapping[str, bool], Column()]
    """Whether the peak fits in each level with known capacity."""
    assumptions: Annotated[tuple[str, ...], Column(place=1)]
    """Values that were assumed where device or graph leave them open, each once."""

    @property
    def peak_bytes(self) -> Annotated[float, Column()]:
        """Most bytes alive at once in the device's own memory."""
        return self.footprints["hbm"]

    @property
    def peak_node(self) -> Annotated[str, Column()]:
        """The first node with that many bytes alive."""
        live = self.live_bytes["hbm"]
        return self.nodes[live.index(max(live))].name

    @property
    def footprints(self) -> Annotated[dict[str, float], Column()]:
        """Most bytes alive at once, by level."""
        return {level: max(alive) for level, alive in self.live_bytes.items()}

    @property
    def fits(self) -> Annotated[bool, Column()]:
        """Whether the peak fits in every level with known capacity."""
        return all(self.fits_at.values())
