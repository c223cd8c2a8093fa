"""An algorithm: tensors with named axes, steps over them, and a mask. No tile, no device.

This is the *problem* of Timeloop and the *weaving* of FlashAttention on a Napkin (Abbott & Zardini
2024, section 2): a step weaves a base operation over the axes of its tensors. The axes in `reduces`
are contracted away; every other axis is free.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from perfmodel.arithmetic import Number, clamp, floor_div, maximum, wide
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass

StepKind = Literal["contraction", "map", "normalisation", "reduction"]


@dataclass(frozen=True)
class Tensor:
    """An array with named axes."""

    name: str
    """Its name within the algorithm."""
    axes: tuple[str, ...]
    """Its axes."""
    element: str = "data"
    """Role whose element type the problem gives."""
    windows: tuple[tuple[str, str, int], ...] = ()
    """(axis, tap, stride): the two axes together index one dimension at axis · stride + tap, as in
    the input of a convolution."""
    constant: bool = False
    """Whether it has no gradient: labels, indices, tables of cosines, statistics."""


@dataclass(frozen=True)
class Derivative:
    """What the gradient of a step takes beside the gradients of its results."""

    reads: tuple[str, ...]
    """Tensors of the step that it reads; a linear map's reads none."""
    vector: float = 0.0
    """Operations a point on the vector unit."""
    special: float = 0.0
    """Operations a point on the special-function unit."""


@dataclass(frozen=True)
class Step:
    """One operation woven over the axes of its tensors."""

    name: str
    """Its name within the algorithm."""
    kind: StepKind
    """Kind of step. A contraction has 2 matrix-unit operations a point of the iteration space,
    which has all axes of all its tensors."""
    inputs: tuple[str, ...]
    """Tensors that it reads."""
    outputs: tuple[str, ...]
    """Tensors that it makes."""
    reduces: tuple[str, ...] = ()
    """Axes that it contracts away."""
    along: str | None = None
    """Axis of a normalisation: the output keeps that axis, but each element needs all of it."""
    late: tuple[str, ...] = ()
    """Inputs of a normalisation that its normaliser does not need (a norm's weights), so that only
    a second pass reads them."""
    vector: float = 0.0
    """Operations a point on the vector unit."""
    special: float = 0.0
    """Operations a point on the special-function unit."""
    derivative: Derivative | None = None
    """What its gradient takes, where the usual rule (`gradient`) does not say it."""


@dataclass(frozen=True)
class Band:
    """A mask that lets query i see key j when i + shift - left < j <= i + shift + right.

    `shift` = seq_kv - seq_q aligns the last query with the last key. Causal: right = 0. A sliding
    window of w keys: left = w.
    """

    query: str
    """Axis of the queries."""
    key: str
    """Axis of the keys."""
    left: Number | None = None
    """Keys to the left that a query sees; None: all. Never negative."""
    right: Number | None = None
    """Keys to the right; None: all. Never negative."""
    share: Number = 1
    """Share of the tile pairs that a block-sparse pattern keeps, spread evenly (FlashAttention,
    Proposition 4). Not combined with `left` or `right`."""

    @property
    def bounded(self) -> bool:
        """Whether the mask hides any pair."""
        return self.left is not None or self.right is not None or self.sparse

    def check_split(self, axes: Container[str], queries: Number) -> None:
        """Raise `ProblemError` where the keys are among `axes`, which are split over devices.

        The busiest shard of keys then depends on the mask. A single query is allowed: it is aligned
        to the end and sees all keys. Queries may be split: the shard of the last queries sees most
        keys and is the busiest.
        """
        if self.key not in axes or not self.bounded or self.sparse:
            return
        if not np.all(np.asarray(queries == 1, dtype=bool)):
            raise ProblemError(
                f"the mask hides other keys from each query, so {self.key} cannot be split over "
                f"devices; split {self.query}, heads or batch"
            )

    def visible_pairs(self, seq_q: Number, seq_kv: Number) -> Number:
        """Number of visible pairs of a query and a key, for integers or arrays (not for symbols).

        Query i sees the keys from i + c − left up to i + c + right with c = X − Q + 1, both clamped
        to [0, X]. With T(m) the sum of clamp(j, 0, X) over all j ≤ m, the sum of clamp(i + s, 0, X)
        over i from 0 to Q − 1 is T(s + Q − 1) − T(s − 1).
        """
        queries, keys = wide(seq_q), wide(seq_kv)
        shift = keys - queries + 1

        def total(last: Number) -> Number:
            edge = clamp(last, 0, keys)
            return floor_div(edge * (edge + 1), 2) + maximum(last - keys, 0) * keys

        def ends(start: Number) -> Number:
            return total(start + queries - 1) - total(start - 1)

        upper = queries * keys if self.right is None else ends(shift + self.right)
        lower = 0 if self.left is None else ends(shift - self.left)
        return (upper - lower) * self.share

    @property
    def sparse(self) -> bool:
        """Whether a pattern keeps only a share of the tile pairs."""
        return not (isinstance(self.share, int) and self.share == 1)


@dataclass(frozen=True)
class Algorithm:
    """Tensors and steps in order.

    Raises `ProblemError` where a step names an unknown tensor, reads a tensor before it is made or
    reduces an axis that it does not have, or where a tensor names an unknown axis.
    """

    name: str
    """Name of the algorithm."""
    axes: tuple[str, ...]
    """Its axes."""
    tensors: Mapping[str, Tensor]
    """Its tensors by name."""
    steps: tuple[Step, ...]
    """Its steps, in order."""
    outputs: tuple[str, ...]
    """Tensors that must be in memory at the end."""
    mask: Band | None = field(default=None)
    """Which keys each query sees; None: all."""

    def __post_init__(self) -> None:
        for tensor in self.tensors.values():
            self._check_names("axis", tensor.axes, self.axes, f"tensor {tensor.name}")
        outputs: set[str] = set()
        all_outputs = {name for step in self.steps for name in step.outputs}
        for step in self.steps:
            place = f"step {step.name}"
            self._check_names("tensor", (*step.inputs, *step.outputs), self.tensors, place)
            strays = [name for name in step.inputs if name in all_outputs and name not in outputs]
            if strays:
                raise ProblemError(f"{place} of {self.name} reads {strays[0]} before it is made")
            self._check_names("axis", step.reduces, self.step_axes(step), place)
            outputs.update(step.outputs)
        self._check_names("tensor", self.outputs, outputs, "the outputs")

    def _check_names(
        self, kind: str, names: Iterable[str], scope: Iterable[str] | Mapping[str, Any], place: str
    ) -> None:
        for name in names:
            if name not in scope:
                raise ProblemError(
                    f"{place} of {self.name} names the {kind} {name!r}; known: {', '.join(scope)}"
                )

    def step_axes(self, step: Step) -> tuple[str, ...]:
        """All axes of the tensors of a step, in the order of the algorithm's own list."""
        axes = {axis for name in (*step.inputs, *step.outputs) for axis in self.tensors[name].axes}
        return tuple(axis for axis in self.axes if axis in axes)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensors that no step makes, so that they are read from memory."""
        outputs = {name for step in self.steps for name in step.outputs}
        inputs = dict.fromkeys(name for step in self.steps for name in step.inputs)
        return tuple(name for name in inputs if name not in outputs)

    def step(self, name: str) -> Step:
        """The step called `name`. Raises `ProblemError` with the known steps."""
        for step in self.steps:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.steps)
        raise ProblemError(f"{self.name} has no step {name!r}; it has {names}")


def tensors(*items: Tensor) -> dict[str, Tensor]:
    """Tensors by name."""
    return {item.name: item for item in items}
