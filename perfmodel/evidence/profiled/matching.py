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
from perfmodel.evidence.profiled import operations, order
from perfmodel.evidence.profiled.convolutions import Work
from perfmodel.evidence.profiled.kernelnames import UNKNOWN, named
from perfmodel.evidence.profiled.operations import Row
from perfmodel.evidence.profiled.timeline import Timeline, What

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
    firsts = [_longest(timeline, call) for call in calls]
    spent = [float(timeline.duration[call].sum()) for call in calls]
    places, notes = _places(timeline, firsts, nodes, dtype)
    groups: dict[tuple[object, ...], Group] = {}
    for what, nanoseconds, place in zip(firsts, spent, places, strict=True):
        key = (what.kernel, what.recorded, what.grid if place < 0 else (), place)
        group = groups.get(key)
        if group is None:
            groups[key] = group = _group(what, nodes[place] if place >= 0 else None, dtype)
        group.nanoseconds.append(nanoseconds)
    joined = sorted(_joined(groups.values()), key=lambda group: -group.total_ns)
    return Matched(tuple(joined), tuple(notes))


def _calls(timeline: Timeline) -> list[np.ndarray]:
    """Launches of each operator call, ordered by first launch; a launch without a call is alone."""
    n = len(timeline.call)
    own = np.where(
        timeline.call >= 0, timeline.call, timeline.call.max(initial=0) + 1 + np.arange(n)
    )
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)
    by = np.argsort(inverse, kind="stable")
    bounds = np.cumsum(np.bincount(inverse))[:-1]
    parts = np.split(by, bounds)
    return [parts[i] for i in np.argsort(first, kind="stable")]


def _longest(timeline: Timeline, call: np.ndarray) -> What:
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
    problems = [_problem(what, dtype) for what in firsts]
    # Calls with a shape take part in the alignment as well, to keep the order.
    kinds = [
        named(what.kernel).kind if found is None else str(found.row["op"])
        for what, found in zip(firsts, problems, strict=True)
    ]
    wanted = [str(node["op"]) for node in nodes]
    share = order.agreement(kinds, wanted)
    if share < _LEAST_AGREEMENT:
        return none, [
            f"launches and nodes of the graph agree in {share:.0%} of their order: none is matched"
        ]
    places = order.aligned(kinds, wanted)
    return [
        place if found is None else -1 for place, found in zip(places, problems, strict=True)
    ], []


def _problem(what: What, dtype: str) -> operations.Found | None:
    """The problem of the operator that launched a kernel, or of the kernel by its own name.

    Copies between host and device pass no memory of the device twice: they have none.
    """
    said, recorded = named(what.kernel), what.recorded
    if recorded is None or (said.kind == "transfer" and _HOST_COPY.search(what.kernel)):
        return None
    if said.implementation == INDUCTOR and not operations.is_known(recorded.name):
        recorded = replace(recorded, name=what.kernel)
    return operations.problem(recorded, dtype or said.dtype)


_HOST_COPY = re.compile(r"HtoD|DtoH|HtoH|Host")


def _group(what: What, node: Row | None, dtype: str) -> Group:
    said, found = named(what.kernel), _problem(what, dtype)
    operator = what.recorded.name if what.recorded is not None else ""
    if found is not None:
        kind = str(found.row["op"])
        ran = said.implementation if said.kind == kind else ""  # of a copy it says nothing
        return Group(
            what.kernel, kind, SHAPE, found.row, found.estimated, found.works, found.collective,
            ran, operator,
        )  # fmt: skip
    if node is not None:
        return Group(
            what.kernel, said.kind, ORDER, node, implementation=said.implementation,
            operator=operator,
        )  # fmt: skip
    how = NONE if said.kind == UNKNOWN else NAME
    return Group(what.kernel, said.kind, how, operator=operator)


def _joined(groups: Iterable[Group]) -> list[Group]:
    """Merges groups with equal problem, kernel and way of matching."""
    found: dict[tuple[object, ...], Group] = {}
    for group in groups:
        key = (group.kernel, group.how, group.operator, tuple(sorted(group.row.items())))
        if key in found:
            found[key].nanoseconds += group.nanoseconds
        else:
            found[key] = group
    return list(found.values())
