"""Fine-tuning: which weights of a network train, and the adapters beside those that do not.

    LoRA      W + s·A·B beside a frozen W: two products of rank r (2106.09685, section 4.1)
    QLoRA     LoRA beside a W in 4 bits, dequantised before each product (2305.14314, section 3)
    DoRA      a trained length for each column of W + s·A·B (2402.09353, section 4)
    frozen    a weight without a gradient: no product for it, no input kept for it, no states

adapters.py rewrites the operations of layers; passes, activations, exchanges and states follow from
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption

Gradients = Literal["all", "input", "weights", "none"]
"""Gradients that an operation's backward pass makes: of its inputs, of its weights."""
PANEL = "Fine-tuning"
"""Heading of its options."""
GROUPS = ("attention", "mlp", "all")
"""Names of several products, as targets of adapters."""
PRODUCTS = ("q", "k", "v", "o", "gate", "up", "down")
"""Names of single products: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj."""
PARTS = ("embedding", "attention", "mlp", "norm", "head")
"""Parts of a network whose own weights train or not."""


@dataclass(frozen=True)
class Stored:
    """How frozen matrices are kept in memory."""

    bits: float
    """Bits of a weight, scales included."""
    group: int = 0
    """Weights that share a scale which is itself quantised (double quantisation); 0: none is."""


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """What trains. Raises `ProblemError` and `UnknownName`."""

    lora: Annotated[int, FieldOption(PANEL, "RANK", least=0)] = 0
    """Rank of LoRA adapters beside frozen weights; 0: none."""
    lora_targets: Annotated[
        str, FieldOption(PANEL, "NAMES", single=True, names=(*GROUPS, *PRODUCTS))
    ] = "attention"
    """Products with adapters, with commas."""
    lora_dropout: Annotated[float, FieldOption(PANEL, "RATE", least=0, most=1)] = 0.0
    """Dropout rate of the adapters' inputs."""
    dora: Annotated[bool, FieldOption(PANEL)] = False
    """Train the length of each column too (DoRA)."""
    base: Annotated[
        str,
        FieldOption(PANEL, "FORMAT", single=True, names="perfmodel.compression.quantised:names"),
    ] = ""
    """Format of frozen matrices, dequantised before each product: nf4 is QLoRA's [default: the
    type of the products]."""
    trains: Annotated[
        str, FieldOption(PANEL, "PARTS", single=True, names=(*PARTS, "all", "none"))
    ] = ""
    """Parts whose own weights train, with commas [default: all, and none beside adapters]."""
    frozen_layers: Annotated[int, FieldOption(PANEL, least=0, single=True)] = 0
    """Number of layers that do not train, from the first on, nor the embedding before them."""

    @property
    def tunes(self) -> bool:
        """Whether some weight does not train."""
        return bool(self.lora or self.frozen_layers or self.trains not in ("", "all"))

    def check_tuning(self) -> None:
        """Raise `ProblemError` for fields that do not go together, `UnknownName` for a name."""
        for name in self.lora_targets.split(","):
            if name not in (*GROUPS, *PRODUCTS):
                raise UnknownName("target of adapters", name, (*GROUPS, *PRODUCTS))
        for name in self.trains.split(","):
            if name not in (*PARTS, "all", "none", ""):
                raise UnknownName("part that trains", name, (*PARTS, "all", "none"))
        for name in ("lora", "frozen_layers"):
            if getattr(self, name) < 0:
                raise ProblemError(f"{name} is {getattr(self, name)}; give 0 or more")
        if not 0.0 <= self.lora_dropout < 1.0:
            raise ProblemError(f"lora_dropout is {self.lora_dropout:g}; give 0 or more, below 1")
        if self.dora and not self.lora:
            raise ProblemError("dora goes with adapters; give lora a rank, such as 16")
        if self.base and not self.tunes:
            raise ProblemError(f"base {self.base} is a format of frozen weights; give lora a rank")

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts whose own weights train."""
        usual = "none" if self.lora else "all"
        names = tuple((self.trains or usual).split(","))
        return PARTS if "all" in names else names


FROZEN = FineTuning(trains="none")
"""Nothing trains."""
