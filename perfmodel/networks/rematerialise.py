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

The kept tensors are derived from the operations. The rest is recomputed by the operations' own
forward kernels, just before the layer's backward pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from perfmodel.errors import UnknownName
from perfmodel.networks.operations.attention import AttentionOperation, UnfusedAttention
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.segment import Segment
from perfmodel.networks.value import Value

Mode = Literal["none", "selective", "selective-op", "full", "host", "full-host"]
MODES: tuple[str, ...] = get_args(Mode)
"""Every mode."""
HOSTED: dict[str, Mode] = {"host": "none", "full-host": "full"}
"""Modes that keep in host memory what another one keeps on the device."""


def mode(name: str) -> Mode:
    """The mode with this name. Raises `UnknownName`."""
    if name not in MODES:
        raise UnknownName("recomputation", name, MODES)
    return name  # type: ignore[return-value]


def kept(segment: Segment, by: Mode) -> tuple[Value, ...]:
    """Tensors of one layer that stay in device memory until its backward pass."""
    if by == "none" or not segment.block:
        return segment.saved
    if by in HOSTED:
        return ()
    if by == "selective":
        core = {value.name for value in _cores(segment)}
        return tuple(value for value in segment.saved if value.name not in core)
    entry = segment.operations[0].inputs
    if by == "full":
        return entry
    outputs = {value.name: value for op in _stored_operations(segment) for value in op.outputs}
    return (*entry, *outputs.values())


def kept_bytes(segment: Segment, by: Mode) -> float:
    """Bytes of the kept tensors, and of the saved statistics of their rows."""
    total = sum(value.bytes for value in kept(segment, by))
    if by in ("none", "selective") or not segment.block:
        return total + segment.statistics_bytes
    if by == "selective-op":
        operations = _stored_operations(segment)
        return total + sum(value.bytes for op in operations for value in op.statistics)
    return total


def again(segment: Segment, by: Mode) -> tuple[int, ...]:
    """Indices of the forward kernels that run again before the backward pass."""
    names = [node.name for node in segment.forward.nodes]
    if by in ("none", "host") or not segment.block:
        return ()
    if by in ("full", "full-host"):
        return tuple(range(len(names)))
    if by == "selective":
        cores = tuple(f"{op.name}." for op in _unfused_attentions(segment))
        return tuple(i for i, name in enumerate(names) if name.startswith(cores or "\0"))
    skips = {op.name for op in _stored_operations(segment)}
    return tuple(i for i, name in enumerate(names) if name not in skips)


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
