"""Software stacks: which operations of a layer share a kernel (`stacks.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import SpecError, UnknownName


@dataclass(frozen=True)
class Stack:
    """One software stack; what is not said of it is not so."""

    name: str
    """As the command line calls it."""
    about: str
    """One line for a person."""
    source: str
    """Where its facts come from."""
    library: str
    """What tables call its products and row-wise kernels (`names.yaml`)."""
    attention: str = "flash"
    """`unfused`: product, softmax, product; `flash`: one kernel."""
    flash_kernel: str = ""
    """The fused kernel of attention that it calls; empty: a good library's."""
    head_copies: bool = False
    """Whether heads are brought next to each other by copies before and after attention."""
    scale_pass: bool = False
    """Whether scores are scaled in a pass of their own, and not inside a kernel."""
    mask: str = "fused"
    """`pass`: the mask is added in a pass over the scores; `fused`: inside the softmax."""
    joined_products: bool = False
    """Whether queries, keys and values are one product, and gate and up another."""
    joins_maps: bool = False
    """Whether element-wise maps that follow each other are one kernel."""
    fused_norm: bool = False
    """Whether an RMS norm is one kernel; a layer norm always is."""
    fused_rotary: bool = False
    """Whether rotary positions are one kernel for queries and keys."""
    fused_dropout_add: bool = False
    """Whether dropout and the residual sum are one kernel."""
    experts_apart: bool = False
    """Whether products of experts are a kernel for each of them, and not one for all."""
    sends_once: bool = False
    """Whether a token goes to a node once, however many of its experts are there."""
    splits_sequence: bool = False
    """Whether devices that share a layer split the rows of its norms and residuals unless told
    otherwise."""
    main_gradients: bool = False
    """Whether products add weight gradients to fp32 sums themselves."""
    autocast: bool = False
    """Whether weights are kept in fp32 and cast in each forward pass, and norms and losses run in
    fp32 between casts (torch.amp)."""
    fused_gate: bool = False
    """Whether a gate's activation and its product with the other half are one kernel."""
    plain_gelu_new: bool = False
    """Whether GPT-2's approximation of gelu is the eight plain operators of its Python."""
    masked_logits: bool = False
    """Whether BERT's language head runs over the masked tokens alone."""
    loss: str = "eager"
    """`eager`: an fp32 copy of the logits and a softmax of it; `parts`: a kernel for
    each step of it in fp32 (Megatron); `fused`: in place; `chunked`: inside
    the head's product, no logits in memory."""
    overlaps_gradients: bool = False
    """Whether copies sum their gradients while the backward pass goes on."""
    optimiser: str = "fused"
    """How it runs an optimiser: fused, foreach or multi-tensor."""
    host: str = "eager"
    """The entry of hosts.yaml that says how long a launch takes."""


def load(name: str) -> Stack:
    """The stack called `name`; raises `UnknownName` with the nearest names."""
    found = _table().get(name.lower())
    if found is None:
        raise UnknownName("stack", name, names())
    return found


def names() -> tuple[str, ...]:
    """Every stack."""
    return tuple(_table())


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Stack]:
    document = yamltable.read(Path(__file__).with_name("stacks.yaml"))
    return {name: _stack(name, entry) for name, entry in document["stacks"].items()}


def _stack(name: str, entry: Mapping[str, Any]) -> Stack:
    known = {item.name for item in fields(Stack)}
    for key in entry:
        if key not in known:
            raise SpecError(f"stacks.yaml: {name}: {UnknownName('fact of a stack', key, known)}")
    return Stack(name=name, **entry)
