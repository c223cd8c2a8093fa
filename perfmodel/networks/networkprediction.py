"""The prediction for a network on a device: kernels, passes, and the breakdown of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
class KernelTime:
    """One kernel of a layer."""

    name: str
    """Its operation, and the part of it."""
    kind: str
    """Its class: matmul, attention, norm, softmax, pointwise, embedding, loss."""
    spread: Spread
    """Seconds of all its launches in a layer, with their range and kernel family."""
    prediction: Prediction
    """The prediction of one launch."""
    launches: int = 1
    """Launches in a layer."""

    @property
    def seconds(self) -> float:
        """Seconds of all its launches in a layer."""
        return self.spread.seconds

    def stretch(self, gap_seconds: float, launch_seconds: float) -> Stretch:
        """Its launches, with the gap before each."""
        launch = Stretch.of(self.seconds / self.launches + gap_seconds, launch_seconds)
        return launch.times(self.launches)

    @cached_property
    def limiter(self) -> str:
        """The limiting resource, named as on the device; the harness's start does not count."""
        limiter, _ = bounds(self.prediction)
        return self.prediction.levels.get(limiter, limiter)


@dataclass(frozen=True)
class PassTime:
    """One pass over the layers of a segment."""

    segment: str
    """The segment's name."""
    way: str
    """`forward` or `backward`."""
    repeat: int
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
class NetworkPrediction:
    """A network's passes on one device. Times in seconds."""

    network: Network
    """The network."""
    setting: Setting
    """The setting."""
    device: str
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
    def seconds(self) -> float:
        """From the first launch to the end of the last kernel."""
        return self.stretch().seconds

    @property
    def forward_seconds(self) -> float:
        """Seconds of the forward pass by itself."""
        return self.stretch("forward").seconds

    @property
    def backward_seconds(self) -> float:
        """Seconds that the backward pass adds."""
        return self.seconds - self.forward_seconds

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Low and high end of the kernels' time, as factors of it."""
        return together(
            kernel.spread.times(part.repeat) for part in self.passes for kernel in part.kernels
        )

    @property
    def low_seconds(self) -> float:
        """Low end of the 80 % range."""
        return self.seconds * self._range[0]

    @property
    def high_seconds(self) -> float:
        """High end of the 80 % range."""
        return self.seconds * self._range[1]

    @property
    def launches(self) -> int:
        """Kernel launches of all layers."""
        return sum(count for count, _ in self._launched)

    @cached_property
    def _launched(self) -> tuple[tuple[int, Prediction], ...]:
        """Every kernel's launches in all layers, and the prediction of one launch."""
        kernels = ((part.repeat, kernel) for part in self.passes for kernel in part.kernels)
        return tuple((layers * kernel.launches, kernel.prediction) for layers, kernel in kernels)

    @cached_property
    def flops(self) -> Mapping[str, float]:
        """Executed operations by unit: matrix, vector, special."""
        return {
            unit: sum(count * kernel.flops[unit] for count, kernel in self._launched)
            for unit in ("matrix", "vector", "special")
        }

    @cached_property
    def bytes(self) -> Mapping[str, float]:
        """Bytes through each memory level."""
        return {
            level: sum(count * kernel.bytes.get(level, 0.0) for count, kernel in self._launched)
            for level in dict.fromkeys(
                name for _, kernel in self._launched for name in kernel.bytes
            )
        }

    @property
    def intensity(self) -> Mapping[str, float]:
        """Arithmetic intensity: operations of kernels with matrix products, as their rates count
        them, over the bytes of each level."""
        work = sum(n * kernel.work for n, kernel in self._launched if kernel.flops["matrix"])
        return {name: work / volume for name, volume in self.bytes.items() if volume}

    @cached_property
    def limiters(self) -> Mapping[str, float]:
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
    def assumptions(self) -> tuple[str, ...]:
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

    def by_class(self) -> Mapping[str, float]:
        """Seconds by class; gaps and waits for the host are `host`."""
        seconds = self.by(lambda _, kernel: kernel.kind)
        rest = self.seconds - sum(seconds.values())
        return {kind: seconds[kind] for kind in KINDS if kind in seconds} | {"host": rest}

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: microseconds and bytes, the unit in every name that needs one."""
        setting = self.setting
        return {
            "network": self.network.name,
            "device": self.device,
            "stack": setting.stack.name,
            "dtype": setting.dtype,
            "pass": "train" if setting.training else "forward",
            "batch": setting.batch,
            "seq": setting.seq,
            "past": setting.past,
            "time_us": self.seconds * 1e6,
            "low_us": self.low_seconds * 1e6,
            "high_us": self.high_seconds * 1e6,
            "forward_us": self.forward_seconds * 1e6,
            "backward_us": self.backward_seconds * 1e6,
            "by_class_us": {name: value * 1e6 for name, value in self.by_class().items()},
            "limiters_us": {name: value * 1e6 for name, value in self.limiters.items()},
            "launches": self.launches,
            "flops": dict(self.flops),
            "bytes": dict(self.bytes),
            "arithmetic_intensity": dict(self.intensity),
            "kernels": [_kernel_dict(p, k) for p in self.passes for k in p.kernels],
            "assumptions": list(self.assumptions),
        }


def _kernel_dict(part: PassTime, kernel: KernelTime) -> dict[str, Any]:
    """The JSON form of a kernel: all its launches in a layer together."""
    launch = kernel.prediction
    return {
        "segment": part.segment,
        "pass": part.way,
        "layers": part.repeat,
        "kernel": kernel.name,
        "class": kernel.kind,
        "operator": kernel.prediction.algorithm,
        "time_us": kernel.seconds * 1e6,
        "low_us": kernel.spread.low_seconds * 1e6,
        "high_us": kernel.spread.high_seconds * 1e6,
        "launches": kernel.launches,
        "flops": {unit: kernel.launches * count for unit, count in launch.flops.items()},
        "useful_flops": kernel.launches * launch.work,
        "bytes": {level: kernel.launches * size for level, size in launch.bytes.items()},
        "limiter": kernel.limiter,
    }
