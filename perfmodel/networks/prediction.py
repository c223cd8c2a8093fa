"""The answer for a network on a device: kernels, passes, and where the time goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from perfmodel.graph.spread import Spread, together
from perfmodel.networks.dispatch import Stretch, joined
from perfmodel.networks.hosts import Host
from perfmodel.networks.hosts import load as load_host
from perfmodel.networks.network import Network
from perfmodel.networks.recorder import KINDS, Exchanged
from perfmodel.networks.setting import Setting
from perfmodel.predict import rank
from perfmodel.prediction import Prediction

# What operations themselves call the library of products.
_OWN = ("torch",)


@dataclass(frozen=True)
class KernelTime:
    """One kernel of a layer."""

    name: str
    """Its operation, and which part of it."""
    kind: str
    """Its class: matmul, attention, norm, softmax, pointwise, embedding, loss."""
    spread: Spread
    """Seconds of all its launches in a layer, their range, and the family they belong to."""
    prediction: Prediction
    """Everything that is said of one launch."""
    launches: int = 1
    """How often it is launched in a layer."""

    @property
    def seconds(self) -> float:
        """Of all its launches in a layer."""
        return self.spread.seconds

    def stretch(self, gap_seconds: float, launch_seconds: float) -> Stretch:
        """Its launches, with the gap before each."""
        each = Stretch.of(self.seconds / self.launches + gap_seconds, launch_seconds)
        return each.times(self.launches)

    @cached_property
    def limiter(self) -> str:
        """The resource with the longest time, a harness's start aside, as the device calls it."""
        one = self.prediction
        terms = {name: np.array([value]) for name, value in one.terms.items()}
        terms["launch"] = np.zeros(1)
        first = str(rank(terms, np.array([self.seconds / self.launches]))[0][0])
        return one.levels.get(first, first)


@dataclass(frozen=True)
class PassTime:
    """One pass over the layers of a segment."""

    segment: str
    """The segment's name."""
    way: str
    """forward or backward."""
    repeat: int
    """Layers."""
    kernels: tuple[KernelTime, ...]
    """Of one layer, in launch order."""
    gap_seconds: float
    """Between two kernels."""
    exchanges: tuple[Exchanged, ...] = ()
    """What devices exchange in it."""

    @cached_property
    def kernel_seconds(self) -> float:
        """Kernels of one layer."""
        return sum(one.seconds for one in self.kernels)

    def stretch(self, host: Host) -> Stretch:
        """All layers, device and host."""
        launch = host.forward_seconds if self.way == "forward" else host.backward_seconds
        layer = joined(one.stretch(self.gap_seconds, launch) for one in self.kernels)
        return layer.times(self.repeat)


@dataclass(frozen=True)
class NetworkPrediction:
    """A network's passes on one device. Times in seconds."""

    network: Network
    """What runs."""
    setting: Setting
    """How."""
    device: str
    """The device's slug."""
    passes: tuple[PassTime, ...]
    """Forward, segment by segment, then backward."""

    @property
    def host(self) -> Host:
        """What a launch takes."""
        return load_host(self.setting.stack.host)

    def stretch(self, way: str = "") -> Stretch:
        """The forward passes, the backward ones, or all."""
        return joined(one.stretch(self.host) for one in self.passes if way in ("", one.way))

    @property
    def seconds(self) -> float:
        """From the first launch to the last instruction."""
        return self.stretch().seconds

    @property
    def forward_seconds(self) -> float:
        """Of the forward pass by itself."""
        return self.stretch("forward").seconds

    @property
    def backward_seconds(self) -> float:
        """What the backward pass adds."""
        return self.seconds - self.forward_seconds

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Factors of the kernels' time to the ends of its range."""
        return together(
            Spread(
                one.spread.family,
                each.repeat * one.seconds,
                each.repeat * one.spread.low_seconds,
                each.repeat * one.spread.high_seconds,
            )
            for each in self.passes
            for one in each.kernels
        )

    @property
    def low_seconds(self) -> float:
        """Low end of the 80 % range."""
        return self.seconds * self._range[0]

    @property
    def high_seconds(self) -> float:
        """High end."""
        return self.seconds * self._range[1]

    @property
    def launches(self) -> int:
        """Kernels of all layers."""
        return sum(each.repeat * one.launches for each in self.passes for one in each.kernels)

    def total(self, of: Callable[[Prediction], float]) -> float:
        """A count of all kernels of all layers."""
        return sum(
            each.repeat * one.launches * of(one.prediction)
            for each in self.passes
            for one in each.kernels
        )

    @cached_property
    def flops(self) -> Mapping[str, float]:
        """Executed operations by unit: matrix, vector, special."""
        units = ("matrix", "vector", "special")
        return {unit: self.total(partial(_flops, unit)) for unit in units}

    @cached_property
    def bytes(self) -> Mapping[str, float]:
        """Bytes that cross each level."""
        levels = dict.fromkeys(
            name for each in self.passes for one in each.kernels for name in one.prediction.bytes
        )
        return {level: self.total(partial(_moved, level)) for level in levels}

    @property
    def intensity(self) -> Mapping[str, float]:
        """Matrix operations over the bytes of each level."""
        work = self.flops["matrix"]
        return {name: work / moved for name, moved in self.bytes.items() if moved}

    @cached_property
    def limiters(self) -> Mapping[str, float]:
        """Seconds of kernels by the resource that limits them, the longest first."""
        found = self.by(lambda _, one: one.limiter)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def known_device(self) -> str:
        """How much is known of the device (`perfmodel.timing.knowledge`), by most of the time."""
        found = self.by(lambda _, one: one.prediction.known.device)
        return max(found, key=found.__getitem__)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed of any kernel, each once; that the names a stack calls its libraries by
        stand for their usual kernels is no assumption."""
        stack = self.setting.stack
        usual = tuple(
            f"implementation '{name}'" for name in (*_OWN, stack.library, stack.flash_kernel)
        )
        said = (
            line
            for each in self.passes
            for one in each.kernels
            for line in one.prediction.assumptions
            if not line.startswith(usual)
        )
        return tuple(dict.fromkeys((*self._expanded(), *said)))

    def _expanded(self) -> Iterator[str]:
        """That a cache of latents is read as keys and values, where there is one."""
        latent = any(block.attention.latent is not None for block in self.network.blocks)
        if self.setting.past and latent:
            yield (
                "latents are cached expanded to keys and values, as transformers does; engines "
                "decode in the latent (perfmodel infer)"
            )

    def by(self, label: Callable[[PassTime, KernelTime], str]) -> dict[str, float]:
        """Seconds of kernels by a label of theirs."""
        found: dict[str, float] = defaultdict(float)
        for each in self.passes:
            for one in each.kernels:
                found[label(each, one)] += each.repeat * one.seconds
        return dict(found)

    def by_class(self) -> Mapping[str, float]:
        """Seconds by class; gaps and what the device waits for its host are `host`."""
        found = self.by(lambda _, one: one.kind)
        rest = self.seconds - sum(found.values())
        return {kind: found[kind] for kind in KINDS if kind in found} | {"host": rest}

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
            "kernels": [_plain(each, one) for each in self.passes for one in each.kernels],
            "assumptions": list(self.assumptions),
        }


def _flops(unit: str, one: Prediction) -> float:
    return one.flops[unit]


def _moved(level: str, one: Prediction) -> float:
    return one.bytes.get(level, 0.0)


def _plain(each: PassTime, one: KernelTime) -> dict[str, Any]:
    """A kernel of a pass in the JSON form: all its launches in a layer together."""
    launch = one.prediction
    return {
        "segment": each.segment,
        "pass": each.way,
        "layers": each.repeat,
        "kernel": one.name,
        "class": one.kind,
        "operator": one.prediction.algorithm,
        "time_us": one.seconds * 1e6,
        "low_us": one.spread.low_seconds * 1e6,
        "high_us": one.spread.high_seconds * 1e6,
        "launches": one.launches,
        "flops": {unit: one.launches * count for unit, count in launch.flops.items()},
        "bytes": {level: one.launches * moved for level, moved in launch.bytes.items()},
        "limiter": one.limiter,
    }
