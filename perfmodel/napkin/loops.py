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
    twice = {v.axis for v in partitions(fused).values() if v.passes == 2}
    fused = replace(fused, tensors={n: _without(t, sizes) for n, t in fused.tensors.items()})
    found: list[Line] = []
    depth = 0
    together = [axis for axis in nest.grid if axis in nest.single]
    if together:
        found.append((depth, f"for every {', '.join(together)} at once"))
        depth += 1
    for axis in nest.grid:
        if axis not in nest.single:
            found.append((depth, f"for every tile of {_tile(nest, axis)} of {axis} at once"))
            depth += 1
    _body(fused, nest, 0, depth, found)
    again = {f"of {axis} in turn": f"of {axis} in turn, twice" for axis in twice}
    for i, (level, said) in enumerate(found):
        for once, more in again.items():
            found[i] = (level, said.replace(once, more)) if said.endswith(once) else found[i]
    return found


def _without(tensor: Tensor, sizes: Mapping[str, int]) -> Tensor:
    return replace(tensor, axes=tuple(a for a in tensor.axes if sizes[a] > 1), windows=())


def _body(fused: Algorithm, nest: Nest, level: int, depth: int, found: list[Line]) -> None:
    """Lines inside the first `level` sequential loops, then those of the next loop."""
    here = [n for n in fused.inputs if _level(fused.tensors[n], nest) == level]
    out = [n for n in fused.outputs if _at(fused, nest, n) == level]
    again = [n for n in out if _rewritten(fused, nest, n)]
    if here:
        found.append((depth, "load " + ", ".join(_shaped(fused, nest, n) for n in here)))
    if again:
        found.append((depth, "load what there is of " + ", ".join(again)))
    before, after = _steps(fused, nest, level)
    found.extend((depth, _said(fused, step)) for step in before)
    if level < len(nest.stream):
        axis = nest.stream[level]
        found.append((depth, f"for every tile of {_tile(nest, axis)} of {axis} in turn"))
        _body(fused, nest, level + 1, depth + 1, found)
    found.extend((depth, _said(fused, step)) for step in after)
    if out:
        found.append((depth, "store " + ", ".join(_shaped(fused, nest, n) for n in out)))


def _tile(nest: Nest, axis: str) -> str:
    return f"{'g' if axis in nest.grid else 's'}_{axis}"


def _shaped(fused: Algorithm, nest: Nest, name: str) -> str:
    """A tensor with the extents of its tile: K[s_x, d]."""
    axes = [a for a in fused.tensors[name].axes if a not in nest.single]
    tiles = (_tile(nest, a) if a in (*nest.grid, *nest.stream) else a for a in axes)
    return f"{name}[{', '.join(tiles)}]" if axes else name


def _level(tensor: Tensor, nest: Nest) -> int:
    """Number of sequential loops inside which a tensor's tiles move: down to the last that indexes
    it."""
    own = [i + 1 for i, axis in enumerate(nest.stream) if axis in tensor.axes]
    return own[-1] if own else 0


def _at(fused: Algorithm, nest: Nest, name: str) -> int:
    return _level(fused.tensors[name], nest)


def _rewritten(fused: Algorithm, nest: Nest, name: str) -> bool:
    """Whether an unfinished output is stored and reloaded on every pass of an enclosing loop."""
    maker = next(step for step in fused.steps if name in step.outputs)
    have = fused.tensors[name].axes
    outside = nest.stream[: _at(fused, nest, name)]
    return any(axis not in have and axis in fused.step_axes(maker) for axis in outside)


def _steps(fused: Algorithm, nest: Nest, level: int) -> tuple[list[Step], list[Step]]:
    """Steps at this level before the next inner loop, and those after it."""
    before, after, waiting = list[Step](), list[Step](), set[str]()
    for step in fused.steps:
        own = [i + 1 for i, axis in enumerate(nest.stream) if axis in fused.step_axes(step)]
        depth = own[-1] if own else 0
        if depth > level or waiting & set(step.inputs):
            waiting |= set(step.outputs)
        if depth == level:
            (after if waiting & set(step.inputs) else before).append(step)
    return before, after


def _said(fused: Algorithm, step: Step) -> str:
    """One step as a line: "O += values(P, V)  summing over x"."""
    made = ", ".join(step.outputs)
    call = f"{step.name}({', '.join(step.inputs)})"
    if step.along:
        return f"{made} = {call}  normalised along {step.along}"
    if step.reduces:
        return f"{made} += {call}  summed over {', '.join(step.reduces)}"
    return f"{made} = {call}"
