"""Steps of an update cut into kernels, each a declared algorithm.

A style has one kernel a step, or as few as the dependences allow. A step that reads a sum needs
that sum complete, so it goes into a later kernel. Sums along different axes need different loop
orders, so they do not share a kernel.

A kernel writes a tensor to memory in three cases: a later kernel reads it, it is the weight or a
state, or no step reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perfmodel.algorithms.case import Declaration
from perfmodel.algorithms.declaration import declare
from perfmodel.training.update import (
    COPY,
    GRADIENTS,
    WEIGHTS,
    Rule,
    Stage,
    Style,
    Types,
    listed,
    place,
)

ELEMENTS, CHUNKS, CHUNK = "p", "c", "e"
"""Axes of steps over all tensors: elements, chunks of elements, elements of one chunk."""

Steps = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Kernel:
    """Steps of an update that share a kernel."""

    name: str
    """The name of its step, or of its first and last one."""
    declaration: Declaration
    """What it computes; its parameters are the extents of its axes."""

    @cached_property
    def lists(self) -> int:
        """Number of tensor lists that it goes through in parallel."""
        algorithm = self.declaration.algorithm
        tensors = [
            part for part in algorithm.tensors.values() if set(part.axes) == set(algorithm.axes)
        ]
        operands = {*algorithm.inputs, *algorithm.outputs}
        return len({place(part.name) for part in tensors if part.name in operands})

    @cached_property
    def work(self) -> tuple[Any, ...]:
        """Its cost, without the names of tensors: equal for kernels that take equal time."""
        algorithm = self.declaration.algorithm

        def kind(name: str) -> tuple[Any, ...]:
            part = algorithm.tensors[name]
            return part.axes, part.element

        return (
            algorithm.axes,
            tuple(sorted(kind(name) for name in algorithm.inputs)),
            tuple(sorted(kind(name) for name in algorithm.outputs)),
            tuple(sorted((s.kind, s.reduces, s.vector, s.special) for s in algorithm.steps)),
        )


def kernels(rule: Rule, stage: Stage, types: Types, style: Style) -> tuple[Kernel, ...]:
    """The kernels of a stage, in order; empty for a product."""
    steps = dict(stage.steps)
    separate = False
    if types.copy is not None and stage.weights_to is not None:
        steps[COPY] = {"map": stage.weights_to, "to": COPY, "vector": 1}
        separate = style.copy == "apart"
    if style.passes == "each" and stage.passes == "style":
        groups = [[name] for name in _order(steps)]
    else:
        groups = _groups(steps)
    if separate and [COPY] not in groups:
        groups = [*([name for name in group if name != COPY] for group in groups), [COPY]]
    axes = _axes(stage, steps)
    return tuple(_kernel(rule, types, steps, group, axes) for group in groups)


def _inputs(step: Mapping[str, Any]) -> tuple[str, ...]:
    """What a step reads."""
    return listed(step["map"] if "map" in step else step["reduction"])


def _makers(steps: Steps) -> dict[str, str]:
    """The step that makes each tensor."""
    return {tensor: name for name, step in steps.items() for tensor in listed(step["to"])}


def _order(steps: Steps) -> list[str]:
    """Steps in topological order: every tensor is made before it is read."""
    makers = _makers(steps)
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for tensor in _inputs(steps[name]):
            if tensor in makers and makers[tensor] not in order:
                visit(makers[tensor])
        order[name] = None

    for name in steps:
        if name not in order:
            visit(name)
    return list(order)


def _groups(steps: Steps) -> list[list[str]]:
    """As few groups of steps as the sums allow."""
    makers = _makers(steps)
    level: dict[str, int] = {}
    groups: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    level_axes: dict[int, tuple[str, ...]] = {}
    for name in _order(steps):
        sources = [makers[tensor] for tensor in _inputs(steps[name]) if tensor in makers]
        waits = (level[each] + ("reduction" in steps[each]) for each in sources)
        level[name] = max(waits, default=0)
        axes = listed(steps[name].get("over", ()))
        first = level_axes.setdefault(level[name], axes) if axes else ()
        groups.setdefault((level[name], () if axes == first else axes), []).append(name)
    return [groups[key] for key in sorted(groups)]


def _axes(stage: Stage, steps: Steps) -> dict[str, tuple[str, ...]]:
    """The axes of every tensor of the steps."""
    chunked = any(CHUNK in listed(step.get("over", ())) for step in steps.values())
    run = (CHUNKS, CHUNK) if chunked else (ELEMENTS,)
    full: tuple[str, ...] = run if stage.axes is None else tuple(stage.axes)
    axes = {
        name: listed(stage.along.get(place(name), full))
        for step in steps.values()
        for name in (*_inputs(step), *listed(step["to"]))
    }
    for step in steps.values():
        over = listed(step.get("over", ()))
        for name in listed(step["to"]) if over else ():
            axes[name] = tuple(axis for axis in full if axis not in over)
    return axes


def _kernel_steps(steps: Steps, outputs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The steps of one kernel, with maps that share their axes merged into one of as many
    operations.

    No map of a kernel reads a sum that the same kernel makes, so all maps may come first.
    """
    maps = {name: step for name, step in steps.items() if "map" in step}
    sums = {name: dict(step) for name, step in steps.items() if name not in maps}
    if len(maps) < 2:
        return {**{name: dict(step) for name, step in maps.items()}, **sums}
    makers = _makers(maps)
    operands = {name for step in sums.values() for name in _inputs(step)}
    inputs = dict.fromkeys(name for step in maps.values() for name in _inputs(step))
    fusion = {
        "map": [name for name in inputs if name not in makers],
        "to": [name for name in makers if name in outputs or name in operands],
        **{key: sum(step.get(key, 0) for step in maps.values()) for key in ("vector", "special")},
    }
    return {_span(list(maps)): fusion, **sums}


def _span(names: Sequence[str]) -> str:
    """A name for several steps together."""
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def _outputs(rule: Rule, steps: Steps, group: Steps) -> list[str]:
    """What a kernel with steps `group` leaves in memory."""
    places = {*rule.states} | {WEIGHTS, GRADIENTS, COPY}
    final: dict[str, str] = {}
    for name in _makers(steps):
        final[place(name)] = max(final.get(place(name), ""), name, key=len)
    inputs = {name for step in group.values() for name in _inputs(step)}
    later = {name for each, step in steps.items() if each not in group for name in _inputs(step)}

    def stays(name: str) -> bool:
        lasts = place(name) in places and final[place(name)] == name
        return lasts or name in later or name not in inputs

    return [name for name in _makers(group) if stays(name)]


def _kernel(
    rule: Rule,
    types: Types,
    steps: Steps,
    group: Sequence[str],
    axes: Mapping[str, tuple[str, ...]],
) -> Kernel:
    """The kernel of a group of steps."""
    body = {name: steps[name] for name in group}
    outputs = _outputs(rule, steps, body)
    fusion = _kernel_steps(body, outputs)
    names = dict.fromkeys(
        name for step in fusion.values() for name in (*_inputs(step), *listed(step["to"]))
    )
    tensors = {
        name: {"axes": list(axes[name]), "element": rule.type_of(name, types)} for name in names
    }
    dims = dict.fromkeys(axis for name in names for axis in axes[name])
    declaration = declare(
        name=_span(list(body)),
        parameters=dict.fromkeys(dims, 1024),
        axes={axis: axis for axis in dims},
        types={tensor["element"]: tensor["element"] for tensor in tensors.values()},
        tensors=tensors,
        steps=fusion,
        outputs=outputs,
    )
    return Kernel(declaration.name, declaration)
