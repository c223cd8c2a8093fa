"""A network: sizes, blocks in order, embeddings and heads. It has no batch and no device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks.images import Patches, Projector
from perfmodel.networks.sound import Frames

if TYPE_CHECKING:
    from perfmodel.graph import Tree
    from perfmodel.hardware import Device
    from perfmodel.networks.segment import Segment
    from perfmodel.networks.setting import Setting

Norm = Literal["layernorm", "rmsnorm"]
ACTIVATIONS = ("gelu", "gelu_new", "relu", "silu")
"""Activations of the inner layer: gelu by the error function, gelu by its tanh approximation, relu,
silu."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: queries, keys and values through low ranks (DeepSeek-V2,
    2405.04434, section 2.1)."""

    kv_rank: int
    """Width of the latent that keys and values come from."""
    nope: int
    """Columns of a head without rotary positions."""
    rope: int
    """Columns of a head with rotary positions; all heads share their keys."""
    value: int
    """Width of a head's values."""
    q_rank: int = 0
    """Width of the queries' latent; 0: queries are projected from the hidden state directly."""


@dataclass(frozen=True)
class Indexer:
    """Choice of the keys that a query attends to: small heads that share one key score all of them
    (DeepSeek-V3.2-Exp, lightning indexer). Queries come from the queries' latent."""

    heads: int
    """Heads that score."""
    size: int
    """Width of such a head and of the key that they share."""
    chosen: int
    """Keys that are chosen for a query."""


@dataclass(frozen=True)
class State:
    """A state of fixed size for each head, in place of keys and values of every token: state-space
    layers (Mamba-2, 2405.21060) and linear attention (Gated DeltaNet, 2412.06464).

    Heads of keys (`kv_heads`, groups in Mamba) are shared by heads of values (`heads`, of width
    `head_size`).
    """

    key_size: int
    """Width of a head's keys and queries: rows of the state."""
    taps: int = 4
    """Taps of the convolution before the state; 0: no convolution."""
    taps_bias: bool = False
    """Whether the convolution has a bias."""
    gated: bool = False
    """Whether a gate, from the layer's input, scales the output."""
    rank: int = 0
    """Width through which the gate and a decay of every key channel are projected (Kimi Linear);
    0: the gate is projected directly, and a head has one decay."""
    decays: int = 0
    """Numbers that are projected for each head of values: its decay and strength."""
    selective: int = 0
    """Width of the time step, from which and from the convolved input a decay of every channel is
    made (Mamba, 2312.00752); 0: decays come from the layer's input."""
    scalars: int = 0
    """Parameters of a head of values: its decay, bias and skip."""
    norm: Literal["all", "head", "none"] = "none"
    """Norm of the output: over all heads, over each head, or none."""


@dataclass(frozen=True)
class SelfAttention:
    """Attention of a block: multi-head, grouped, latent, or with a state of fixed size."""

    heads: int
    """Query heads."""
    kv_heads: int
    """Key-value heads; as many as query heads in plain multi-head attention."""
    head_size: int
    """Width of a head."""
    causal: bool = True
    """Whether a token sees only itself and those before it."""
    window: int = 0
    """Nearest keys that a query sees; 0: all."""
    chunk: int = 0
    """Tokens of a chunk; a token sees only its own chunk (Llama 4's local layers). 0: no chunks."""
    qkv_bias: bool = False
    """Whether the projections of queries, keys and values have a bias."""
    plain_keys: bool = False
    """Whether that of the keys has none all the same (Whisper)."""
    output_bias: bool = False
    """Whether the output projection has one."""
    head_norm: bool = False
    """Whether each head's queries and keys are normalised (RMS, a weight of a head's width)."""
    rotary: bool = True
    """Whether queries and keys are rotated by their positions."""
    joined: bool = False
    """Whether the published code has one product for queries, keys and values."""
    sinks: bool = False
    """Whether each head has a learned score that takes part in its softmax (gpt-oss)."""
    relative_buckets: int = 0
    """Learned biases of a head by distance (T5), in the first block of a stack; 0: none."""
    value_size: int = 0
    """Width of a head's values; 0: that of its keys."""
    shared_values: bool = False
    """Whether one projection makes keys and values (Gemma 4's global layers)."""
    gated: bool = False
    """Whether a gate of the output's width, from the same input, scales it (Qwen3-Next)."""
    borrowed: bool = False
    """Whether keys and values are those of an earlier layer, which caches them (Gemma 3n)."""
    latent: Latent | None = None
    """Latent attention, in place of plain projections."""
    indexer: Indexer | None = None
    """Choice of the keys that are attended to; None: all of the mask's."""
    state: State | None = None
    """A state of fixed size, in place of keys and values."""

    def __post_init__(self) -> None:
        for name in ("heads", "kv_heads", "head_size"):
            _check_whole(f"attention: {name}", getattr(self, name))
        if self.heads % self.kv_heads:
            raise ProblemError(
                f"heads must be a multiple of kv_heads, but {self.heads} heads are not one of "
                f"{self.kv_heads}; {_divisors(self.heads)} divide them"
            )
        _check_whole("attention: window", self.window, least=0)
        _check_whole("attention: chunk", self.chunk, least=0)
        if self.window and self.chunk:
            raise ProblemError("attention has a window or chunks, not both; drop one")
        if self.indexer is not None and (self.latent is None or not self.latent.q_rank):
            raise ProblemError("attention: indexer goes with a latent of queries; give q_rank")
        if self.state is not None:
            _check_whole("attention: state: key_size", self.state.key_size)

    @property
    def score_width(self) -> int:
        """Width of a head's queries and keys."""
        if self.state is not None:
            return self.state.key_size
        return self.head_size if self.latent is None else self.latent.nope + self.latent.rope

    @property
    def value_width(self) -> int:
        """Width of a head's values."""
        return self.value_size or self.head_size if self.latent is None else self.latent.value

    @property
    def span(self) -> int:
        """Tokens whose keys and values are kept; 0: all of them."""
        return self.window or self.chunk

    @property
    def reach(self) -> int:
        """Keys that a query attends to at most; 0: all of the mask's."""
        return self.span if self.indexer is None else self.indexer.chosen


@dataclass(frozen=True)
class Mlp:
    """The inner layer of a block: two products, or three where gated; one, or one of many experts.

    With experts a router sends each token to `chosen` of them.
    """

    inner: int
    """Width of the inner layer; with experts, of one expert. 0: the block has no inner layer."""
    gated: bool = True
    """Whether a second product gates the first."""
    activation: str = "silu"
    """One of `ACTIVATIONS`."""
    bias: bool = False
    """Whether its products have biases; with experts, theirs too."""
    experts: int = 0
    """Experts; 0: the layer is dense."""
    chosen: int = 0
    """Experts that a token goes to."""
    shared_inner: int = 0
    """Width of the expert that every token goes to; 0: none."""
    shared_gate: bool = False
    """Whether a learned gate, one number a token, scales the shared expert (Qwen2-MoE)."""
    router_bias: bool = False
    """Whether each expert has a bias: in the choice of experts (DeepSeek-V3) or the router
    (gpt-oss)."""
    imbalance: float = 1.0
    """Load imbalance: rows of the fullest expert over the mean."""
    groups: int = 0
    """Groups of experts that the router is limited to `chosen_groups` of; 0: no groups."""
    chosen_groups: int = 0
    """Groups that a token's experts are in at most (DeepSeek-V3, 2412.19437, section 2.1.2)."""

    def __post_init__(self) -> None:
        _check_whole("mlp: inner", self.inner, least=0)
        if self.activation not in ACTIVATIONS:
            raise UnknownName("activation", self.activation, ACTIVATIONS)
        _check_whole("mlp: experts", self.experts, least=0)
        if self.experts and not 1 <= self.chosen <= self.experts:
            raise ProblemError(
                f"a token goes to {self.chosen} of {self.experts} experts; "
                f"chosen is from 1 to {self.experts}"
            )
        if self.chosen and not self.experts:
            raise ProblemError("mlp: chosen goes with experts; give experts, or drop it")
        if self.groups and not 1 <= self.chosen_groups <= self.groups <= self.experts:
            raise ProblemError(
                f"mlp: experts are in {self.chosen_groups} of {self.groups} groups; chosen_groups "
                "is from 1 to groups, and groups at most experts"
            )
        if self.imbalance < 1.0:
            raise ProblemError("mlp: imbalance is 1 where tokens spread evenly, and more elsewhere")


@dataclass(frozen=True)
class Block:
    """One layer or several equal ones: attention and an inner layer, each with a residual sum."""

    attention: SelfAttention
    """Self-attention."""
    mlp: Mlp
    """The inner layer."""
    repeat: int = 1
    """How many layers are like this."""
    norm_after: bool = False
    """Whether norms follow the residual sums (BERT); otherwise they precede each part."""
    parallel: bool = False
    """Whether attention and inner layer read one norm and are added together (PaLM, Falcon)."""
    own_norm: bool = False
    """Whether the inner layer of a parallel block has its own norm (Falcon-40B, GPT-NeoX)."""
    sandwich: bool = False
    """Whether each part is followed by a second norm (Gemma 2 and 3)."""
    cross: SelfAttention | None = None
    """Cross-attention to the encoder's output, between the two parts of a decoder layer."""
    low_rank: int = 0
    """Width of two products beside attention, from its input (LAuReL, 2411.07501); 0: none."""
    scaled: bool = False
    """Whether a learned number of each column scales the output of each part (InternVL)."""

    def __post_init__(self) -> None:
        _check_whole("block: repeat", self.repeat)
        if self.own_norm and not self.parallel:
            raise ProblemError("block: own_norm goes with parallel; give both, or drop it")


@dataclass(frozen=True)
class Network:
    """A transformer. Raises `ProblemError` and `UnknownName` for sizes that make no network."""

    name: str
    """Name in results."""
    hidden: int
    """Width of the residual stream."""
    vocabulary: int
    """Size of the vocabulary; rows of the embedding. 0 for an encoder of images."""
    blocks: tuple[Block, ...]
    """Layers in order; in an encoder-decoder, the decoder's."""
    encoder: tuple[Block, ...] = ()
    """Layers of the encoder in an encoder-decoder; else empty."""
    norm: Norm = "rmsnorm"
    """Which norm its layers have."""
    norm_bias: bool = False
    """Whether layer norms have a bias beside their weight."""
    positions: int = 0
    """Rows of a table of learned positions; 0: none."""
    token_types: int = 0
    """Rows of a table of token types (BERT's segments)."""
    embedding_norm: bool = False
    """Whether a norm follows the embeddings."""
    final_norm: bool = True
    """Whether a norm precedes the head."""
    tied: bool = False
    """Whether the head shares the embedding's weight."""
    head: Literal["language", "pretraining", "pooler", "none"] = "language"
    """`language`: logits of every token; `pretraining`: BERT's two heads; `pooler`: BERT's dense
    layer over the first token; `none`."""
    head_bias: bool = False
    """Whether the language head has a bias."""
    dropout: float = 0.0
    """Share of activations that training drops by default."""
    family: str = ""
    """Family of the code: bert, gpt2, llama, ..."""
    weights: str = ""
    """Format of the released checkpoint's weights, where it is narrower than 16 bits: mxfp4,
    fp8_block."""
    about: str = ""
    """One-line description."""
    source: str = ""
    """Source of its sizes."""
    sizes: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Published totals to check against: `parameters`, `active`."""
    layer_embedding: int = 0
    """Width of an embedding that each layer has of its own (Gemma 3n); 0: none."""
    layer_vocabulary: int = 0
    """Rows of the tables of those embeddings."""
    streams: int = 1
    """Residual streams: a layer works on one, and mixes all before and after (AltUp,
    2301.13310)."""
    tower: Network | None = None
    """A network whose output joins the prompt: the encoder of images. It runs before the first
    token, and its parameters are not among those of this network."""
    patches: Patches | None = None
    """How an encoder reads images; None: a network reads tokens."""
    projectors: tuple[Projector, ...] = ()
    """What makes an encoder's output the tokens of another network, in place of a head."""
    frames: Frames | None = None
    """How the encoder reads sound; None: it reads tokens."""

    def __post_init__(self) -> None:
        _check_whole("hidden", self.hidden)
        _check_whole("vocabulary", self.vocabulary, least=0 if self.patches else 1)
        _check_whole("positions", self.positions, least=0)
        if not self.blocks:
            raise ProblemError(f"network {self.name} has no blocks; add one")
        if not 0.0 <= self.dropout < 1.0:
            raise ProblemError(f"dropout is {self.dropout}; it is a share below 1, such as 0.1")
        if self.norm not in ("layernorm", "rmsnorm"):
            raise UnknownName("norm", self.norm, ("layernorm", "rmsnorm"))
        if self.weights:
            element(self.weights)

    def predicted(self, machine: Device, **options: Any) -> Tree:
        """The time of a pass on a device; `options` are the fields of `Setting`."""
        from perfmodel.networks.networktime import predict_network
        from perfmodel.networks.setting import Setting

        return predict_network(self, Setting(**options), machine)

    def own_segments(self, setting: Setting) -> tuple[Segment, ...] | None:
        """The segments of a network that is more than its blocks; None: they follow from these."""
        return None

    def own_flops(self, seq: int, convention: str) -> float | None:
        """Operations of a token in training, where they do not follow from blocks."""
        return None

    def reading(self, tensor: int = 1) -> Network | None:
        """The network whose pass stands before the first token: the tower, or the encoder of an
        encoder-decoder with the keys and values that each layer of the decoder makes of its output,
        a share of `tensor` devices; None where there is none."""
        if not self.encoder:
            return self.tower
        keys = tuple(
            Projector((block.cross.kv_heads // tensor * width,), bias=block.cross.qkv_bias,
                      repeat=block.repeat)
            for block in self.blocks if block.cross is not None
            for width in (block.cross.score_width + block.cross.value_width,)
        )  # fmt: skip
        return replace(
            self, name=f"{self.name} encoder", blocks=self.encoder, encoder=(), head="none",
            projectors=keys, sizes={},
            positions=0 if self.frames else self.positions,
        )  # fmt: skip

    @property
    def layers(self) -> int:
        """Layers of the decoder; of the encoder in an encoder-only network."""
        return sum(block.repeat for block in self.blocks)


def _check_whole(name: str, value: int, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ProblemError(f"{name} is {value}; give a whole number of {least} or more")


def _divisors(number: int) -> str:
    """The divisors of a count of heads, for error messages."""
    divisors = [str(n) for n in range(1, number + 1) if number % n == 0]
    return ", ".join(divisors[-12:])
