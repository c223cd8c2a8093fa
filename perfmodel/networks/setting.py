"""How a network runs: types, software stack, batch, and each device's share of the tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import PASS, FieldOption
from perfmodel.networks.finetuning import FineTuning, Gradients, Stored
from perfmodel.networks.loads import Loads
from perfmodel.networks.stack import Stack, load, names

NARROW = ("fp8", "nvfp4")
"""Types that only linear layers use; activations stay in 16 bits."""
DTYPES = ("fp32", "tf32", "fp16", "bf16", *NARROW)
"""Types of the products."""


def _attentions() -> Iterable[str]:
    """Names for attention: separate operators, the stack's fused kernel, or a library's kernel."""
    from perfmodel.timing.libraries import implementations

    return ("unfused", "flash", *implementations("attention"))


Dtype = Annotated[str, FieldOption(PASS, "TYPE", single=True, names=DTYPES)]
Attention = Annotated[
    str,
    FieldOption(
        PASS,
        "NAME",
        single=True,
        names=_attentions,
        help="Attention: flash (the stack's fused kernel), unfused, or the name of a kernel such "
        "as flash2; empty: as the stack was published.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Shards:
    """How many devices share the tensors of one layer."""

    tensor: int = 1
    """Devices that heads, inner layers and the vocabulary are split over."""
    sequence: bool = False
    """Whether those devices also split the rows of norms, dropout and residuals (Korthikanti)."""
    context: int = 1
    """Devices that a sequence's tokens are split over, attention included."""
    expert: int = 1
    """Devices that the experts are split over."""
    redundant: int = 0
    """Experts that have a second copy, so that their tokens are shared out."""
    expert_tensor: bool = True
    """Whether each expert is split over the devices of `tensor` as well."""
    expert_inside: bool = False
    """Whether the devices of `expert` are among those of `tensor`. These have all tokens, so
    experts are reached without an exchange, and their sums are reduced like those of a dense
    layer."""


@dataclass(frozen=True)
class Setting:
    """Options of one pass. Raises `ProblemError` and `UnknownName`."""

    batch: int
    """Sequences of a micro-batch on one device."""
    seq: int
    """Tokens of each sequence."""
    past: int = 0
    """Tokens before them, whose keys and values are in the KV cache."""
    training: bool = False
    """Whether a backward pass follows."""
    dtype: Dtype = "bf16"
    """Type of the matrix products."""
    stack: Annotated[Stack, FieldOption(PASS, "NAME", single=True, names=names(), read=load)] = (
        field(default_factory=lambda: load("eager"))
    )
    """Software stack."""
    attention: Attention = "flash"
    """`unfused`, `flash`, or the name of a fused kernel; empty: the stack's choice."""
    dropout: float | None = None
    """Dropout rate in training; None: the network's."""
    loss: bool = True
    """Whether training includes the loss: cross-entropy, forward and backward."""
    ends: bool = True
    """Whether embeddings and head run too; otherwise only the layers."""
    logits: str = "all"
    """Tokens with logits: `all`, or the `last` of each sequence."""
    shards: Shards = field(default_factory=Shards)
    """Each device's share."""
    loads: Loads = field(default_factory=Loads)
    """Rows of the experts."""
    tuning: FineTuning | None = None
    """What trains; None: every weight."""
    stored: Stored | None = None
    """How frozen matrices are kept; None: in the type of the products."""
    gradients: Gradients = "all"
    """Of an operation: the gradients that its backward pass makes."""
    fill: float = 1.0
    """Share of the tokens that are real; attention skips the rest, padding."""
    packed: float = 1.0
    """Documents in a sequence, each of which attends only to itself."""

    def __post_init__(self) -> None:
        for name in ("batch", "seq"):
            if getattr(self, name) < 1:
                raise ProblemError(f"{name} is {getattr(self, name)}; it is 1 or more")
        if not 0.0 < self.fill <= 1.0 or not 1.0 <= self.packed <= self.seq:
            raise ProblemError(
                f"fill is {self.fill:g} and packed {self.packed:g}; give fill above 0 and at most "
                f"1, and packed from 1 to {self.seq} documents"
            )
        if self.past < 0:
            raise ProblemError(f"past is {self.past}; it is 0 or more")
        if self.dtype not in DTYPES:
            raise UnknownName("type of a network's products", self.dtype, DTYPES)

    @property
    def pass_(self) -> str:
        """`train` or `forward`."""
        return "train" if self.training else "forward"

    @property
    def tokens(self) -> int:
        """Tokens of one pass on one device."""
        return self.batch * self.seq // self.shards.context

    @property
    def document(self) -> int:
        """Real tokens of a document, on average."""
        return max(int(self.seq * self.fill / self.packed), 1)

    @property
    def trains(self) -> bool:
        """Of an operation: whether its own weights have gradients."""
        return self.gradients in ("all", "weights")

    @property
    def data(self) -> str:
        """Type of activations in memory."""
        if self.dtype in NARROW:
            return "bf16"
        return "fp32" if self.dtype == "tf32" else self.dtype

    @property
    def multiplied(self) -> str:
        """Type of products outside linear layers: in attention and the head."""
        return self.data if self.dtype in NARROW else self.dtype

    @property
    def wide(self) -> bool:
        """Whether activations are fp32."""
        return element(self.data).bytes == 4

    @property
    def fused_attention(self) -> str:
        """The fused attention kernel; empty where attention is unfused."""
        choice = self.attention or self.stack.attention
        if choice == "unfused":
            return ""
        return self.stack.flash_kernel or "flash" if choice == "flash" else choice

    def flash_kernel(self) -> str | None:
        """The kernel's name for the time model; None: a generic good library."""
        return None if self.fused_attention == "flash" else self.fused_attention


def step(batch: int, context: int, *, ends: bool = True) -> Setting:
    """A decode step of `batch` sequences of `context` tokens, the new one included. Without `ends`
    it has only the layers, no embedding and no head."""
    return _pass(batch, 1, context - 1, ends)


def prompt(batch: int, tokens: int, *, ends: bool = True) -> Setting:
    """A prefill pass over `tokens` tokens of each of `batch` prompts."""
    return _pass(batch, tokens, 0, ends)


def _pass(batch: int, seq: int, past: int, ends: bool) -> Setting:
    """An inference pass as serving engines run it: CUDA graphs, 16 bits, logits only where
    needed."""
    fused = load("captured")
    return Setting(batch, seq, past, dtype="fp16", stack=fused, logits="last", ends=ends)
