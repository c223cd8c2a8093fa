"""The prediction for a network on a device: kernels, passes, and the breakdown of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from perfmodel.columns import Column, Result
from perfmodel.graph.graphprediction import bounds
from perfmodel.graph.graphspread import Spread, together
from perfmodel.networks.hosts import Host
from perfmodel.networks.hosts import load as load_host
from perfmodel.networks.network import Network
from perfmodel.networks.recorder import KINDS, Exchanged
from perfmodel.networks.setting import Setting
from perfmodel.networks.stretch import Stretch, joined
from perfmodel.prediction import Prediction

# Operations' own name for the library of products.
_OWN = ("torch",)


@dataclass(frozen=True)
class KernelTime(Result):
    """One kernel of a layer."""

    name: Annotated[str, Column(key="kernel")]
    """Its operation, and the part of it."""
    kind: Annotated[str, Column(key="class")]
    """Its class: matmul, attention, norm, softmax, pointwise, embedding, loss."""
    spread: Annotated[
        Spread,
        Column(key="time_us", of="seconds", scale=1e6),
        Column(key="low_us", of="low_seconds", scale=1e6),
        Column(key="high_us", of="high_seconds", scale=1e6),
    ]
    """Seconds of all its launches in a layer, with their range and kernel family."""
    prediction: Annotated[Prediction, Column(key="operator", of="algorithm")]
    """The prediction of one launch."""
    launches: Annotated[int, Column()] = 1
    """Launches in a layer."""

    @property
    def seconds(self) -> float:
        """Seconds of all its launches in a layer."""
        return self.spread.seconds

    def stretch(self, gap_seconds: float, launch_seconds: float) -> Stretch:
        """Its launches, with the gap before each."""
        launch = Stretch.of(self.seconds / self.launches + gap_seconds, launch_seconds)
        return launch.times(self.launches)

    @property
    def flops(self) -> Annotated[Mapping[str, float], Column()]:
        """Executed operations of all its launches in a layer, by unit."""
        return {unit: self.launches * n for unit, n in self.prediction.flops.items()}

    @property
    def useful_flops(self) -> Annotated[float, Column()]:
        """Operations of all its launches that the mask leaves."""
        return self.launches * self.prediction.work

    @property
    def bytes(self) -> Annotated[Mapping[str, float], Column()]:
        """Bytes of all its launches through each memory level."""
        return {level: self.launches * n for level, n in self.prediction.bytes.items()}

    @cached_property
    def limiter(self) -> Annotated[str, Column()]:
        """The limiting resource, named as on the device; the harness's start does not count."""
        limiter, _ = bounds(self.prediction)
        return self.prediction.levels.get(limiter, limiter)


@dataclass(frozen=True)
class PassTime(Result):
    """One pass over the layers of a segment."""

    segment: Annotated[str, Column()]
    """The segment's name."""
    way: Annotated[str, Column(key="pass")]
    """`forward` or `backward`."""
    repeat: Annotated[int, Column(key="layers")]
    """Number of layers."""
    kernels: tuple[KernelTime, ...]
    """Kernels of one layer, in launch order."""
    gap_seconds: float
    """Seconds between two kernels."""
    exchanges: tuple[Exchanged, ...] = ()
    """Exchanges among devices in one layer."""

    @cached_property
    def kernel_seconds(self) -> float:
        """Seconds of one layer's kernels."""
        return sum(kernel.seconds for kernel in self.kernels)

    def stretch(self, host: Host) -> Stretch:
        """All layers as launches, on device and host."""
        launch = host.forward_seconds if self.way == "forward" else host.backward_seconds
        layer = joined(kernel.stretch(self.gap_seconds, launch) for kernel in self.kernels)
        return layer.times(self.repeat)


@dataclass(frozen=True)
class NetworkPrediction(Result):
    """A network's passes on one device. Times in seconds."""

    network: Annotated[Network, Column(of="name")]
    """The network."""
    setting: Annotated[
        Setting,
        Column(key="stack", of="stack.name"),
        Column(key="dtype", of="dtype"),
        Column(key="pass", of="pass_"),
        Column(key="batch", of="batch"),
        Column(key="seq", of="seq"),
        Column(key="past", of="past"),
    ]
    """The setting."""
    device: Annotated[str, Column()]
    """The device's slug."""
    passes: tuple[PassTime, ...]
    """Forward, segment by segment, then backward."""

    @property
    def host(self) -> Host:
        """The host's launch times."""
        return load_host(self.setting.stack.host)

    def stretch(self, way: str = "") -> Stretch:
        """The forward passes, the backward passes, or all, as launches."""
        return joined(p.stretch(self.host) for p in self.passes if way in ("", p.way))

    @property
    def seconds(self) -> Annotated[float, Column(key="time_us", scale=1e6)]:
        """From the first launch to the end of the last kernel."""
        return self.stretch().seconds

    @property
    def forward_seconds(self) -> Annotated[float, Column(key="forward_us", scale=1e6)]:
        """Seconds of the forward pass by itself."""
        return self.stretch("forward").seconds

    @property
    def backward_seconds(self) -> Annotated[float, Column(key="backward_us", scale=1e6)]:
        """Seconds that the backward pass adds."""
        return self.seconds - self.forward_seconds

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Low and high end of the kernels' time, as factors of it."""
        return together(
            kernel.spread.times(part.repeat) for part in self.passes for kernel in part.kernels
        )

    @property
    def low_seconds(self) -> Annotated[float, Column(key="low_us", scale=1e6)]:
        """Low end of the 80 % range."""
        return self.seconds * self._range[0]

    @property
    def high_seconds(self) -> Annotated[float, Column(key="high_us", scale=1e6)]:
        """High end of the 80 % range."""
        return self.seconds * self._range[1]

    @property
    def launches(self) -> Annotated[int, Column()]:
        """Kernel launches of all layers."""
        return sum(count for count, _ in self._launched)

    @cached_property
    def _launched(self) -> tuple[tuple[int, Prediction], ...]:
        """Every kernel's launches in all layers, and the prediction of one launch."""
        kernels = ((part.repeat, kernel) for part in self.passes for kernel in part.kernels)
        return tuple((layers * kernel.launches, kernel.prediction) for layers, kernel in kernels)

    @cached_property
    def flops(self) -> Annotated[Mapping[str, float], Column()]:
        """Executed operations by unit: matrix, vector, special."""
        return {
            unit: sum(count * kernel.flops[unit] for count, kernel in self._launched)
            for unit in ("matrix", "vector", "special")
        }

    @cached_property
    def bytes(self) -> Annotated[Mapping[str, float], Column()]:
        """Bytes through each memory level."""
        return {
            level: sum(count * kernel.bytes.get(level, 0.0) for count, kernel in self._launched)
            for level in dict.fromkeys(
                name for _, kernel in self._launched for name in kernel.bytes
            )
        }

    @property
    def intensity(self) -> Annotated[Mapping[str, float], Column(key="arithmetic_intensity")]:
        """Arithmetic intensity: operations of kernels with matrix products, as their rates count
        them, over the bytes of each level."""
        work = sum(n * kernel.work for n, kernel in self._launched if kernel.flops["matrix"])
        return {name: work / volume for name, volume in self.bytes.items() if volume}

    @cached_property
    def limiters(self) -> Annotated[Mapping[str, float], Column(key="limiters_us", scale=1e6)]:
        """Seconds of kernels by their limiting resource, longest first."""
        seconds = self.by(lambda _, kernel: kernel.limiter)
        return dict(sorted(seconds.items(), key=lambda item: -item[1]))

    @property
    def known_device(self) -> str:
        """The level of knowledge about the device (`perfmodel.timing.knowledge`) that most of the
        time has."""
        seconds = self.by(lambda _, kernel: kernel.prediction.known.device)
        return max(seconds, key=seconds.__getitem__)

    @property
    def assumptions(self) -> Annotated[tuple[str, ...], Column(place=1)]:
        """The assumptions of all kernels, each once.

        Library names of a stack that mean the usual kernels are not listed as assumptions.
        """
        stack = self.setting.stack
        defaults = tuple(
            f"implementation '{name}'" for name in (*_OWN, stack.library, stack.flash_kernel)
        )
        lines = [
            line
            for _, kernel in self._launched
            for line in kernel.assumptions
            if not line.startswith(defaults)
        ]
        latent = any(block.attention.latent is not None for block in self.network.blocks)
        if self.setting.past and latent:
            lines.insert(
                0,
                "latents are cached expanded to keys and values, as transformers does; engines "
                "decode in the latent (perfmodel infer)",
            )
        return tuple(dict.fromkeys(lines))

    def by(self, label: Callable[[PassTime, KernelTime], str]) -> dict[str, float]:
        """Seconds of kernels, grouped by `label`."""
        seconds: dict[str, float] = defaultdict(float)
        for part in self.passes:
            for kernel in part.kernels:
                seconds[label(part, kernel)] += part.repeat * kernel.seconds
        return dict(seconds)

    @property
    def classes(self) -> Annotated[Mapping[str, float], Column(key="by_class_us", scale=1e6)]:
        """Seconds by class; gaps and waits for the host are `host`."""
        seconds = self.by(lambda _, kernel: kernel.kind)
        rest = self.seconds - sum(seconds.values())
        return {kind: seconds[kind] for kind in KINDS if kind in seconds} | {"host": rest}

    @property
    def kernels(self) -> Annotated[list[dict[str, Any]], Column(place=1)]:
        """Data of each kernel of a layer, with the pass that it is in."""
        return [
            {**part.as_dict(), **kernel.as_dict()}
            for part in self.passes
            for kernel in part.kernels
        ]
