"""Random small networks, and what tests read off their graphs."""

from __future__ import annotations

from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.setting import Setting, Shards
from perfmodel.networks.stack import load as stack
from perfmodel.networks.stack import names as stacks

STACKS = stacks()


@st.composite
def attentions(draw, multiple: int = 1) -> SelfAttention:
    """Heads and key-value heads that are multiples of a number of devices."""
    kv = multiple * draw(st.integers(1, 2))
    return SelfAttention(
        heads=kv * draw(st.integers(1, 3)),
        kv_heads=kv,
        head_size=8 * draw(st.integers(1, 4)),
        causal=draw(st.booleans()),
        window=draw(st.sampled_from([0, 0, 16])),
        qkv_bias=draw(st.booleans()),
        head_norm=draw(st.booleans()),
        rotary=draw(st.booleans()),
    )


@st.composite
def networks(draw, multiple: int = 1, experts: bool | None = None) -> Network:
    """A decoder or an encoder of few layers, whose parts divide by `multiple` devices."""
    sparse = draw(st.booleans()) if experts is None else experts
    many = multiple * draw(st.integers(2, 4)) if sparse else 0
    gated = draw(st.booleans())
    mlp = Mlp(
        inner=multiple * 16 * draw(st.integers(1, 6)),
        gated=gated,
        activation="silu" if gated else draw(st.sampled_from(["gelu", "gelu_new", "relu"])),
        experts=many,
        chosen=draw(st.integers(1, 2)) if many else 0,
        shared_inner=multiple * 16 * draw(st.integers(0, 1)) if many else 0,
    )
    parallel = draw(st.booleans()) and not many
    block = Block(draw(attentions(multiple)), mlp, draw(st.integers(1, 3)), parallel=parallel)
    return Network(
        name="random",
        hidden=16 * draw(st.integers(1, 6)),
        vocabulary=multiple * draw(st.integers(8, 90)),
        blocks=(block,),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm"])),
        positions=draw(st.sampled_from([0, 64])),
        tied=draw(st.booleans()),
        dropout=draw(st.sampled_from([0.0, 0.1])),
    )


def setting(batch=2, seq=32, name="megatron", shards=None, training=True, **more) -> Setting:
    """Circumstances of a pass, small unless told, with the attention that its stack published."""
    more = {"attention": "", **more}
    return Setting(
        batch, seq, training=training, stack=stack(name), shards=shards or Shards(), **more
    )


def contractions(passed) -> float:
    """Operations of a pass's products and attention."""
    return sum(
        node.repeat * node.problem.flops()
        for node in passed.nodes
        if isinstance(node.problem, Matmul | Attention)
    )


def operations(segments, way: str) -> float:
    """The same of all layers."""
    return sum(one.repeat * contractions(getattr(one, way)) for one in segments)
