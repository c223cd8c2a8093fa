"""Groups launches into operator calls with equal problems, and finds the problem of each.

A problem is found from the shapes that the profiler recorded, or else from the order of a known
graph. Otherwise only the kernel's class is known from its name, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfmodel.collectives import Collective
from perfmodel.profile import operations, order
from perfmodel.profile.convolutions import Work
from perfmodel.profile.kernelnames import UNKNOWN, named
from perfmodel.profile.operations import Row
from perfmodel.profile.timeline import Timeline, What

INDUCTOR = "torch.compile"
"""The implementation of kernels that Inductor wrote."""
SHAPE, ORDER, NAME, NONE = "shape", "order", "name", "unknown"
"""How the problem of a launch is known: by shape, by order, only the kernel's class, or nothing."""
_LEAST_AGREEMENT = 0.5


@dataclass
class Group:
    """Calls that ran the same problem with the same kernels."""

    kernel: str
    """The kernel that took longest of one call."""
    kind: str
    """Its class."""
    how: str
    """`SHAPE`, `ORDER`, `NAME` or `NONE`."""
    row: Row = field(default_factory=dict)
    """Columns of the measured-run table that state the problem; empty where it is not known."""
    estimated: bool = False
    """Whether only the problem's bytes are known, not its operations."""
    works: tuple[Work, ...] = ()
    """The problems of one call, where the columns alone do not state them."""
    collective: Collective | None = None
    """The exchange between devices that it is."""
    implementation: str = ""
    """The kernel's library, where its name states it."""
    operator: str = ""
    """The framework's operator, where recorded."""
    nanoseconds: list[float] = field(default_factory=list)
    """Nanoseconds of each call."""

    @property
    def calls(self) -> int:
        """How often it ran."""
        return len(self.nanoseconds)

    @property
    def total_ns(self) -> float:
        """Nanoseconds of all calls."""
        return float(sum(self.nanoseconds))


@dataclass(frozen=True)
class Matched:
    """All calls of a profile."""

    groups: tuple[Group, ...]
    """Groups, longest total time first."""
    notes: tuple[str, ...] = ()
    """Lines for the user about the matching."""


def grouped(timeline: Timeline, nodes: Sequence[Row] = (), dtype: str = "") -> Matched:
    """Group the launches of a timeline.

    `nodes` are the problems of a graph in launch order, for launches without shapes. `dtype` is the
    type where the profile does not state it.
    """
    calls = _calls(timeline)
    firsts = [_longest_launch(timeline, call) for call in calls]
    times = [float(timeline.duration[call].sum()) for call in calls]
    places, notes = _places(timeline, firsts, nodes, dtype)
    groups: dict[tuple[object, ...], Group] = {}
    for launch, nanoseconds, place in zip(firsts, times, places, strict=True):
        key = (launch.kernel, launch.recorded, launch.grid if place < 0 else (), place)
        group = groups.get(key)
        if group is None:
            groups[key] = group = _group(launch, nodes[place] if place >= 0 else None, dtype)
        group.nanoseconds.append(nanoseconds)
    ranking = sorted(_merge(groups.values()), key=lambda group: -group.total_ns)
    return Matched(tuple(ranking), tuple(notes))


def _calls(timeline: Timeline) -> list[np.ndarray]:
    """Launches of each operator call, ordered by first launch; a launch without a call is alone."""
    n = len(timeline.call)
    keys = np.where(
        timeline.call >= 0, timeline.call, timeline.call.max(initial=0) + 1 + np.arange(n)
    )
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    places = np.argsort(inverse, kind="stable")
    bounds = np.cumsum(np.bincount(inverse))[:-1]
    parts = np.split(places, bounds)
    return [parts[i] for i in np.argsort(first, kind="stable")]


def _longest_launch(timeline: Timeline, call: np.ndarray) -> What:
    """The longest launch of a call, which represents the call."""
    return timeline.whats[int(timeline.what[call[np.argmax(timeline.duration[call])]])]


def _places(
    timeline: Timeline, firsts: Sequence[What], nodes: Sequence[Row], dtype: str
) -> tuple[list[int], list[str]]:
    """The graph node of each call without a shape; -1 for calls with a shape or without a node."""
    none = [-1] * len(firsts)
    if nodes and not timeline.ordered:
        return none, ["the launches have no order, so that none is matched with the graph"]
    if not nodes:
        return none, []
    problems = [_problem(launch, dtype) for launch in firsts]
    # Calls with a shape take part in the alignment as well, to keep the order.
    kinds = [
        named(launch.kernel).kind if problem is None else str(problem.row["op"])
        for launch, problem in zip(firsts, problems, strict=True)
    ]
    node_kinds = [str(node["op"]) for node in nodes]
    share = order.agreement(kinds, node_kinds)
    if share < _LEAST_AGREEMENT:
        return none, [
            f"launches and nodes of the graph agree in {share:.0%} of their order: none is matched"
        ]
    places = order.aligned(kinds, node_kinds)
    return [
        place if problem is None else -1 for place, problem in zip(places, problems, strict=True)
    ], []


def _problem(launch: What, dtype: str) -> operations.Found | None:
    """The problem of the operator that launched a kernel, or of the kernel by its own name.

    Copies between host and device pass no memory of the device twice: they have none.
    """
    facts, recorded = named(launch.kernel), launch.recorded
    if recorded is None or (facts.kind == "transfer" and _HOST_COPY.search(launch.kernel)):
        return None
    if facts.implementation == INDUCTOR and not operations.is_known(recorded.name):
        recorded = replace(recorded, name=launch.kernel)
    return operations.problem(recorded, dtype or facts.dtype)


_HOST_COPY = re.compile(r"HtoD|DtoH|HtoH|Host")


def _group(launch: What, node: Row | None, dtype: str) -> Group:
    facts, match = named(launch.kernel), _problem(launch, dtype)
    operator = launch.recorded.name if launch.recorded is not None else ""
    if match is not None:
        kind = str(match.row["op"])
        name = facts.implementation if facts.kind == kind else ""  # of a copy it says nothing
        return Group(
            launch.kernel, kind, SHAPE, match.row, match.estimated, match.works, match.collective,
            name, operator,
        )  # fmt: skip
    if node is not None:
        return Group(
            launch.kernel, facts.kind, ORDER, node, implementation=facts.implementation,
            operator=operator,
        )  # fmt: skip
    way = NONE if facts.kind == UNKNOWN else NAME
    return Group(launch.kernel, facts.kind, way, operator=operator)


def _merge(groups: Iterable[Group]) -> list[Group]:
    """Merges groups with equal problem, kernel and way of matching."""
    by_key: dict[tuple[object, ...], Group] = {}
    for group in groups:
        key = (group.kernel, group.how, group.operator, tuple(sorted(group.row.items())))
        if key in by_key:
            by_key[key].nanoseconds += group.nanoseconds
        else:
            by_key[key] = group
    return list(by_key.values())
