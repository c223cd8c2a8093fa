"""The prediction of a training step: seconds with a range, their breakdown, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.columns import DIFFERS, HIGH, SOME, Column, Result, Row
from perfmodel.graph.live import Memory
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.flops import USUAL, flops_per_token
from perfmodel.networks.network import Network
from perfmodel.published import Nearest
from perfmodel.training.plan import Plan
from perfmodel.units import binary

if TYPE_CHECKING:
    from perfmodel.graph.tree import Tree
    from perfmodel.training.pipeline import Timeline


def fits(row: Row) -> str:
    """Whether a step fits into its device's memory, or the missing bytes."""
    lacking = row["memory_total_bytes"] - (row["capacity_bytes"] or row["memory_total_bytes"])
    return "yes" if row["fits"] else f"not by {binary(lacking)}"


@dataclass(frozen=True)
class Step(Result):
    """One training step. Times in seconds, of the busiest device."""

    network: Annotated[Network, Column("network", of="name", when=DIFFERS, number=False)]
    """The network."""
    plan: Annotated[
        Plan,
        Column(key="devices", of="devices"),
        Column(key="plan", of="settings"),
        Column(key="global_batch", of="global_batch"),
    ]
    """The plan."""
    device: Annotated[str, Column("device", when=DIFFERS)]
    """The device's slug."""
    seconds: Annotated[float, Column("step", key="step_us", scale=1e6)]
    """Seconds of one step, the optimiser's update included."""
    low_seconds: Annotated[float, Column(key="low_us", scale=1e6)]
    """Low end of its 80 % range."""
    high_seconds: Annotated[float, HIGH]
    """High end."""
    forward_seconds: Annotated[float, Column(key="forward_us", scale=1e6)]
    """Forward pass of one micro-batch by itself, through all layers."""
    backward_seconds: Annotated[float, Column(key="backward_us", scale=1e6)]
    """Backward pass of one micro-batch, with recomputation."""
    bubble_seconds: Annotated[float, Column(key="bubble_us", scale=1e6)]
    """Seconds that the busiest stage waits for other stages."""
    recompute_seconds: Annotated[float, Column(key="recompute_us", scale=1e6)]
    """Seconds of kernels that recomputation runs again, a part of their classes'."""
    classes: Annotated[Mapping[str, float], Column(key="by_class_us", scale=1e6)]
    """Seconds of a step by class; the remainder is `host`."""
    memory: Annotated[
        Memory,
        Column(key="memory_bytes", of="lines", place=1),
        Column("memory", key="memory_total_bytes", of="peak_bytes", place=1),
        Column(key="capacity_bytes", of="capacity_bytes", place=1),
        Column("fits", fits, number=False, key="fits", of="fits", place=1),
    ]
    """Memory of the fullest device."""
    peak_flops: float
    """The device's dense peak in the type of the products."""
    assumptions: Annotated[tuple[str, ...], Column(place=3)]
    """Assumptions, each once."""
    known_device: Annotated[str, Column(place=2)] = "none"
    """The level of knowledge about the device that most of the kernels' time has."""
    timeline: Timeline | None = None
    """A pipeline's tasks with their times; None with one stage."""
    nearest: Annotated[Nearest | None, Column(place=4)] = None
    """The nearest published run; None where none is near or none was looked for."""
    tree: Tree | None = None
    """Kernels, exchanges and waits of the busiest stage, which add up to the step; None: not
    kept."""

    @property
    def host_bytes(
        self,
    ) -> Annotated[float | None, Column("host memory", show="binary", when=SOME, place=2)]:
        """Bytes that the step keeps in host memory for its fullest device; None: nothing."""
        return self.memory.footprints.get("host")

    @property
    def kernels(
        self,
    ) -> Annotated[list[dict[str, Any]] | None, Column(when=SOME, place=4)]:
        """Data of each kernel with all its runs on the busiest stage; None: not kept."""
        return None if self.tree is None else self.tree.parts

    @property
    def limiter(self) -> Annotated[str, Column("limiter", rank=3, place=2)]:
        """The class with the most seconds."""
        return max(self.classes, key=self.classes.__getitem__)

    @cached_property
    def tokens_per_second(self) -> Annotated[float, Column(key="tokens_per_s")]:
        """Real tokens a second of all devices."""
        return self.plan.real_tokens / self.seconds

    @cached_property
    def trained_parameters(self) -> Annotated[int, Column(place=2)]:
        """Parameters that train: of n × m adapters of rank r each r·(n + m)."""
        return parameter_count(self.network, self.plan.tuning, trained=True)

    @property
    def tokens_per_second_per_device(
        self,
    ) -> Annotated[float, Column("tokens/s a device", show="count", key="tokens_per_s_per_device")]:
        """Tokens a second of one device."""
        return self.tokens_per_second / self.plan.devices

    def flops_per_second_per_device(self, convention: str = USUAL) -> float:
        """Model FLOP/s of one device by a named convention."""
        plan = self.plan
        flops = flops_per_token(self.network, plan.document, convention, plan.tuning)
        return flops * self.tokens_per_second_per_device

    def mfu(self, convention: str = USUAL) -> float:
        """Model FLOP/s over the dense peak."""
        return self.flops_per_second_per_device(convention) / self.peak_flops

    @property
    def mfus(self) -> Annotated[Mapping[str, float], Column(key="mfu")]:
        """Model FLOP/s over the dense peak by each convention."""
        return {name: self.mfu(name) for name in ("causal", "megatron", "palm")}
