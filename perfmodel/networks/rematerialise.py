"""Activation recomputation: what a layer keeps for its backward pass, and which kernels run again.

    none          keeps every tensor that the backward pass reads
    selective     drops what grows with the square of the sequence: scores, softmax, their masks
                  (Korthikanti et al., 2205.05198, section 5); fused attention keeps none of these
    selective-op  keeps the outputs of attention and of the first, third, ... product (PyTorch's
                  selective checkpointing by torchtitan's policy "op", which saves odd counts)
    full          keeps only the layer's input
    host          keeps what `none` keeps, in host memory: nothing stays on the device
    full-host     keeps the layer's input, in host memory (Unsloth's checkpointing; torchtune's with
                  offloading)
    norms+up      drops the outputs of these operations alone (`PARTS`): DeepSeek-V3's (2412.19437,
                  section 3.2.3; Megatron Core's --recompute-modules layernorm mla_up_proj)

The kept tensors are derived from the operations. The rest is recomputed by the operations' own
forward kernels, just before the layer's backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from perfmodel.errors import UnknownName
from perfmodel.networks.operations.attention import AttentionOperation, UnfusedAttention
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Repeat, Rotary
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.segment import Segment
from perfmodel.networks.value import Value

MODES = ("none", "selective", "selective-op", "full", "host", "full-host")
"""Every mode but those by part."""
PARTS: dict[str, Callable[[Operation], bool]] = {
    "norms": lambda op: isinstance(op, Norm),
    "up": lambda op: isinstance(op, Rotary | Repeat) or op.name.endswith((" q up", " kv up")),
    "attention": lambda op: isinstance(op, AttentionOperation),
    "activations": lambda op: op.name.endswith(" activation"),
}
"""Operations that a mode may name, with + between them: norms; up-projections of latents with the
rotation and copies behind them; attention; activations of inner layers."""
HOSTED = {"host": "none", "full-host": "full"}
"""Modes that keep in host memory what another one keeps on the device."""


def names() -> tuple[str, ...]:
    """Every mode and part."""
    return (*MODES, *PARTS)


def mode(name: str) -> str:
    """The mode with this name, or of these parts. Raises `UnknownName`."""
    if name in MODES:
        return name
    for part in name.split("+"):
        if part not in PARTS:
            raise UnknownName("recomputation", part, names())
    return name


def kept(segment: Segment, by: str) -> tuple[Value, ...]:
    """Tensors of one layer that stay in device memory until its backward pass."""
    if by == "none" or not segment.block:
        return segment.saved
    if by in HOSTED:
        return ()
    if by == "selective":
        core = {value.name for value in _cores(segment)}
        return tuple(value for value in segment.saved if value.name not in core)
    if by not in MODES:
        return _kept_beside(segment, _named(segment, by))
    entry = segment.operations[0].inputs
    if by == "full":
        return entry
    outputs = {value.name: value for op in _stored_operations(segment) for value in op.outputs}
    return (*entry, *outputs.values())


def _named(segment: Segment, by: str) -> list[Operation]:
    """The operations of the parts that a mode names."""
    chosen = [PARTS[part] for part in by.split("+")]
    return [op for op in segment.operations if any(holds(op) for holds in chosen)]


def _kept_beside(segment: Segment, dropped: Sequence[Operation]) -> tuple[Value, ...]:
    """What is saved apart from what some operations make, and what these are made of."""
    own = {value.name for op in dropped for value in op.outputs}
    own |= {name for op in dropped for name in segment.recorded(op).written}
    values = {x.name: x for x in segment.saved if x.name not in own}
    values |= {x.name: x for op in dropped for x in op.inputs if x.name not in own}
    return tuple(values.values())


def kept_bytes(segment: Segment, by: str) -> float:
    """Bytes of the kept tensors, and of the saved statistics of their rows."""
    total = sum(value.bytes for value in kept(segment, by))
    if by in ("none", "selective") or not segment.block:
        return total + segment.statistics_bytes
    if by == "selective-op":
        operations = _stored_operations(segment)
        return total + sum(value.bytes for op in operations for value in op.statistics)
    if by not in MODES:
        dropped = {op.name for op in _named(segment, by)}
        rest = (op for op in segment.active if op.name not in dropped)
        return total + sum(value.bytes for op in rest for value in op.statistics)
    return total


def again(segment: Segment, by: str) -> tuple[int, ...]:
    """Indices of the forward kernels that run again before the backward pass."""
    kernels = [node.name for node in segment.forward.nodes]
    if by in ("none", "host") or not segment.block:
        return ()
    if by in ("full", "full-host"):
        return tuple(range(len(kernels)))
    if by == "selective":
        cores = tuple(f"{op.name}." for op in _unfused_attentions(segment))
        return tuple(i for i, name in enumerate(kernels) if name.startswith(cores or "\0"))
    if by not in MODES:
        runs = {x.name for op in _named(segment, by) for x in segment.recorded(op).nodes}
        return tuple(i for i, name in enumerate(kernels) if name in runs)
    skips = {op.name for op in _stored_operations(segment)}
    return tuple(i for i, name in enumerate(kernels) if name not in skips)


def _unfused_attentions(segment: Segment) -> list[UnfusedAttention]:
    return [op for op in segment.operations if isinstance(op, UnfusedAttention)]


def _cores(segment: Segment) -> Iterable[Value]:
    """Scores, softmax and masks that unfused attention saves."""
    for op in _unfused_attentions(segment):
        scores = (op.score_rows, op.seq_kv)
        for value in segment.saved:
            if value.name.startswith(f"{op.name}.") and (value.rows, value.cols) == scores:
                yield value


def _stored_operations(segment: Segment) -> list[Operation]:
    """Operations whose outputs `selective-op` keeps: attention, and every second product."""
    products = [op for op in segment.operations if isinstance(op, Linear)]
    attention = [op for op in segment.operations if isinstance(op, AttentionOperation)]
    return [*attention, *products[0::2]]
