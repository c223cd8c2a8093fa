"""Segments × fine-tuning → segments: adapters beside frozen products, and the gradients of each
operation.

    q, o, up, ...    Linear x → y
    with an adapter  Linear x → y base (frozen), Linear x → r, Linear r → y delta, y = base + delta

A joined product (queries, keys and values; gate and up) has one A where a group of products is the
target, as in Megatron Bridge's LoRA and PEFT's c_attn. Where its parts are named each has its own A
and B, as in loralib's MergedLinear and Megatron Bridge's CanonicalLoRA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from perfmodel.errors import ProblemError
from perfmodel.networks.finetuning import FROZEN, GROUPS, PRODUCTS, FineTuning
from perfmodel.networks.operations.adapter import Adapted, Magnitude, renamed
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Dropout
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.segment import Segment
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value

_UNADAPTED = ("router", "shared expert weight")
"""Products of a layer that never have adapters."""


def tuned(segments: Sequence[Segment], setting: Setting) -> tuple[Segment, ...]:
    """The segments of a network with adapters and frozen weights.

    Raises `ProblemError` for targets that the network does not have, and for more frozen layers
    than it has.
    """
    tuning = setting.tuning
    if tuning is None:
        return tuple(segments)
    layers = sum(segment.repeat for segment in segments if segment.block)
    if tuning.frozen_layers > layers:
        raise ProblemError(f"frozen_layers is {tuning.frozen_layers}; the network has {layers}")
    rewritten = [
        replace(part, operations=tuple(_operations(part, tuning if trains else FROZEN)))
        for part, trains in _split(segments, tuning.frozen_layers)
    ]
    if tuning.lora and not _adapted(rewritten):
        names = {_role(y) for s in segments if s.block for op in _products(s) for y in op.outputs}
        raise ProblemError(
            f"no product of the network is {tuning.lora_targets}; its lora_targets are "
            f"{', '.join(name for name in PRODUCTS if name in names) or 'attention, mlp or all'}"
        )
    return tuple(_with_gradients(rewritten))


def _split(segments: Sequence[Segment], frozen: int) -> Iterator[tuple[Segment, bool]]:
    """Segments with whether they train; layers that do not are segments of their own, and the
    embedding before them does not."""
    for segment in segments:
        if frozen and not segment.block:
            yield segment, False
            continue
        fixed = min(frozen, segment.repeat)
        frozen -= fixed
        if fixed:
            yield replace(segment, name=f"frozen {segment.name}", repeat=fixed), False
        if segment.repeat > fixed:
            yield replace(segment, repeat=segment.repeat - fixed), True


def _products(segment: Segment) -> list[Linear]:
    """Products of a layer that may have adapters."""
    return [op for op in segment.operations if isinstance(op, Linear) and op.name not in _UNADAPTED]


def _adapted(segments: Sequence[Segment]) -> bool:
    kinds = (Adapted, Magnitude)
    return any(isinstance(op, kinds) for segment in segments for op in segment.operations)


def _operations(segment: Segment, tuning: FineTuning) -> Iterator[Operation]:
    """The operations of a layer: what is frozen, and adapters."""
    products = _products(segment) if segment.block else []
    for op in segment.operations:
        trains = _part(op, segment) in tuning.parts
        stored = op.setting.stored if segment.block and isinstance(op, Linear) else None
        frozen = replace(
            op.setting, gradients="all" if trains else "input", stored=None if trains else stored,
            tuning=None,
        )  # fmt: skip
        own = replace(op, setting=frozen)
        targets = _targets(op, tuning) if op in products and isinstance(op, Linear) else ()
        if not targets or not isinstance(own, Linear):
            yield own
        else:
            yield from _adapter(own, targets, tuning)


def _part(op: Operation, segment: Segment) -> str:
    """The part of a network that an operation belongs to."""
    if isinstance(op, Norm):
        return "norm"
    if not segment.block:
        return "head" if segment.name == "head" else "embedding"
    return "attention" if "attention" in op.name.split() else "mlp"


def _role(y: Value) -> str:
    """What a product makes: q, k, v, o, gate, up, down."""
    word = y.name.removesuffix(".out").split()[-1]
    return "o" if word == "output" else word


def _targets(op: Linear, tuning: FineTuning) -> tuple[Value, ...]:
    """The outputs of a product that have an adapter."""
    if not tuning.lora:
        return ()
    names = tuning.lora_targets.split(",")
    part = "attention" if "attention" in op.name.split() else "mlp"
    if "all" in names or part in names:
        return op.outputs
    return tuple(y for y in op.outputs if _role(y) in names)


def _adapter(op: Linear, targets: Sequence[Value], tuning: FineTuning) -> Iterator[Operation]:
    """A frozen product, its adapter, and their sum."""
    setting = replace(op.setting, gradients="all", stored=None)
    bases = tuple(renamed(y, "base") for y in targets)
    deltas = tuple(renamed(y, "delta") for y in targets)
    yield replace(op, to=tuple(renamed(y, "base") if y in targets else y for y in op.outputs))
    x = op.x
    if tuning.lora_dropout:
        drop = Dropout(f"{op.name} adapter dropout", setting, x)
        (x,) = drop.outputs
        yield drop
    product = partial(Linear, setting=setting, groups=op.groups, owned=op.owned, chosen=op.chosen)
    grouped = set(tuning.lora_targets.split(",")) <= {*GROUPS}
    for part in [deltas] if grouped else [(delta,) for delta in deltas]:
        name = op.name if len(part) == len(op.outputs) else part[0].name
        down = product(f"{name} A", x=x, out=tuning.lora)
        yield down
        columns = sum(delta.cols for delta in part)
        yield product(f"{name} B", x=down.outputs[0], out=columns, to=part)
    if not tuning.dora:
        yield Adapted(f"{op.name} adapted", setting, bases, deltas, tuple(targets))
        return
    for base, delta, y in zip(bases, deltas, targets, strict=True):
        yield Magnitude(f"{y.name} magnitude", setting, base, delta, y, op.x.cols, tuning.lora)


def _with_gradients(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Operations before everything that trains make no gradients, and the first that trains none
    of its inputs; but the first of several equal layers is as the others."""
    trained = False
    for segment in segments:
        follows = segment.repeat > 1 and any(_trains(op) for op in segment.operations)
        needed = {x.name for x in segment.operations[0].inputs if trained or follows}
        operations = []
        for op in segment.operations:
            gradients = op.setting.gradients
            if not trained and not needed.intersection(x.name for x in op.inputs):
                gradients = "weights" if _trains(op) else "none"
            if gradients != "none":
                needed.update(y.name for y in op.outputs)
            operations.append(replace(op, setting=replace(op.setting, gradients=gradients)))
        trained = trained or bool(needed)
        yield replace(segment, operations=tuple(operations))


def _trains(op: Operation) -> bool:
    return op.setting.gradients == "all" and bool(op.weights)
