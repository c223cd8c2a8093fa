"""A kernel's loop nest as pseudo-code: where each tensor is loaded, computed and stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor
from perfmodel.napkin.fusion import partitions
from perfmodel.napkin.nests import Nest

Line = tuple[int, str]  # depth of indentation, text


def lines(fused: Algorithm, nest: Nest, sizes: Mapping[str, int]) -> list[Line]:
    """The nest, outermost loop first; tensors move where the counting rule moves them.

    Axes of extent 1 in `sizes` are left out. A streamed axis whose row waits for a normaliser is
    read twice.
    """
    double_axes = {v.axis for v in partitions(fused).values() if v.passes == 2}
    fused = replace(fused, tensors={n: _squeeze(t, sizes) for n, t in fused.tensors.items()})
    rows: list[Line] = []
    depth = 0
    axes = [axis for axis in nest.grid if axis in nest.single]
    if axes:
        rows.append((depth, f"for every {', '.join(axes)} at once"))
        depth += 1
    for axis in nest.grid:
        if axis not in nest.single:
            rows.append((depth, f"for every tile of {_tile(nest, axis)} of {axis} at once"))
            depth += 1
    _body(fused, nest, 0, depth, rows)
    turns = {f"of {axis} in turn": f"of {axis} in turn, twice" for axis in double_axes}
    for i, (level, text) in enumerate(rows):
        for phrase, double in turns.items():
            rows[i] = (level, text.replace(phrase, double)) if text.endswith(phrase) else rows[i]
    return rows


def _squeeze(tensor: Tensor, sizes: Mapping[str, int]) -> Tensor:
    return replace(tensor, axes=tuple(a for a in tensor.axes if sizes[a] > 1), windows=())


def _body(fused: Algorithm, nest: Nest, level: int, depth: int, rows: list[Line]) -> None:
    """Lines inside the first `level` sequential loops, then those of the next loop."""
    loads = [n for n in fused.inputs if _level(fused.tensors[n], nest) == level]
    out = [n for n in fused.outputs if _output_level(fused, nest, n) == level]
    reloads = [n for n in out if _is_reloaded(fused, nest, n)]
    if loads:
        rows.append((depth, "load " + ", ".join(_shape_text(fused, nest, n) for n in loads)))
    if reloads:
        rows.append((depth, "load what there is of " + ", ".join(reloads)))
    before, after = _steps(fused, nest, level)
    rows.extend((depth, _sentence(fused, step)) for step in before)
    if level < len(nest.stream):
        axis = nest.stream[level]
        rows.append((depth, f"for every tile of {_tile(nest, axis)} of {axis} in turn"))
        _body(fused, nest, level + 1, depth + 1, rows)
    rows.extend((depth, _sentence(fused, step)) for step in after)
    if out:
        rows.append((depth, "store " + ", ".join(_shape_text(fused, nest, n) for n in out)))


def _tile(nest: Nest, axis: str) -> str:
    return f"{'g' if axis in nest.grid else 's'}_{axis}"


def _shape_text(fused: Algorithm, nest: Nest, name: str) -> str:
    """A tensor with the extents of its tile: K[s_x, d]."""
    axes = [a for a in fused.tensors[name].axes if a not in nest.single]
    tiles = (_tile(nest, a) if a in (*nest.grid, *nest.stream) else a for a in axes)
    return f"{name}[{', '.join(tiles)}]" if axes else name


def _level(tensor: Tensor, nest: Nest) -> int:
    """Number of sequential loops inside which a tensor's tiles move: down to the last that indexes
    it."""
    depths = [i + 1 for i, axis in enumerate(nest.stream) if axis in tensor.axes]
    return depths[-1] if depths else 0


def _output_level(fused: Algorithm, nest: Nest, name: str) -> int:
    return _level(fused.tensors[name], nest)


def _is_reloaded(fused: Algorithm, nest: Nest, name: str) -> bool:
    """Whether an unfinished output is stored and reloaded on every pass of an enclosing loop."""
    maker = next(step for step in fused.steps if name in step.outputs)
    axes = fused.tensors[name].axes
    outer = nest.stream[: _output_level(fused, nest, name)]
    return any(axis not in axes and axis in fused.step_axes(maker) for axis in outer)


def _steps(fused: Algorithm, nest: Nest, level: int) -> tuple[list[Step], list[Step]]:
    """Steps at this level before the next inner loop, and those after it."""
    before, after, pending = list[Step](), list[Step](), set[str]()
    for step in fused.steps:
        depths = [i + 1 for i, axis in enumerate(nest.stream) if axis in fused.step_axes(step)]
        depth = depths[-1] if depths else 0
        if depth > level or pending & set(step.inputs):
            pending |= set(step.outputs)
        if depth == level:
            (after if pending & set(step.inputs) else before).append(step)
    return before, after


def _sentence(fused: Algorithm, step: Step) -> str:
    """One step as a line: "O += values(P, V)  summing over x"."""
    outputs = ", ".join(step.outputs)
    call = f"{step.name}({', '.join(step.inputs)})"
    if step.along:
        return f"{outputs} = {call}  normalised along {step.along}"
    if step.reduces:
        return f"{outputs} += {call}  summed over {', '.join(step.reduces)}"
    return f"{outputs} = {call}"
