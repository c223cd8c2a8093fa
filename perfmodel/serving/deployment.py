"""A deployment: a network on devices under an engine, with formats of weights and cache."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from perfmodel import units
from perfmodel.algorithms.matmul import matmul_format, types
from perfmodel.columns import DIFFERS, Column, Result
from perfmodel.elements import element
from perfmodel.errors import ProblemError, SizeError, UnknownName
from perfmodel.fieldoption import PLAN, FieldOption
from perfmodel.hardware import Device, System, systems
from perfmodel.networks import stack
from perfmodel.networks.images import Passes, image_size
from perfmodel.networks.network import Network
from perfmodel.networks.setting import Setting, Shards
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.serving.engine import Engine, load, names
from perfmodel.serving.weights import FORMATS, WeightFormat, weight_format

if TYPE_CHECKING:
    from perfmodel.serving.served import Served

NARROW = ("fp8", "fp8_block", "nvfp4")
"""Product formats whose checkpoints come with an fp8 cache, under engines that support one, and
whose operands dispatchers of experts send (DeepEP, use_fp8)."""


PLACES = ("device", "host", "disk")
"""Memories of cached prefixes."""
ACCEPTANCE = 0.675
"""Chance that a token of DeepSeek-V3's own module is accepted: 2.44 tokens a pass with three
drafted (lmsys.org, 2025-07-17, Accelerating SGLang with Multiple Token Prediction) are
1 + p + p² + p³."""


def expected_tokens(accept: float, gamma: int) -> float:
    """Expected tokens of a pass that verifies `gamma` drafts (2211.17192, equation 1). Raises
    `ProblemError` for a probability outside 0 to 1."""
    if not 0.0 <= accept <= 1.0:
        raise ProblemError(f"accept is {accept}; give a probability from 0 to 1")
    if gamma < 0:
        raise ProblemError(f"gamma is {gamma}; it is 0 or more")
    return float(sum(accept**i for i in range(gamma + 1)))


def _pools(text: str) -> str:
    """The text of two numbers of copies. Raises `ProblemError`."""
    counts = text.split(":")
    if len(counts) != 2 or not all(count.isdecimal() and int(count) for count in counts):
        raise ProblemError(f"--pools {text}: give copies for prompts and for tokens, as 2:3")
    return text


def _disk_rate(text: str) -> str:
    """The text of a disk's rate. Raises `UnitError`."""
    units.parse(text, "bandwidth")
    return text


def _image_size(text: str) -> str:
    """The text of an image's size. Raises `ProblemError`."""
    image_size(text)
    return text


@dataclass(frozen=True)
class Deployment(Result):
    """A network on devices. Raises `ProblemError` and `UnknownName` for what cannot be served."""

    network: Annotated[Network, Column("network", of="name", when=DIFFERS, number=False)]
    """The network."""
    device: Annotated[Device, Column("device", of="slug", when=DIFFERS, number=False)]
    """The device; all devices are equal."""
    engine: Annotated[
        Engine,
        Column("engine", of="name", when=DIFFERS, number=False),
        FieldOption(
            PLAN,
            "NAMES",
            names=names,
            read=load,
            help="Inference engines, with commas: ideal, tensorrt-llm, vllm, sglang, llama.cpp "
            "and others (perfmodel list engines).",
        ),
    ] = field(default_factory=lambda: load("ideal"))
    """The engine."""
    weights: Annotated[
        str,
        Column("weights", when=DIFFERS),
        FieldOption(
            "Formats",
            "FORMATS",
            names=FORMATS.keys,
            read=weight_format,
            help="Formats of the weights, with commas: bf16, fp16, fp8, fp8-block, int8, w8a8, "
            "int4-g128, int4-g32, q4_k_m, nvfp4, mxfp4 [default: the network's own, or bf16].",
        ),
    ] = ""
    """Format of the layers' weights (`weights.FORMATS`); empty: the network's own, or bf16."""
    cache: Annotated[
        str,
        FieldOption(
            "Formats",
            "TYPE",
            spellings=("--kv",),
            names=types,
            help="Type of the KV cache: bf16, fp16, fp8, int8, int4 or another (perfmodel list "
            "types) [default: the engine's].",
        ),
    ] = ""
    """Type of the KV cache; empty: the engine's."""
    tensor: Annotated[
        int, Column("tensor", when=DIFFERS), FieldOption(PLAN, spellings=("--tensor", "--tp"))
    ] = 1
    """Tensor parallelism: devices that split each layer."""
    pipeline: Annotated[
        int, Column("pipeline", when=DIFFERS), FieldOption(PLAN, spellings=("--pipeline", "--pp"))
    ] = 1
    """Pipeline parallelism: stages that the layers are split into."""
    expert: Annotated[
        int, Column("expert", when=DIFFERS), FieldOption(PLAN, spellings=("--expert", "--ep"))
    ] = 1
    """Expert parallelism: devices that split the experts. They are those of several copies, which
    have tokens of their own, or those of `tensor`, which have all tokens."""
    data: Annotated[
        int, Column("data", when=DIFFERS), FieldOption(PLAN, spellings=("--data", "--dp"))
    ] = 1
    """Data parallelism: copies of the network. Each has requests of its own."""
    redundant: Annotated[
        int,
        Column("redundant", when=DIFFERS),
        FieldOption(PLAN, spellings=("--redundant-experts",), least=0),
    ] = 0
    """Experts that have a second copy, with --expert: they and all others divide by it."""
    drafted: Annotated[
        int, Column("drafted", when=DIFFERS), FieldOption(PLAN, spellings=("--mtp",), least=0)
    ] = 0
    """Tokens that a module of the network drafts for each pass, which verifies them (multi-token
    prediction); 0: none."""
    accepted: Annotated[float, FieldOption(PLAN, spellings=("--accepted",), least=0)] = 0.0
    """Tokens of a pass with drafts, 1 to --mtp + 1; 0: those of DeepSeek-V3's module."""
    pools: Annotated[str, FieldOption(PLAN, "X:Y", read=_pools)] = ""
    """Copies for prompts and copies for tokens, on devices of their own, as 2:3 (disaggregated
    serving); empty: every copy does both."""
    images: Annotated[int, Column("images", when=DIFFERS), FieldOption("Load", least=0)] = 0
    """Images of each prompt, beside its --isl tokens: each takes passes of the encoder before the
    first token, and tokens of the prompt."""
    image_size: Annotated[str, FieldOption("Load", "PIXELS", read=_image_size)] = "1024x768"
    """Width and height of an image in pixels, as 1024x768."""
    cached_at: Annotated[
        str, FieldOption("Load", "PLACES", spellings=("--cached-at",), names=PLACES)
    ] = PLACES[0]
    """Memory of the cached part of prompts: the device's; or the host's or a disk, from which it is
    read or recomputed, whichever has the first token sooner."""
    disk_rate: Annotated[str, FieldOption("Load", "RATE", read=_disk_rate)] = ""
    """With --cached-at disk, the rate at which each device's part is read from it: "7 GB/s"."""
    encoded: int = 0
    """Tokens of each request that the encoder of an encoder-decoder reads (`reading`)."""
    system: System | None = None
    """The system that joins the devices; None: the device's default system."""
    prefill: Deployment | None = None
    """A copy for prompts, with `pools`; None: it is like one for tokens."""

    def __post_init__(self) -> None:
        if not self.weights:
            stored = weight_format(self.network.weights or "bf16").name
            object.__setattr__(self, "weights", stored)
        for name in ("tensor", "pipeline", "expert", "data"):
            if getattr(self, name) < 1:
                raise ProblemError(f"{name} is {getattr(self, name)}; it is 1 or more")
        if self.cached_at not in PLACES:
            raise UnknownName("place", self.cached_at, PLACES)
        if self.cached_at == "disk" and not self.disk_rate:
            raise ProblemError(
                "cached_at disk needs the rate of its reads; give --disk-rate '7 GB/s'"
            )
        network = self.network
        if self.images and network.tower is None:
            raise ProblemError(
                f"{network.name} reads no images; drop --images, or name a network with an encoder "
                "of images, such as gemma-3-4b"
            )
        causal = all(block.attention.causal for block in network.blocks)
        if not (causal or network.projectors):
            raise ProblemError(
                f"{network.name} makes no token after token; serve a decoder such as llama-3-8b"
            )
        if network.encoder and (self.pools or self.drafted or self.pipeline > 1):
            raise ProblemError(
                f"{network.name} has an encoder, whose pass is described on the devices of a copy "
                "without stages, pools and drafts; drop --pipeline, --pools and --mtp"
            )
        if self.pipeline > network.layers:
            raise SizeError(
                f"{network.layers} layers are not {self.pipeline} stages",
                {"pipeline": [n for n in range(1, network.layers + 1) if network.layers % n == 0]},
            )
        if self.data % self.expert and self.tensor % self.expert:
            raise SizeError(
                f"expert {self.expert} does not divide data {self.data} nor tensor {self.tensor}: "
                "experts are shared among copies, or among the devices of one",
                {
                    "expert": [
                        n
                        for n in range(1, max(self.data, self.tensor) + 1)
                        if not (self.data % n and self.tensor % n)
                    ],
                    "data": [self.expert * n for n in (1, 2, 4)],
                    "tensor": [self.expert * n for n in (1, 2, 4)],
                },
            )
        if self.expert > 1 and not any(block.mlp.experts for block in network.blocks):
            raise ProblemError(f"{network.name} has no experts to share; drop --expert")
        if self.redundant and self.expert == 1:
            raise ProblemError("copies of experts are for devices that share them; give --expert")
        if self.drafted < 0 or not (
            self.accepted == 0.0 or 1.0 <= self.accepted <= 1 + self.drafted
        ):
            raise ProblemError(
                f"accepted is {self.accepted:g} with {self.drafted} tokens drafted; a pass makes 1 "
                f"to {1 + max(self.drafted, 0)} tokens"
            )
        element(self.cache_type)
        self.format.product  # noqa: B018  a name that is not known is said at once
        if self.devices > 1:
            self._check_system()

    def predicted(
        self, _machine: None = None, *, isl: int, osl: int, concurrency: float, **options: Any
    ) -> Served:
        """What clients see of prompts of `isl` and answers of `osl` tokens, as many at once as
        `concurrency`; `options` as for `serve`. It has its own devices."""
        from perfmodel.serving.served import serve
        from perfmodel.serving.steps import Steps

        (served,) = serve(Steps(self), "concurrency", [concurrency], isl, osl, **options)
        return served

    def _check_system(self) -> None:
        limit = self.fabric.devices
        devices = self.tensor * self.pipeline * self.together
        if devices > limit:
            raise ProblemError(
                f"{devices:,} devices are more than the "
                f"{limit:,} of {self.fabric.slug}; name a larger --system, or take fewer"
            )

    @property
    def expert_inside(self) -> bool:
        """Whether experts are shared among the devices of a copy, not among copies."""
        return self.expert > 1 and self.data % self.expert > 0

    @property
    def together(self) -> int:
        """Copies that step together, as they exchange rows with their experts in every layer."""
        return 1 if self.expert_inside else self.expert

    @property
    def overlaps(self) -> Annotated[bool, Column("overlap", key="overlap", when=DIFFERS)]:
        """Whether exchanges with experts run beside computing."""
        return self.together > 1 and self.engine.batching.overlap == "always"

    @cached_property
    def encoder(self) -> Deployment | None:
        """What reads images or an encoder-decoder's input, on the devices of a copy; None without
        one. A tower is in 16 bits, and devices split it where they divide its heads and widths;
        otherwise each has all of it."""
        network = self.network.reading(self.tensor)
        if network is None:
            return None
        divided = all(
            not (block.attention.heads % self.tensor or block.mlp.inner % self.tensor)
            for block in network.blocks
        )
        return Deployment(
            network, self.device, self.engine, self.weights if self.network.encoder else self.dtype,
            tensor=self.tensor if divided else 1, system=self.system,
        )  # fmt: skip

    def reading(self, tokens: int) -> tuple[Deployment, int]:
        """The deployment for inputs of `tokens` tokens, and the tokens of the decoder's prompt:
        with those of images; where an encoder reads the input, a start token. Beside a window of
        sound they are the decoder's own: start tokens, and text before them."""
        if not self.network.encoder:
            return self, tokens + self.image_tokens
        if self.network.frames is not None:
            return replace(self, encoded=self.network.frames.positions), tokens
        return replace(self, encoded=tokens), 1

    @property
    def passes(self) -> tuple[int, int]:
        """Passes of the encoder for a request, and the rows of each; 0 where it reads nothing."""
        if self.network.encoder:
            return min(self.encoded, 1), self.encoded
        return self.images * self.image.tiles, self.image.rows

    @cached_property
    def image(self) -> Passes:
        """What an image takes; nothing without an encoder."""
        tower = self.network.tower
        if tower is None or tower.patches is None:
            return Passes()
        return tower.patches.passes(*image_size(self.image_size), tower.projectors[0].merge)

    @property
    def pixels(self) -> Annotated[str, Column("image", key="image", when=DIFFERS, number=False)]:
        """The size of an image of a prompt."""
        return self.image_size if self.images else ""

    @property
    def image_tokens(self) -> int:
        """Tokens of a prompt that its images are."""
        return self.images * self.image.tokens

    @property
    def pass_tokens(self) -> float:
        """Tokens of each sequence that a pass makes, its accepted drafts included."""
        return self.accepted or expected_tokens(ACCEPTANCE, self.drafted)

    @property
    def counts(self) -> tuple[int, int]:
        """Copies for prompts alone, and those that make tokens, each times `data`."""
        prompts, tokens = map(int, self.pools.split(":")) if self.pools else (0, 1)
        return prompts, tokens

    @property
    def shared_out(
        self,
    ) -> Annotated[str, Column("pools", key="pools", when=DIFFERS, number=False)]:
        """The copies of each pool, and the shards of those for prompts."""
        prompts, tokens = self.counts
        return f"{prompts}xtp{self.for_prompts.tensor}:{tokens}" if self.pools else ""

    @property
    def cached_outside(
        self,
    ) -> Annotated[str, Column("cached at", key="cached_at", when=DIFFERS, number=False)]:
        """Where cached prefixes lie, if not on the device."""
        return self.cached_at if self.cached_at != PLACES[0] else ""

    @cached_property
    def cache_bytes_per_s(self) -> float:
        """Rate at which a device reads its part of cached prefixes that lie outside it: of its link
        to the host, over which a disk's reads come too."""
        link = host_bytes_per_s(self.device)
        return (
            link
            if self.cached_at == "host"
            else min(link, units.parse(self.disk_rate, "bandwidth"))
        )

    @property
    def copies(self) -> int:
        """Copies that make tokens, each with requests of its own."""
        return self.data * self.counts[1]

    @cached_property
    def for_prompts(self) -> Deployment:
        """A copy that runs prompts."""
        return self.prefill or (replace(self, pools="") if self.pools else self)

    @property
    def devices(self) -> Annotated[int, Column()]:
        """Number of devices in all."""
        prompts = self.counts[0] * self.for_prompts.devices if self.pools else 0
        return self.tensor * self.pipeline * self.copies + prompts

    @cached_property
    def format(self) -> WeightFormat:
        """The format of the weights."""
        return weight_format(self.weights)

    @cached_property
    def product(self) -> str:
        """Format of the layers' products."""
        storage = self.format
        runs = matmul_format(storage.product).compute in self.device.matrix_types
        return storage.product if runs or not storage.widened else storage.widened

    @property
    def dtype(self) -> str:
        """Type of activations."""
        return "fp16" if self.format.product == "fp16" else "bf16"

    @property
    def cache_type(self) -> Annotated[str, Column("cache", key="cache", when=DIFFERS)]:
        """Type of the KV cache."""
        narrow = self.engine.cache.narrow and self.product in NARROW
        return self.cache or ("fp8" if narrow else self.dtype)

    @cached_property
    def fabric(self) -> System:
        """The system that joins the devices."""
        return self.system or systems.usual(self.device)

    @property
    def shards(self) -> Shards:
        """Each device's share of a layer."""
        return Shards(
            tensor=self.tensor, expert=self.expert, redundant=self.redundant,
            expert_tensor=self.expert == 1,
            expert_inside=self.expert_inside,
        )  # fmt: skip

    def setting(self, tokens: int) -> Setting:
        """A pass of `tokens` tokens, each of which may be a sequence of its own."""
        return Setting(
            batch=tokens,
            seq=1,
            dtype=self.dtype,
            stack=stack.load(self.engine.stack),
            logits="last",
            shards=self.shards,
        )

    @cached_property
    def kernel_key(self) -> tuple[object, ...]:
        """A key that is equal for deployments whose steps run equal kernels and exchanges."""
        engine = self.engine
        return (
            self.network, id(self.device), self.weights, self.cache_type, self.tensor, self.expert,
            self.redundant, self.expert_inside, self.encoded, id(self.system), engine.stack,
            engine.residual_norm, engine.cache_write, engine.all_reduce,
            replace(engine.kernels, reread=0.0),
        )  # fmt: skip

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for deployments with equal steps."""
        return (
            *self.kernel_key, self.engine, self.pipeline, self.data, self.drafted, self.accepted,
            self.pools, self.images, self.image_size, self.cached_at, self.disk_rate,
            self.prefill and self.prefill.key,
        )  # fmt: skip
