"""Predictions of a graph's nodes: each distinct request once, similar ones as arrays.

Nodes with equal requests (problem, schedule, implementation, place, cache contents) share one
prediction. Requests that differ only in whole numbers are predicted in one call, as arrays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.errors import ProblemError
from perfmodel.graph.node import Node
from perfmodel.hardware import Device
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import Constants
from perfmodel.timing.reuse import Reuse

Found = Mapping[str, tuple[Reuse, ...]]


@dataclass(frozen=True)
class Ask:
    """The prediction request of one node."""

    node: str
    """The node's name, for error messages."""
    problem: Problem
    """What is computed."""
    schedule: str
    """The node's schedule."""
    implementation: str | None
    """The node's implementation."""
    place: tuple[tuple[str, str], ...]
    """Operands outside the device's own memory, with their level."""
    found: Found
    """What earlier nodes left of the inputs in the caches, by operand."""

    @cached_property
    def values(self) -> dict[str, Any]:
        """All values that distinguish problems of one operator."""
        return self.problem.values()

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of the values that are whole numbers; these may be arrays."""
        items = self.values.items()
        return tuple(k for k, v in items if isinstance(v, int) and not isinstance(v, bool))

    @cached_property
    def kind(self) -> Hashable:
        """Key of requests that one call can answer, except for the declaration."""
        others = ((k, v) for k, v in self.values.items() if k not in self.numbers)
        problem = (self.problem.operator, self.numbers, tuple(others))
        return problem, self.schedule, self.implementation, self.place

    @cached_property
    def key(self) -> Hashable:
        """Key of equal requests, except for the declaration."""
        sizes = tuple(self.values[name] for name in self.numbers)
        return self.kind, sizes, tuple(self.found.items())


def ask(node: Node, places: Mapping[str, str], found: Found) -> Ask:
    """The request of a node; `places` are the levels of its operands."""
    pairs = ((operand, level) for operand, level in places.items() if level != "hbm")
    place = tuple(sorted(pairs))
    return Ask(node.name, node.problem, node.schedule, node.implementation, place, found)


def answers(
    asked: Sequence[Ask], device: Device, *, harness: str, constants: Constants | None
) -> list[Prediction]:
    """The prediction of each request, in order. Raises the errors of `perfmodel.predict.predict`.

    A `ProblemError` names the first node that causes it.
    """
    distinct = _groups(asked, lambda a: a.key)
    first = [group[0] for group in distinct]
    answer: dict[int, Prediction] = {}
    for group in _groups([asked[i] for i in first], lambda a: a.kind):
        members = [first[i] for i in group]
        group_answers = _batch([asked[i] for i in members], device, harness, constants)
        answer.update(zip(members, group_answers, strict=True))
    by_index = {i: answer[group[0]] for group in distinct for i in group}
    return [by_index[i] for i in range(len(asked))]


def _groups(asks: Sequence[Ask], key: Callable[[Ask], Hashable]) -> list[list[int]]:
    """Indices of requests with equal keys and equal declarations."""
    groups: dict[Hashable, list[list[int]]] = defaultdict(list)
    for i, request in enumerate(asks):
        peers = groups[key(request)]
        for group in peers:
            if _is_alike(asks[group[0]], request):
                group.append(i)
                break
        else:
            peers.append([i])
    return [group for peers in groups.values() for group in peers]


def _is_alike(a: Ask, b: Ask) -> bool:
    """Whether the problems of two requests of one kind differ only in whole numbers."""
    kind = type(a.problem)
    if a.problem is b.problem or (
        kind is type(b.problem) and kind.values is Problem.values
    ):  # fully described by their values
        return True
    sizes = {name: a.values[name] for name in a.numbers}
    return a.problem.having(**sizes) == b.problem.having(**sizes)


def _batch(asks: Sequence[Ask], *setting: Any) -> list[Prediction]:
    """Predictions of requests of one kind, in one call; `setting` is device, harness and
    constants."""
    device, harness, constants = setting
    first, n = asks[0], len(asks)
    columns = {name: [each.values[name] for each in asks] for name in first.numbers}
    sweep = {k: np.array(v) for k, v in columns.items() if len(set(v)) > 1}
    if n > 1 and not sweep:  # the same problem with other cache contents
        if not columns:
            return [answer for each in asks for answer in _batch([each], *setting)]
        sweep = {first.numbers[0]: np.array(columns[first.numbers[0]])}
    problem = first.problem.having(**sweep) if sweep else first.problem
    operands = dict.fromkeys(name for each in asks for name in each.found)
    reuse = {name: _columns([each.found.get(name, ()) for each in asks]) for name in operands}
    try:
        predictions = predict_arrays(
            problem,
            device,
            schedule=first.schedule,
            implementation=first.implementation,
            harness=harness,
            place=dict(first.place),
            reuse=reuse,
            constants=constants,
        )
    except ProblemError as error:
        raise ProblemError(f"node {first.node}: {error}") from None
    return [predictions.one(i) for i in range(n)]


def _columns(reuses: Sequence[tuple[Reuse, ...]]) -> list[Reuse]:
    """Each problem's reuses of one operand, as arrays; problems with fewer get shares of 0."""
    if len(reuses) == 1:
        return list(reuses[0])
    most = max(len(one) for one in reuses)
    rows = [(*one, *(Reuse(0.0, 0.0),) * (most - len(one))) for one in reuses]
    return [
        Reuse(
            np.array([one[i].share for one in rows]),
            np.array([one[i].distance_bytes for one in rows]),
        )
        for i in range(most)
    ]
