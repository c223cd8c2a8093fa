"""Software stacks: which operations of a layer share a kernel (`stacks.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from perfmodel.catalogue import Table


@dataclass(frozen=True)
class Stack:
    """One software stack; a feature that its entry does not name is off."""

    name: str
    """Name on the command line."""
    about: str
    """One-line description."""
    source: str
    """Source of its facts."""
    library: str
    """Library of its products and row-wise kernels, by its name in tables (`names.yaml`)."""
    like: str = ""
    """The stack whose facts hold where its own entry has none."""
    software: tuple[str, ...] = ()
    """Words by which tables name the program."""
    attention: str = "flash"
    """`unfused`: product, softmax, product; `flash`: one kernel."""
    flash_kernel: str = ""
    """The fused attention kernel that it calls; empty: a generic good library's."""
    head_copies: bool = False
    """Whether copies change the layout to heads × tokens before attention, and back after it."""
    scale_pass: bool = False
    """Whether scores are scaled by a kernel of their own."""
    mask: str = "fused"
    """`pass`: the mask is added in a pass over the scores; `fused`: inside the softmax."""
    joined_latents: bool = False
    """Whether latent attention has one product for its latents of queries and of keys and
    values."""
    reduces_experts_once: bool = False
    """Whether the sums of chosen and shared experts are added before devices reduce them."""
    fused_shared_experts: bool = False
    """Whether shared experts run as further experts of the grouped products, in inference and
    where experts are not spread over devices."""
    joined_products: bool = False
    """Whether queries, keys and values are one product, and gate and up another."""
    joins_maps: bool = False
    """Whether consecutive element-wise maps share a kernel."""
    fused_norm: bool = False
    """Whether an RMS norm is one kernel; a layer norm always is."""
    fused_rotary: bool = False
    """Whether rotary positions are one kernel for queries and keys."""
    fused_dropout_add: bool = False
    """Whether dropout and the residual sum are one kernel."""
    experts_apart: bool = False
    """Whether each expert's product is a kernel of its own, instead of one grouped kernel."""
    whole_experts: bool = False
    """Whether the devices of tensor hold whole experts by default, where they split rows."""
    dispatchers: tuple[str, ...] = ()
    """Kernels that send tokens to the devices of their experts and back, NAME-dispatch and
    NAME-combine (`deepep.yaml`), of which the first runs whose buffers hold a device's tokens;
    none: the library's all-to-all."""
    gathers_tokens: bool = False
    """Whether devices that share experts gather all tokens, and scatter the sums of their results,
    in place of an all-to-all of rows."""
    splits_sequence: bool = False
    """Whether devices that share a layer split the rows of norms and residuals by default (sequence
    parallelism)."""
    softmax_multiple: int = 1
    """Number of which sequences × heads of a device are a multiple, or its fused softmax does not
    run: then scores are cast, scaled and masked by kernels of their own, and softmax is in fp32."""
    main_gradients: str = ""
    """What accumulates 16-bit weight gradients into fp32 buffers: `fused`, the product; `apart`, a
    kernel in every micro-batch, where gradients are bf16."""
    autocast: bool = False
    """Whether weights are fp32 and cast in each forward pass, with norms and losses in fp32
    (torch.amp)."""
    fp32_softmax: bool = False
    """Whether unfused attention of the families after Llama keeps the fp32 result of its softmax
    (transformers, `eager_attention_forward`)."""
    fused_gate: bool = False
    """Whether the gate's activation and its product with the other half share a kernel."""
    plain_gelu_new: bool = False
    """Whether GPT-2's gelu approximation runs as the eight plain operators of its Python code."""
    masked_logits: bool = False
    """Whether BERT's language head covers only the masked tokens."""
    loss: str = "eager"
    """`eager`: an fp32 copy of the logits and a softmax of it; `parts`: a kernel for
    each step of it in fp32 (Megatron); `fused`: one kernel each way;
    `in-place`: the same, whose gradient overwrites the logits; `chunked`:
    inside the head's product, a chunk of logits in memory."""
    loss_chunks: int = 0
    """Chunks of tokens whose logits are widened to fp32 in memory one after another; 0: none is."""
    tiles: int = 1
    """Tiles in which a product sends its rows to the devices that share it, or receives them."""
    gathers_context: bool = False
    """Whether devices that split a sequence gather all keys and values before attention, in place
    of a ring beside it."""
    sends_beside: bool = False
    """Whether the devices of a layer add up a product's gradient of its input beside the gradient
    of its weights, and gather an input again beside the former."""
    interleaves_since: int = 0
    """First year in which its deep pipelines run several chunks a stage; 0: never."""
    sends_whole: bool = False
    """Whether each device of a stage sends all rows to the next stage, instead of its share."""
    fused_adapters: bool = False
    """Whether an adapter's product adds to the output of the frozen product (LoRA)."""
    gathers_again: bool = False
    """Whether ZeRO 3 gathers a layer's weights for its recomputation, and again for its backward
    pass."""
    keeps_weights: bool = False
    """Whether ZeRO 3 in a pipeline keeps gathered weights until the step's last backward pass."""
    one_adapter: bool = False
    """Whether weights in shards (ZeRO 3) enter a node through one adapter."""
    zero: int = 0
    """ZeRO stage of its recipes, for rows of a table that name none."""
    packed_fill: dict[int, float] = field(default_factory=dict, hash=False)
    """Share of a row that one sequence fills where it packs pretraining sequences, by the row's
    length."""
    overlaps_gradients: bool = False
    """Whether copies reduce their gradients during the backward pass."""
    precision: str = ""
    """Recipe of mixed precision; empty: by the gradients it accumulates."""
    optimiser: str = "fused"
    """Implementation of the optimiser: fused, foreach or multi-tensor."""
    host: str = "eager"
    """Entry of hosts.yaml with its launch times."""


STACKS = Table("stack", Stack, Path(__file__).with_name("stacks.yaml"), "stacks")
"""The stacks, in file order."""
load, names = STACKS.load, STACKS.names


def of_program(software: str, stack: str = "") -> str:
    """The stack of the program that `software` names, if it is like `stack`; else `stack`."""
    programs = {
        word: entry.name
        for entry in STACKS.values()
        for word in entry.software
        if word in software.lower() and stack in ("", entry.like)
    }
    return programs[max(programs, key=len)] if programs else stack
