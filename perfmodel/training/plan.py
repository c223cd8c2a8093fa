"""A plan: how a training step is distributed over devices and micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel.compression import quantised
from perfmodel.elements import element
from perfmodel.errors import ProblemError, SizeError, UnknownName
from perfmodel.fieldoption import PASS, PLAN, STEP, FieldOption
from perfmodel.networks import rematerialise
from perfmodel.networks.finetuning import FineTuning, Stored
from perfmodel.networks.loads import Loads
from perfmodel.networks.network import Network
from perfmodel.networks.setting import Attention, Dtype, Setting, Shards
from perfmodel.networks.stack import load as load_stack
from perfmodel.networks.stack import names as stack_names
from perfmodel.networks.value import Weight
from perfmodel.training import optimisers, precision, resharding
from perfmodel.training.pipeline.schedule import KINDS
from perfmodel.training.precision import Precision

if TYPE_CHECKING:
    from perfmodel.hardware import Device
    from perfmodel.networks.network import Network
    from perfmodel.training.result import Step


OFFLOADS = ("none", "optimiser")
"""What lies in host memory and is computed there."""


def _optimisers() -> tuple[str, ...]:
    return (*optimisers.names(), "none")


@dataclass(frozen=True)
class Plan(FineTuning, Loads):
    """One training step. Raises `ProblemError` and `UnknownName`."""

    seq: Annotated[int, FieldOption(STEP, "TOKENS", single=True)] = 2048
    """Tokens of a sequence."""
    micro_batch: Annotated[int, FieldOption(STEP)] = 1
    """Sequences of one pass."""
    accumulation: int = 1
    """Micro-batches of one step on one device (gradient accumulation)."""
    tensor: Annotated[int, FieldOption(PLAN, spellings=("--tensor", "--tp"))] = 1
    """Tensor parallelism: devices that split each layer. They share its heads, its inner layers and
    the vocabulary."""
    sequence: bool | None = None
    """Whether those devices also split the rows of norms and residuals (sequence parallelism);
    None: wherever `tensor` is above 1."""
    pipeline: Annotated[int, FieldOption(PLAN, spellings=("--pipeline", "--pp"))] = 1
    """Pipeline parallelism: stages that the layers are split into."""
    chunks: Annotated[int, FieldOption(PLAN)] = 1
    """Chunks of the network on one stage; 2 or more interleave."""
    data: int = 1
    """Copies of the model, each with sequences of its own (data parallelism)."""
    context: Annotated[int, FieldOption(PLAN, spellings=("--context", "--cp"))] = 1
    """Context parallelism: devices that split each sequence."""
    expert: Annotated[int, FieldOption(PLAN, spellings=("--expert", "--ep"))] = 1
    """Expert parallelism: devices that split the experts. They are among those of `sharing`."""
    expert_tensor: Annotated[
        int, FieldOption(PLAN, spellings=("--expert-tensor", "--etp"), least=0)
    ] = 0
    """Expert-tensor parallelism: devices of `tensor` that split each expert, all of them or 1; 0:
    as the stack does, or 1 where `expert` exceeds `data`."""
    zero: Annotated[int, FieldOption(PLAN, "STAGE", least=0)] = 0
    """ZeRO stage: 1 shards optimiser states, 2 gradients too, 3 weights too (FSDP); 0: none."""
    reshard: Annotated[
        str, FieldOption(PLAN, "CHOICE", names=resharding.CHOICES, read=resharding.choice)
    ] = ""
    """Under ZeRO 3, whether weights are freed after a layer's forward pass: true, false, or split
    over groups of so many devices (FSDP2's reshard_after_forward); empty: as the stack does."""
    recompute: Annotated[
        str, FieldOption(PLAN, "MODE", names=rematerialise.names, read=rematerialise.mode)
    ] = "none"
    """Recomputation of activations: none, selective, selective-op, full, host, full-host, or parts
    with + between them: norms, up (of latents), attention, activations."""
    recompute_layers: Annotated[int | None, FieldOption(PLAN, least=0)] = None
    """Number of layers that recompute, from the first on [default: all]."""
    dtype: Dtype = "bf16"
    """Type of the matrix products."""
    stack: Annotated[str, FieldOption(PASS, "NAME", single=True, names=stack_names())] = "megatron"
    """Software stack."""
    attention: Attention = "flash"
    """`unfused`, `flash`, or the name of a fused kernel; empty: the stack's choice."""
    dropout: float | None = None
    """Dropout rate; None: the network's."""
    optimiser: Annotated[str, FieldOption(STEP, "NAME", single=True, names=_optimisers)] = "adamw"
    """Optimiser (perfmodel list optimisers), or none. Without one a step ends with gradients."""
    precision: str = ""
    """Recipe of weights, gradients and states; empty: the default of the stack and type."""
    schedule: Annotated[str, FieldOption(PLAN, "NAME", single=True, names=tuple(KINDS))] = "1f1b"
    """Pipeline schedule."""
    loss: bool = True
    """Whether the step includes the cross-entropy loss."""
    ends: bool = True
    """Whether embeddings and head run too; otherwise only the layers."""
    training: bool = True
    """Whether a backward pass follows; otherwise only the forward pass runs."""
    paged: Annotated[bool, FieldOption(STEP)] = False
    """Move optimiser states to host memory as far as the device's is short of (paged optimiser)."""
    offload: Annotated[str, FieldOption(PLAN, "NAME", names=OFFLOADS)] = "none"
    """`optimiser`: the host keeps master weights and states and updates them (ZeRO-Offload)."""
    fill: Annotated[float, FieldOption(STEP, "SHARE", least=0, most=1)] = 1.0
    """Share of the tokens of a sequence that are real, not padding."""
    packed: Annotated[float, FieldOption(STEP, "N", least=1)] = 1.0
    """Documents packed into a sequence, each of which attends only to itself."""

    def __post_init__(self) -> None:
        for name in (
            "seq", "micro_batch", "accumulation", "tensor", "pipeline", "chunks", "data",
            "context", "expert",
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ProblemError(f"{name} is {value}; give a whole number of 1 or more")
        if self.zero not in (0, 1, 2, 3):
            raise ProblemError(f"zero is {self.zero}; it is 0, 1, 2 or 3")
        if self.reshard != "":
            object.__setattr__(self, "reshard", resharding.choice(self.reshard))
        self.check_tuning()
        self.check_loads()
        rematerialise.mode(self.recompute)
        load_stack(self.stack)
        if self.expert_tensor not in (0, 1, self.tensor):
            raise SizeError(
                f"expert_tensor is {self.expert_tensor} and tensor {self.tensor}; the devices of "
                "tensor split each expert, or none does",
                {"expert_tensor": [1, self.tensor]},
            )
        if self.expert_tensor and not self.splits_experts and not self.splits_rows:
            raise ProblemError(
                "experts that the devices of tensor do not split go with sequence parallelism, as "
                "each device sends rows of its own; drop expert_tensor, or sequence False"
            )
        if self.sequence and self.tensor == 1:
            raise ProblemError("sequence parallelism goes with tensor parallelism; give tensor 2")
        if self.offload not in OFFLOADS:
            raise UnknownName("offload", self.offload, OFFLOADS)
        if self.offloads:
            self._check_offload()

    def _check_offload(self) -> None:
        """Raise `ProblemError` for an update that a host does not compute."""
        if self.optimiser == "none":
            raise ProblemError("offload optimiser needs an optimiser, and the plan has none")
        if optimisers.load(self.optimiser).multiplies:
            raise ProblemError(
                f"offload optimiser takes an update without matrix products, and {self.optimiser} "
                "has some; take adamw"
            )
        if self.paged:
            raise ProblemError("offload optimiser moves all states to the host; drop paged")

    @classmethod
    def over(cls, devices: int, global_batch: int | None = None, **fields: Any) -> Plan:
        """The plan with these fields over so many devices, with a global batch: by default one
        micro-batch of every copy. Raises `SizeError` for sizes that are no multiples."""
        plan = cls(**fields)
        if devices % plan.devices:
            raise SizeError(
                f"{devices:,} devices are no multiple of tensor x pipeline x context = "
                f"{plan.devices}",
                {"devices": _multiples(plan.devices, devices)}
                | {name: divisors(devices) for name in ("tensor", "pipeline", "context")},
            )
        data = devices // plan.devices
        step = plan.micro_batch * data
        batch = global_batch or step
        if batch % step:
            raise SizeError(
                f"global batch {batch:,} does not divide by micro-batch {plan.micro_batch} x "
                f"data {data}",
                {"global_batch": _multiples(step, batch), "micro_batch": divisors(batch)},
            )
        return replace(plan, data=data, accumulation=batch // step)

    def predicted(self, machine: Device, *, network: Network, **options: Any) -> Step:
        """A training step of a network on a device; `options` as for `predict_step`."""
        from perfmodel.training.step import predict_step

        return predict_step(network, self, machine, **options)

    @property
    def splits_rows(self) -> bool:
        """Whether the devices of `tensor` split the rows of norms and residuals."""
        return self.tensor > 1 if self.sequence is None else self.sequence

    @property
    def settings(self) -> dict[str, Any]:
        """Its fields that are set, as data."""
        usual = vars(FineTuning()) | vars(Loads())
        usual |= {"fill": 1.0, "packed": 1.0, "offload": "none", "expert_tensor": 0}
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["sequence"] = self.splits_rows
        return {
            name: value
            for name, value in values.items()
            if value not in (None, "") and value != usual.get(name)
        }

    @property
    def resharding(self) -> str:
        """`reshard`, or what the stack does."""
        keeps = self.pipeline > 1 and self.setting.stack.keeps_weights
        return self.reshard or ("false" if keeps else "true")

    @property
    def keeps_whole(self) -> bool:
        """Whether weights in shards are gathered once a step, and gradients scattered once."""
        return self.zero == 3 and self.pipeline > 1 and self.resharding == "false"

    @property
    def offloads(self) -> bool:
        """Whether the host updates the weights."""
        return self.offload == "optimiser"

    @property
    def gradients_leave(self) -> bool:
        """Whether the gradients of a layer go to the host in every micro-batch, during its backward
        pass; otherwise those of the last one do, because the copies' gradients are added up
        first."""
        overlaps = bool(self.setting.stack.overlaps_gradients)
        early = (self.zero == 3 and not self.keeps_whole) or (self.zero == 2 and overlaps)
        return self.offloads and (self.copies == 1 or early)

    @property
    def hosted(self) -> tuple[str, ...]:
        """Kinds of memory that lie in host memory, or may lie there."""
        if self.paged:
            return ("optimiser states",)
        states = ("master weights", "optimiser states") if self.offloads else ()
        return (*states, "gradients") if self.gradients_leave else states

    @property
    def schedule_kind(self) -> str:
        """The pipeline schedule; interleaved where a stage has several chunks."""
        interleaves = self.schedule == "1f1b" and self.chunks > 1
        return "interleaved" if interleaves else self.schedule

    @property
    def copies(self) -> int:
        """Devices with the same weights; devices that split a sequence count."""
        return self.data * self.context

    @property
    def sharing(self) -> int:
        """Devices that experts are split over and copied to.

        They are the devices with the same layers. Where the devices of `tensor` do not split
        experts, they are included.
        """
        return self.copies * (1 if self.splits_experts else self.tensor)

    @property
    def splits_experts(self) -> bool:
        """Whether the devices of `tensor` split each expert."""
        if not self.expert_tensor:
            keeps = load_stack(self.stack).whole_experts and self.splits_rows and self.expert > 1
            return self.expert <= self.data and not keeps
        return self.expert_tensor == self.tensor

    @property
    def expert_copies(self) -> int:
        """Devices with the same experts."""
        return self.sharing // self.expert

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def global_batch(self) -> int:
        """Sequences of a step."""
        return self.micro_batch * self.accumulation * self.data

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.seq

    @property
    def real_tokens(self) -> float:
        """Tokens of a step that are not padding."""
        return self.tokens * self.fill

    @property
    def document(self) -> int:
        """Real tokens of a document, on average."""
        return self.setting.document

    @property
    def tuning(self) -> FineTuning | None:
        """What trains; None: every weight."""
        if not self.tunes:
            return None
        return FineTuning(**{each.name: getattr(self, each.name) for each in fields(FineTuning)})

    @property
    def stored(self) -> Stored | None:
        """How frozen matrices are kept, where a format is named. Raises `ProblemError` for one that
        is not dequantised in groups."""
        if not self.base:
            return None
        form = quantised.load(self.base)
        if form.multiplies or not form.group:
            fits = [name for name, f in quantised.FORMATS.items() if f.group and not f.multiplies]
            raise ProblemError(
                f"base {self.base} is no format that is dequantised in groups; take one of "
                f"{', '.join(fits)}"
            )
        return Stored(form.bits_at(form.group), form.group if form.scales_group else 0)

    @property
    def wide(self) -> bool:
        """Whether weights and activations are fp32."""
        return self.dtype in ("fp32", "tf32")

    @property
    def data_bytes(self) -> float:
        """Bytes of a weight in memory, as its products read it."""
        return element(self.setting.data).bytes

    def gathered_bytes(self, weight: Weight) -> float:
        """Bytes of a weight as devices exchange it: stored bits, or the type of the products."""
        return weight.elements * (weight.bits / 8.0 or self.data_bytes)

    @cached_property
    def recipe(self) -> Precision:
        """The recipe of mixed precision: by default fp32 alone for fp32; FSDP shards fp32 weights;
        Megatron accumulates in fp32."""
        stack = load_stack(self.stack)
        if self.wide:
            usual = "fp32"
        elif self.zero == 3:
            usual = stack.precision or "fsdp"
        else:
            usual = stack.precision or ("megatron" if stack.main_gradients else "autocast")
        return precision.load(self.precision or usual)

    @cached_property
    def setting(self) -> Setting:
        """The setting of each device's passes."""
        return Setting(
            batch=self.micro_batch,
            seq=self.seq,
            training=self.training,
            dtype=self.dtype,
            stack=load_stack(self.stack),
            attention=self.attention,
            dropout=self.dropout,
            loss=self.loss,
            ends=self.ends,
            shards=Shards(
                tensor=self.tensor,
                sequence=self.splits_rows,
                context=self.context,
                expert=self.expert,
                expert_tensor=self.splits_experts,
            ),
            loads=Loads(skew=self.skew, shares=self.shares, capacity=self.capacity),
            tuning=self.tuning,
            stored=self.stored,
            fill=self.fill,
            packed=self.packed,
        )

    def check(self, network: Network) -> None:
        """Raise `SizeError` for layers that do not divide by stages, and for experts that are not
        shared out evenly."""
        stages = self.pipeline * self.chunks
        layers = network.layers if stages > 1 else 1
        if not stages_fit(layers, stages):
            fits = {
                axis: [n for n in divisors(layers) if layers % (n * factor) == 0]
                for axis, factor in (("pipeline", self.chunks), ("chunks", self.pipeline))
            }
            raise SizeError(
                f"{layers} layers do not divide by {stages} stages (pipeline {self.pipeline} x "
                f"chunks {self.chunks})",
                fits,
            )
        if self.reshard and self.zero != 3:
            raise ProblemError(f"reshard is of weights in shards; give zero 3, not {self.zero}")
        groups = [n for n in divisors(self.copies) if 1 < n < self.copies]
        if self.reshard.isdecimal() and int(self.reshard) not in groups:
            raise SizeError(
                f"reshard {self.reshard} is no part of the {self.copies} devices that weights are "
                "split over, into groups of equal size",
                {"reshard": groups},
            )
        uneven = not self.even or self.capacity is not None
        if uneven and not any(block.mlp.experts for block in network.blocks):
            raise ProblemError(
                f"{network.name} has no experts; drop skew, shares and capacity, which are of them"
            )
        if self.sharing % self.expert:
            axes = "data and context" if self.splits_experts else "data, context and tensor"
            raise SizeError(
                f"expert {self.expert} does not divide the {self.sharing} devices of {axes} that "
                "experts are split over",
                {"expert": divisors(self.sharing)},
            )


def stages_fit(layers: int, stages: int) -> bool:
    """Whether so many layers, or up to three more, divide by the stages."""
    return any((layers + slots) % stages == 0 for slots in range(4))


def _multiples(size: int, near: int) -> list[int]:
    """The multiples of a size below and above a number."""
    lower = near // size * size
    return [n for n in (lower, lower + size) if n]


def divisors(number: int) -> list[int]:
    """The numbers that divide a number, the least first."""
    return [n for n in range(1, number + 1) if number % n == 0]
