"""A training step as a tree: the leaves of its busiest stage with all their runs, which add up to
the step.

An exchange counts as far as kernels wait for it. Its range is that of all its seconds: where it
takes longer than predicted, all that is longer is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfmodel.graph.tree import Tree, together, waits
from perfmodel.training.copies import Copies
from perfmodel.training.layers import LayerWork
from perfmodel.training.plan import Plan
from perfmodel.training.stages import Part, exposed_seconds

# Share of a kernel's range that enters a step's: errors of one family's shapes partly cancel.
_SHARED = 0.8
# Extra spread (natural logarithm) that no kernel's range covers, by what joins the devices. It is
# the least with which four fifths of the published steps lie in their ranges, each source weighted
# equally (docs/accuracy.md, "Whole networks"): 53 steps and passes of one device, 1,006 of one
# node, 54 over several nodes, 10 with experts over devices.
_ALONE, _NODE, _NODES, _EXPERTS = 0.05, 0.05, 0.18, 0.66


def step_tree(
    stage: Sequence[Part],
    copies: Copies,
    update: Sequence[Tree],
    bubble_seconds: float,
    seconds: float,
    hidden_seconds: float = 0.0,
) -> Tree:
    """A step of so many seconds on one stage. What no leaf explains is the host's. Other passes
    hide `hidden_seconds` of the exchanges with experts."""
    work = [layer for part in stage for layer in part.work]
    share = _hidden_share(work, copies, hidden_seconds)
    leaves = [*(leaf for layer in work for leaf in _layer(layer, copies, share)), *update]
    low, high = _ends(leaves, copies)
    leaves += _waits_for_copies(stage, copies)
    if bubble_seconds:
        leaves.append(Tree.part("bubble", "bubble", bubble_seconds))
    rest = seconds - sum(leaf.exposed_seconds for leaf in leaves)
    if rest > 0.0:
        leaves += waits(host=rest)
    return Tree(
        name="step", kind="network", seconds=seconds, low_seconds=seconds * low,
        high_seconds=seconds * high, children=tuple(leaves),
    )  # fmt: skip


def recompute_seconds(stage: Sequence[Part], plan: Plan) -> float:
    """Seconds of the kernels that recomputation runs again in a step, on one stage."""
    return sum(
        plan.accumulation * layer.repeat * layer.forward.children[i].seconds
        for part in stage
        for layer in part.work
        for i in layer.again
    )


def _layer(layer: LayerWork, copies: Copies, hidden_share: float) -> Iterator[Tree]:
    """Kernels of equal layers in a step, then their exchanges, of which recomputation waits for
    some again."""
    runs = copies.plan.accumulation * layer.repeat
    for kernel, count in layer.kernels():
        yield kernel.times(runs * count)
    for experts in (False, True):
        exchanges = [
            copies.links.between(transfer).times(runs)
            for _, line in (layer.first, *layer.second)
            for transfer in line
            if (transfer.axis == "expert") is experts
        ]
        total = sum(each.seconds for each in exchanges)
        waited = _waited(layer, copies, experts=experts) * runs
        share = waited / total * (1.0 - experts * hidden_share) if total else 0.0
        yield from (replace(each, exposed_share=share) for each in exchanges)


def _waited(layer: LayerWork, copies: Copies, *, experts: bool) -> float:
    """Seconds that kernels of a layer and micro-batch wait for exchanges with experts, or for the
    others."""
    rest = layer.exchanged(replace(copies.links, without="expert").seconds)
    return layer.exchanged(copies.links.seconds) - rest if experts else rest


def _hidden_share(work: Sequence[LayerWork], copies: Copies, hidden_seconds: float) -> float:
    """Share of the exchanges with experts in a step that other passes hide."""
    if not hidden_seconds:
        return 0.0
    waited = sum(layer.repeat * _waited(layer, copies, experts=True) for layer in work)
    return hidden_seconds / (copies.plan.accumulation * waited)


def _waits_for_copies(stage: Sequence[Part], copies: Copies) -> list[Tree]:
    """What exchanges among copies add to the layers that they overlap, and those at the end."""
    seconds = sum(exposed_seconds(part, copies) for part in stage)
    if copies.plan.training:
        seconds += copies.exit_seconds([pair for part in stage for pair in part.segments])
    return [Tree.part("exchanges of copies", "communication", seconds)] if seconds else []


def _ends(leaves: Sequence[Tree], copies: Copies) -> tuple[float, float]:
    """Factors from a step's time to both ends of its 80 % range: leaves by family, and a term for
    how kernels, host and links join."""
    low, high = together(leaves)
    plan, extra = copies.plan, _NODES
    if plan.expert > 1:
        extra = _EXPERTS
    elif plan.devices <= copies.links.node_devices:
        extra = _ALONE if plan.devices == 1 else _NODE
    down = math.hypot(_SHARED * math.log(1.0 / low), extra)
    up = math.hypot(_SHARED * (high - 1.0), extra)
    return math.exp(-down), 1.0 + up
