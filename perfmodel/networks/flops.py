"""Model FLOPs of a training token, by the conventions in which MFU is reported.

A matrix product of one token takes 2 operations a weight forward and 4 backward. Attention takes
4·s·a·k a token and layer forward, and twice that backward: s keys, a heads of width k. A state of
fixed size takes 4·a·k·v, v being the width of its values. Of keys that are chosen, those count.

    megatron   6·W + 12·Σ s·a·k        W: weights of products, with the head and without the input
                                       embedding (Korthikanti et al., 2205.05198, Eq. 7)
    causal     6·W + 12·Σ s'·a·k       s': keys that a causal mask leaves a token, on average
    palm       6·N + 12·Σ s·a·k        N: all parameters but the input embedding (PaLM, 2204.02311,
                                       appendix B; nanoGPT, torchtitan)
    palm-all   6·N + 12·Σ s·a·k        N with the embeddings (llm-foundry)
    narayanan  8·(W − head) + 6·head + 16·Σ s·a·k   the forward pass of all layers counted twice
                                       (Narayanan et al., 2104.04473, Eq. 3)

A causal mask leaves s' = (s + 1)/2 keys; with a window of w < s keys w − w·(w − 1)/(2s); with
chunks of c tokens (c + 1)/2, and fewer in a last chunk that is not full. Without a causal mask
`causal` is `megatron`. It is the default: kernels skip masked scores, so counting them overstates
what was computed.

Only `narayanan` counts recomputation. Of the experts, those that a token is routed to count.
"""

from __future__ import annotations

from perfmodel.errors import UnknownName
from perfmodel.networks.expand import active_count, expand, parameters
from perfmodel.networks.finetuning import FineTuning
from perfmodel.networks.network import Network, SelfAttention
from perfmodel.networks.setting import Setting

CONVENTIONS = {
    "megatron": "weights of products and the head, attention without a mask (Korthikanti, Eq. 7)",
    "causal": "the same, only the scores that a causal mask leaves",
    "narayanan": "as megatron, the layers' forward pass twice (Narayanan, Eq. 3)",
    "palm": "6 N without the input embedding, attention without a mask (PaLM, appendix B)",
    "palm-all": "6 N with the embeddings, attention without a mask (llm-foundry)",
}
"""Every convention by name, with what it counts."""
USUAL = "causal"
"""The convention where none is named."""


def flops_per_token(
    network: Network, seq: int, convention: str = USUAL, tuning: FineTuning | None = None
) -> float:
    """Operations of one token's forward and backward pass. Frozen weights take 4 in place of 6, or
    2 where no backward pass comes; adapters count. Raises `UnknownName` for a convention."""
    if convention not in CONVENTIONS:
        raise UnknownName("MFU convention", convention, CONVENTIONS)
    own = network.own_flops(seq, convention)
    if own is not None:
        return own
    weights = {
        "palm": lambda: active_count(network, input_embedding=False),
        "palm-all": lambda: active_count(network),
    }.get(convention, lambda: _product_weights(network))()
    scores = sum(
        block.repeat * _scores(attention, seq, causal=convention == "causal")
        for block in (*network.encoder, *network.blocks)
        for attention in (block.attention, block.cross)
        if attention is not None
    )
    less = 0.0 if tuning is None else _spared(network, tuning, scores)
    if convention == "narayanan":
        head = _head(network)
        return 8.0 * (weights - head) + 6.0 * head + 8.0 * scores - less
    return 6.0 * weights + 6.0 * scores - less


_OPERATIONS = {"all": 6.0, "input": 4.0, "weights": 4.0, "none": 2.0}


def _spared(network: Network, tuning: FineTuning, scores: float) -> float:
    """Operations of a token that fine-tuning has less than a step in which all trains: gradients of
    frozen weights, and all backward passes before what trains; less those of adapters."""
    setting = Setting(batch=1, seq=1, training=True, tuning=tuning)
    segments = expand(network, setting)
    own = {w.name for w, _ in parameters(network)}
    products = [
        (w, segment.repeat)
        for segment in segments
        for w in segment.weights
        if w.kind == "matrix" or w.name == "head.weight"
    ]
    gradients = sum(
        (6.0 * (w.name in own) - _OPERATIONS[w.gradients]) * w.active * n for w, n in products
    )
    idle = sum(s.repeat for s in segments if s.block and not s.active)
    return gradients + 4.0 * scores * idle / network.layers


def _product_weights(network: Network) -> int:
    """Weights of products that one token uses: matrices, and the head's table."""
    matrices = sum(
        weight.active * repeat
        for weight, repeat in parameters(network)
        if weight.kind == "matrix" and weight.name not in ("pooler.weight", "next sentence.weight")
    )
    return matrices + _head(network)


def _head(network: Network) -> int:
    """Weights of the product that makes logits; 0 without a head."""
    return network.vocabulary * network.hidden * (network.head in ("language", "pretraining"))


def _scores(attn: SelfAttention, seq: int, *, causal: bool) -> float:
    """Multiply-adds of both attention products for one token: keys·a·(k + v)."""
    if attn.state is not None:  # what a token adds to the state, and what it reads of it
        return 2.0 * attn.heads * attn.state.key_size * attn.head_size
    keys = min(attn.reach or seq, seq)
    mean_keys = _mean_keys(attn, seq, keys) if causal and attn.causal else keys
    return mean_keys * attn.heads * (attn.score_width + attn.value_width)


def _mean_keys(attn: SelfAttention, seq: int, keys: int) -> float:
    """Keys that a causal mask leaves a token, on average over a sequence."""
    if attn.chunk:
        full, rest = divmod(seq, keys)
        return (full * keys * (keys + 1) + rest * (rest + 1)) / (2 * seq)
    return keys - keys * (keys - 1) / (2 * seq)
