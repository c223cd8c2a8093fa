"""Which axes may be grouped and which streamed, and the legal loop nests of a fused kernel.

Grouping spreads an axis over independent blocks. It is legal where no step of the kernel contracts
or normalises along the axis. Streaming feeds the axis in chunks. It is legal where f(x ⊕ y) =
B(f(x), y).

The fusion theorem (FlashAttention on a Napkin, appendix A.1, Theorem 1): composing and weaving a
streamable algorithm keeps it streamable, as long as the streamed axis is not removed and used
again. A normalised contraction N(x)_i = a(x_i) / b(Σ a'(x_j)) followed by a contraction streams,
because the running sum can be rescaled (2505.09326, Theorem 2). A result that keeps a normalised
axis does not: its first element depends on the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfmodel.algorithms.algorithm import Algorithm, Band, Step, Tensor
from perfmodel.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one axis of a fused kernel may be grouped or streamed, and why."""

    axis: str
    """The axis."""
    groupable: bool
    """Whether it may be spread over blocks."""
    passes: int
    """Passes that streaming takes: 2 where a normaliser needs its whole row first and the row can
    be read again; 0 where the axis cannot stream."""
    group_reason: str
    """Why it may be grouped, or not."""
    stream_reason: str
    """Why it may be streamed, or not."""

    @property
    def streamable(self) -> bool:
        """Whether one pass in chunks gives the same result."""
        return self.passes == 1


def part(algorithm: Algorithm, steps: Sequence[str]) -> Algorithm:
    """The given steps as an algorithm, whose outputs are what later steps and the caller need.

    A mask saves work only where the masked scores stay on chip: a kernel that reads or writes them
    processes all of them, as frameworks do.
    """
    parts = tuple(algorithm.step(name) for name in steps)
    rest = [step for step in algorithm.steps if step.name not in set(steps)]
    needs = {n for step in rest for n in step.inputs} | set(algorithm.outputs)
    results = dict.fromkeys(n for step in parts for n in step.outputs)
    names = dict.fromkeys(n for step in parts for n in (*step.inputs, *step.outputs))
    tensors = {name: algorithm.tensors[name] for name in names}
    outputs = tuple(name for name in results if name in needs)
    present = {axis for tensor in tensors.values() for axis in tensor.axes}
    mask = algorithm.mask
    if mask is not None and not _hides(mask, tensors, outputs, results, present):
        mask = None
    axes = tuple(axis for axis in algorithm.axes if axis in present)
    return Algorithm(algorithm.name, axes, tensors, parts, outputs, mask)


def _hides(
    mask: Band,
    tensors: Mapping[str, Tensor],
    outputs: Sequence[str],
    results: Mapping[str, None],
    axes: set[str],
) -> bool:
    """Whether a mask couples two axes of a kernel whose scores do not reach memory."""
    ends = {mask.query, mask.key}
    moves = [t for name, t in tensors.items() if name in outputs or name not in results]
    return ends <= axes and not any(ends <= set(tensor.axes) for tensor in moves)


def groups(algorithm: Algorithm) -> list[tuple[str, ...]]:
    """Every run of consecutive steps: the possible kernels of a schedule."""
    names = [step.name for step in algorithm.steps]
    return [tuple(names[i:j]) for i in range(len(names)) for j in range(i + 1, len(names) + 1)]


def partitions(algorithm: Algorithm, fusion: Sequence[str] | None = None) -> dict[str, Verdict]:
    """The verdict on every axis of the steps in `fusion` (None: all steps)."""
    fused = algorithm if fusion is None else part(algorithm, fusion)
    return {axis: _verdict(fused, axis) for axis in fused.axes}


def _verdict(fused: Algorithm, axis: str) -> Verdict:
    obstacle = _obstacle(fused, axis)
    passes, reason = _streaming(fused, axis)
    names = [step.name for step in fused.steps if axis not in fused.step_axes(step)]
    note = f"step {', '.join(names)} runs again in every group" if names else "no step joins it"
    return Verdict(axis, not obstacle, passes, obstacle or note, reason)


def _obstacle(fused: Algorithm, axis: str) -> str:
    for step in fused.steps:
        if axis in step.reduces:
            return f"step {step.name} sums over {axis}: blocks would leave partial results"
        if step.along == axis:
            return f"step {step.name} normalises along {axis}: blocks would share a normaliser"
    return ""


def _streaming(fused: Algorithm, axis: str) -> tuple[int, str]:
    """(passes, reason)."""
    for step in fused.steps:
        if axis in step.reduces and (reader := _later_use(fused, step, axis)):
            return 0, (
                f"step {reader.name} needs {step.outputs[0]}, the sum over all of {axis}, before "
                f"{axis} can go by again"
            )
    for step in fused.steps:
        if step.along != axis:
            continue
        obstacle = _escape(fused, step, axis)
        if not obstacle:
            continue
        outputs = {n for other in fused.steps for n in other.outputs}
        if all(n not in outputs for n in step.inputs) and len(fused.steps) == 1:
            return 2, f"{obstacle}; the row streams a second time"
        return 0, obstacle
    if any(step.along == axis for step in fused.steps):
        return 1, "a normalised contraction: the running sum is rescaled as the normaliser grows"
    if any(axis in step.reduces for step in fused.steps):
        return 1, "sums accumulate"
    return 1, "chunks are independent"


def _later_use(fused: Algorithm, step: Step, axis: str) -> Step | None:
    """A later step that depends on the finished sum and runs over the summed axis again."""
    dependents = set(step.outputs)
    for reader in fused.steps[fused.steps.index(step) + 1 :]:
        if dependents & set(reader.inputs):
            if axis in fused.step_axes(reader):
                return reader
            dependents |= set(reader.outputs)
    return None


def _escape(fused: Algorithm, normalisation: Step, axis: str) -> str:
    """Why the output of a normalisation cannot be rescaled later; empty where it can."""
    carriers = [n for n in normalisation.outputs if axis in fused.tensors[n].axes]
    for name in carriers:
        if name in fused.outputs:
            return f"{name} keeps {axis}, whose normaliser is known only when all of {axis} went by"
    start = fused.steps.index(normalisation) + 1
    for reader in fused.steps[start:]:
        if not set(carriers) & set(reader.inputs) or axis in reader.reduces:
            continue
        if reader.along == axis:
            return f"step {reader.name} normalises along {axis} again before it is contracted away"
        if reader.special:
            return f"step {reader.name} is not linear in {carriers[0]}, so it cannot be rescaled"
        outputs = [n for n in reader.outputs if axis in fused.tensors[n].axes]
        for name in outputs:
            if name in fused.outputs:
                return f"{name} keeps {axis}, whose normaliser is known only after all of {axis}"
        carriers += outputs
    return ""


def check(fused: Algorithm, grid: Sequence[str], stream: Sequence[str]) -> None:
    """Raise `ProblemError` with the reason where a loop nest is illegal for a fused kernel."""
    reason = why_not(fused, grid, stream)
    if reason:
        raise ProblemError(reason)


def why_not(fused: Algorithm, grid: Sequence[str], stream: Sequence[str]) -> str:
    """Why blocks over `grid` with loops over `stream` (outermost first) are illegal; empty if
    legal.

    Besides the axes' own verdicts, a tile that stays on chip must be finished before it is used,
    and made once. No sequential loop that does not index it may enclose one that does, and no
    sequential loop over another axis may repeat its step.
    """
    verdicts = partitions(fused)
    for axis in (*grid, *stream):
        if axis not in verdicts:
            return f"no axis {axis!r} in these steps; they have {', '.join(verdicts)}"
    for axis in grid:
        if not verdicts[axis].groupable:
            return f"axis {axis} cannot be grouped: {verdicts[axis].group_reason}"
    for axis in stream:
        if not verdicts[axis].passes:
            return f"axis {axis} cannot stream: {verdicts[axis].stream_reason}"
    return loops_why_not(fused, stream)


def loops_why_not(fused: Algorithm, stream: Sequence[str]) -> str:
    """The part of `why_not` on the order of sequential loops."""
    outputs = {name for step in fused.steps for name in step.outputs}
    for name in sorted(outputs - set(fused.outputs)):
        if foreign := _foreign_loop(stream, fused.tensors[name].axes):
            return f"{name} stays on chip, but the loop over {foreign} would make its tiles again"
    for step in fused.steps:
        if foreign := _foreign_loop(stream, fused.step_axes(step)):
            return (
                f"step {step.name} has no axis {foreign}, but its loops would run inside that one"
            )
    return ""


def _foreign_loop(stream: Sequence[str], axes: Sequence[str]) -> str:
    """A sequential loop that does not index `axes` but encloses one that does; empty where none."""
    indices = [i for i, axis in enumerate(stream) if axis in axes]
    return next((axis for axis in stream[: indices[-1]] if axis not in axes), "") if indices else ""
