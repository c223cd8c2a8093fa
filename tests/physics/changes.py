"""Monotonicity: a larger problem must not be faster, and a better device not slower."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device
from perfmodel.prediction import Predictions
from perfmodel.timing.libraries import KernelFacts, kernels

PARTS = ("units", "hbm_bandwidth", "matrix", "vector")
AXES = {
    Matmul: ("m", "n", "k", "batch"),
    Attention: ("batch", "heads", "seq_q", "seq_kv", "window"),
    Rowwise: ("rows", "cols"),
}


@dataclass(frozen=True)
class Change:
    """A problem on a device, and the same with `what` doubled or one larger."""

    kind: str
    what: str
    step: str
    before: Predictions
    after: Predictions

    @property
    def law(self) -> str:
        """The name of the law that the change must obey."""
        verb = "slower" if self.what in PARTS else "faster"
        return f"{self.what} {self.step} never {verb}"

    @property
    def excess(self) -> np.ndarray:
        """How many times as fast the larger problem is, or as slow the better device; shape (n,).

        At most 1 where the law holds.
        """
        first, second = self.before.seconds, self.after.seconds
        return second / first if self.what in PARTS else first / second

    @property
    def problem(self) -> Problem:
        """What was predicted before."""
        return self.before.problem

    @property
    def kernel(self) -> KernelFacts | None:
        """The class that was timed; none where several stand side by side."""
        return kernels().get(self.before.implementation)

    def sizes(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A size of the problem before and after."""
        return (
            np.asarray(getattr(self.before.problem, name)),
            np.asarray(getattr(self.after.problem, name)),
        )

    def tile_changed(self, *names: str) -> np.ndarray:
        """Whether a tile has another extent after, of those `names` that the tiles have."""
        changed = np.zeros(len(self.before), dtype=bool)
        for name in names:
            if name in self.before.tile and name in self.after.tile:
                changed |= self.before.tile[name] != self.after.tile[name]
        return changed


def better_devices(device: Device) -> Iterator[tuple[str, Device]]:
    """The device with twice of each part that its spec has."""
    for part in PARTS:
        try:
            yield part, device.scaled(**{part: 2.0})
        except PerfmodelError:
            continue


def larger(problem: Problem) -> Iterator[tuple[str, str, Problem]]:
    """Axis, step and the problem with twice of each size, and with one more."""
    for axis in AXES[type(problem)]:
        for step in ("×2", "+1"):
            grown = _grown(problem, axis, step)
            if grown is not None:
                yield axis, step, grown


def _grown(problem: Problem, axis: str, step: str) -> Problem | None:
    """The problem with a larger axis; none where it does not have the axis."""

    def more(name: str, by: int = 1) -> np.ndarray:
        value = np.asarray(getattr(problem, name))
        return value * 2 if step == "×2" else value + by

    if isinstance(problem, Attention):
        if axis == "heads":
            group = problem.heads_q // problem.heads_kv
            return replace(problem, heads_q=more("heads_q", group), heads_kv=more("heads_kv"))
        if axis == "seq_q":
            # Queries before the first key see nothing and are no more work.
            queries = np.minimum(more("seq_q"), problem.seq_kv)
            return None if problem.phase == "decode" else replace(problem, seq_q=queries)
        if axis == "window" and problem.window is None:
            return None
    return replace(problem, **{axis: more(axis)})
