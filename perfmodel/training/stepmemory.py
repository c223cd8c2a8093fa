"""Memory of a training step on its fullest device, by kind.

    weights, gradients, master weights, optimiser states, copies     by recipe and ZeRO stage
    activations, logits                                              by what layers keep
    gathered weights                                                 layers of FSDP that are whole
    buffers, context, fragmentation                                  memory outside tensors

An offloaded optimiser has master weights, states and gradients in host memory (ZeRO-Offload,
2101.06840, §3). The device then holds gradients of the layer at work and of the one on the link.

Each kind is a line of its own, in bytes. Activations are derived from what each layer keeps:

    layers that wait for their backward pass   Σ kept(layer) × micro-batches in flight
    the layer in its backward pass             recomputed tensors, and its own temporaries
    logits                                     the head's tensors × micro-batches before backward

A stage of ZeRO shards what every device of a data-parallel group would hold over d devices,
`shards` (Rajbhandari et al. 2019, 1910.02054, §5):

    0   nothing                         w + g + k
    1   master weights and states       w + g + k/d
    2   and gradients                   w + (g + k)/d
    3   and weights                     (w + g + k)/d

w: bytes of the weights, g: of the gradients, k: of master weights and states. Groups smaller than
all data-parallel devices (HSDP, MiCS) are stage 3 with the shards of a group. Numbers may be
integers, arrays or SymPy symbols. Padding to whole shards is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from perfmodel.arithmetic import Number, is_symbolic
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph.live import Memory, Span
from perfmodel.graph.tensor import OWN
from perfmodel.networks import rematerialise
from perfmodel.networks.networktime import Held
from perfmodel.networks.operations.loss import Loss
from perfmodel.networks.segment import Segment
from perfmodel.training import optimisers
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision
from perfmodel.training.resharding import group
from perfmodel.training.weightupdate import parameters_of

# Memory of a process on a device before any tensor. The driver's context with the kernels of
# PyTorch's libraries, as nvidia-smi shows it beside the allocator's own count (0.4 to 0.6 GiB since
# CUDA 11); and the workspace of cuBLAS (32 MiB a handle on Hopper, 8 MiB before: PyTorch,
# CUDABlas.cpp).
CONTEXT_BYTES = 512 * 2**20
WORKSPACE_BYTES = 32 * 2**20
# Channels and buffers of one NCCL communicator (NCCL_BUFFSIZE 4 MiB, both ways, of 16 to 32
# channels).
COMMUNICATOR_BYTES = 2 * 4 * 2**20 * 24
RANGE = (0.92, 1.12)
"""Low and high end of the 80 % range of what an allocator holds, over the sum of the tensors.
Blocks of 2 MiB and 20 MiB leave 4 to 10 % unused (PyTorch, CUDACachingAllocator.cpp); frameworks
free some tensors early."""
_STATES = "optimiser states"


def allocated_bytes(memory: Memory) -> float:
    """Bytes that an allocator of tensors counts: without context and communicators."""
    overheads = ("context", "communicators")
    return sum(size for name, size in memory.lines.items() if name not in overheads)


def paged(memory: Memory) -> Memory:
    """With as many of the optimiser's states in host memory as the device lacks."""
    moved = min(memory.lacking_bytes, memory.lines.get(_STATES, 0.0))
    if not moved:
        return memory
    spans = [
        replace(span, bytes=span.bytes - moved) if span.name == _STATES else span
        for span in memory.spans
    ]
    return replace(memory, spans=(*spans, *_throughout({_STATES: moved}, "host")))


def memory(
    parts: _Parts,
    plan: Plan,
    precision: Precision,
    capacity_bytes: float | None,
    in_flight: float = 1.0,
    losses_in_flight: float = 1.0,
) -> Memory:
    """Memory of layers on one device; each segment comes with its number of layers there.

    `in_flight` micro-batches are kept at once, `losses_in_flight` of them have passed the head.
    """
    elements = sum(_trained(parts, experts, plan, precision)[0] for experts in (False, True))
    groups = sum(getattr(plan, axis) > 1 for axis in ("tensor", "pipeline", "data", "context"))
    later = () if _keeps_gradients(plan) or plan.gradients_leave else ("gradients",)
    lines = _states(parts, plan, precision)
    hosted = _hosted(parts, plan, precision) if plan.offloads else {}
    lines |= dict.fromkeys(plan.hosted if hosted else (), 0.0)
    if plan.gradients_leave:
        lines["gradients"] = _gradients_at_work(parts, plan, precision)
    spans = [
        *(
            Span(name, size, _LAST if name in later else _HEAD, _LAST)
            for name, size in lines.items()
        ),
        *_throughout(hosted, "host"),
        *_throughout({
            "copies": elements * precision.copy_bytes("step", "forward"),
        }),
        *_gathered_weights(parts, plan),
        *activations(parts, plan, in_flight, losses_in_flight),
        *_throughout({
            "workspace": WORKSPACE_BYTES,
            "communicators": COMMUNICATOR_BYTES * groups,
            "context": CONTEXT_BYTES,
        }),
    ]  # fmt: skip
    rooms = {} if capacity_bytes is None else {OWN: capacity_bytes}
    return Memory(tuple(spans), _MOMENTS, rooms)


_MOMENTS = ("head", "last layer", "first layer")
"""The head's backward pass, while every layer is kept; that of the last layer; that of the first
one, when every weight has its gradient."""
_HEAD, _LAYERS, _LAST = range(3)


def _throughout(lines: Mapping[str, float], place: str = OWN) -> list[Span]:
    """What a whole step holds."""
    return [Span(name, size, _HEAD, _LAST, place) for name, size in lines.items()]


def _keeps_gradients(plan: Plan) -> bool:
    """Whether gradients are there before a backward pass: sums of earlier micro-batches, or buffers
    of the program that copies exchange. Otherwise each begins with its layer's backward pass
    (PyTorch, `zero_grad`, set_to_none)."""
    copied = max(plan.copies, plan.expert_copies) > 1
    return plan.accumulation > 1 or copied or bool(plan.setting.stack.main_gradients)


_Parts = Sequence[tuple[Segment, int]]


@lru_cache(maxsize=4096)
def _of_layer(
    key: Held[Segment], experts: bool, optimiser: str, precision: Precision
) -> tuple[int, float]:
    """Elements of the trained weights of one layer, of experts or of the rest, and bytes of their
    states."""
    own = [(w, 1) for w in key.own.weights if w.trains and not w.shared and w.expert is experts]
    states = 0.0
    if optimiser != "none":
        states = optimisers.load(optimiser).state_bytes(parameters_of(own), precision)
    return sum(weight.elements for weight, _ in own), states


def _trained(parts: _Parts, experts: bool, plan: Plan, precision: Precision) -> tuple[int, float]:
    """The same of all layers."""
    elements, states = 0, 0.0
    for segment, count in parts:
        own = _of_layer(Held(segment), experts, plan.optimiser, precision)
        elements, states = elements + count * own[0], states + count * own[1]
    return elements, states


def _states(parts: _Parts, plan: Plan, precision: Precision) -> dict[str, float]:
    """Weights, gradients, master weights and states.

    Experts' weights are sharded over the devices with the same expert, other weights over all
    copies. Frozen weights have neither gradients nor states.
    """
    lines = dict.fromkeys(("frozen weights", *_SHARDED_FROM), 0.0)
    for experts, shards in ((False, plan.copies), (True, plan.expert_copies)):
        elements, states = _trained(parts, experts, plan, precision)
        share = model_states(precision, elements, states, stage=plan.zero, shards=shards)
        if plan.keeps_whole:
            share["gradients"] = elements * precision.gradient_bytes
        for name, size in share.items():
            lines[name] += float(size)
        frozen = sum(
            plan.gathered_bytes(w) * n
            for segment, n in parts
            for w in segment.weights
            if not w.trains and not w.shared and w.expert is experts
        )
        lines["frozen weights"] += frozen / (shards if plan.zero == 3 else 1)
    return lines


def _hosted(parts: _Parts, plan: Plan, precision: Precision) -> dict[str, float]:
    """What the host keeps of one device's share to update it. It needs weights of its own even
    where a recipe has no master weights."""
    shared = replace(plan, zero=2 if plan.zero else 0)
    lines = _states(parts, shared, replace(precision, master=precision.updated.weights))
    return {name: lines[name] for name in ("gradients", "master weights", _STATES)}


def _gradients_at_work(parts: _Parts, plan: Plan, precision: Precision) -> float:
    """Gradients of the layer in its backward pass and of the one before it, on the link."""
    sizes = [
        _states([(segment, 1)], plan, precision)["gradients"]
        for segment, count in parts
        for _ in range(min(count, 2))
    ]
    return sum(sorted(sizes)[-2:])


def _gathered_weights(parts: _Parts, plan: Plan) -> list[Span]:
    """FSDP: whole weights of the current layer and of the prefetched one, in the products' type;
    the gradients of one layer before they are scattered; and what layers keep of their weights
    after the forward pass."""
    if plan.zero < 3 or max(plan.copies, plan.expert_copies) == 1:
        return []
    name, reshard = "gathered weights", plan.resharding
    kept = sum(
        count * plan.gathered_bytes(weight) / group(reshard, shards)
        for segment, count in parts
        for weight in segment.weights
        for shards in (plan.expert_copies if weight.expert else plan.copies,)
        if not weight.shared and group(reshard, shards) < shards
    )
    if plan.keeps_whole:
        return [Span(name, kept, _HEAD, _LAST)]
    sizes = [
        [sum(plan.gathered_bytes(w) for w in segment.weights if not w.shared and keep(w))
         for keep in (lambda _: True, lambda w: w.trains)]
        for segment, count in parts
        for _ in range(min(count, 2))
    ]  # fmt: skip
    (first, gradients), (second, _), *_ = (*sorted(sizes, reverse=True), [0.0, 0.0])
    if reshard == "false":  # whole layers are among the kept; the first one is the last to be freed
        early, late = kept + gradients, first + gradients
    else:
        early, late = kept + first + gradients + second, first + gradients + second
    return [Span(name, early, _HEAD, _LAYERS), Span(name, late, _LAST, _LAST)]


def activations(
    parts: _Parts,
    plan: Plan,
    in_flight: float = 1.0,
    losses_in_flight: float = 1.0,
) -> list[Span]:
    """Activations of the given layers on one device: those that layers keep, logits with what the
    loss saves of them and their gradient, and recomputed tensors and temporaries of one layer.

    Each segment comes with its number of layers there. `in_flight` micro-batches are kept at once,
    `losses_in_flight` of them have passed the head.
    """
    mode = rematerialise.mode(plan.recompute)
    rest = plan.recompute_layers
    kept = working = logits = layer = 0.0
    for segment, count in parts:
        if not segment.active:
            continue
        if segment.name == "head":
            spared = sum(op.spared_bytes for op in segment.active if isinstance(op, Loss))
            logits = (
                segment.saved_bytes + segment.statistics_bytes + segment.temporary_bytes - spared
            )
            continue
        reruns = count if rest is None else min(rest, count)
        reruns = reruns if segment.block else 0
        rest = rest if rest is None or not segment.block else rest - reruns
        full = rematerialise.kept_bytes(segment, "none")
        least = rematerialise.kept_bytes(segment, mode) if segment.block else full
        kept += reruns * least + (count - reruns) * full
        if segment.block:
            working = max(working, full - least + segment.temporary_bytes)
            layer = max(layer, full if reruns < count else least)
    return [
        Span("activations", in_flight * kept, _HEAD, _LAYERS),
        Span("activations", layer, _LAST, _LAST),
        Span("layer at work", working, _LAYERS, _LAST),
        Span("logits", losses_in_flight * logits, _HEAD, _HEAD),
    ]


STAGES = (0, 1, 2, 3)
"""ZeRO's stages; 3 is FSDP."""

# The first stage in which each is sharded.
_SHARDED_FROM = {"weights": 3, "gradients": 2, "master weights": 1, "optimiser states": 1}


def model_states(
    precision: Precision,
    parameters: Number,
    state_bytes: Number,
    *,
    stage: int = 0,
    shards: Number = 1,
) -> dict[str, Number]:
    """Bytes by kind on one device of `parameters`, whose states take `state_bytes` together.

    Raises `UnknownName` for another stage and `ProblemError` for shards below 1.
    """
    if stage not in STAGES:
        raise UnknownName("stage of ZeRO", str(stage), [str(s) for s in STAGES])
    if not is_symbolic(shards) and np.any(np.asarray(shards) < 1):
        raise ProblemError(f"states are split over {shards} shards; give at least 1")
    widths = (precision.weight_bytes, precision.gradient_bytes, precision.master_bytes)
    sizes = (*(parameters * width for width in widths), state_bytes)
    return {
        name: size / shards if stage >= first else size
        for (name, first), size in zip(_SHARDED_FROM.items(), sizes, strict=True)
    }
