"""FlexGen's equations with this model's rates: operators timed on the device and on its host, and
copies over the device's link. No constant is fitted to offloading."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.setting import prompt, step
from perfmodel.offload.layershape import LayerShape, Request, Stored, predicted
from perfmodel.offload.layertimes import LayerTimes
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.offload.policy import Policy

NO_DISK = "the policy has data on disk, but there is no disk; give its rate"


@dataclass(frozen=True)
class Disk:
    """A disk behind the host."""

    bytes_per_s: float
    """Rate of reads and of writes."""
    capacity_bytes: float
    """Capacity in bytes."""

    def seconds(self, moved: Number) -> Number:
        """Seconds to move `moved` bytes."""
        return moved / self.bytes_per_s


@dataclass(frozen=True)
class Modelled:
    """A network on a device with a host, which computes attention over the cache that it stores."""

    network: Stored
    """The network, with its weights as they are stored."""
    device: Device
    """The device."""
    host: Device
    """Its host."""
    disk: Disk | None = None
    """A disk behind the host; None: no disk."""
    first_comes: bool = False
    """False: copies are prefetched ahead of the layer that needs them (FlexGen, section 4.3)."""

    def prefill(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for all prompt tokens of a block: all work is on the device."""
        batch, link = policy.batch, host_bytes_per_s(self.device, self.host)
        cache = shape.cache_bytes * request.prompt * batch
        activations = shape.activation_bytes * request.prompt * batch
        rest, weights_rest = 1.0 - policy.activations[0], 1.0 - policy.weights[0]
        on_disk = activations * policy.activations[2]
        tokens = prompt(policy.part, request.prompt, ends=False)
        work = predicted(self.network, tokens, self.device).seconds
        return LayerTimes(
            (shape.weight_bytes * weights_rest + activations * rest) / link,
            (cache * (1.0 - policy.cache[0]) + activations * rest) / link,
            self._disk_seconds(shape.weight_bytes * policy.weights[2] + on_disk),
            self._disk_seconds(cache * policy.cache[2] + on_disk),
            policy.blocks * work / shape.layers,
        )

    def decode(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for one token of each sequence.

        Attention runs where the cache is stored; cache on disk is read into host memory first.
        Queries and results of attention on the host cross the link; they have the size of
        activations.
        """
        batch, link = policy.batch, host_bytes_per_s(self.device, self.host)
        cache = shape.cache_bytes * request.middle * batch
        activations = shape.activation_bytes * batch
        crossing = activations * (2.0 - policy.activations[0] - policy.cache[0])
        on_disk = activations * policy.activations[2]
        weights = shape.weight_bytes * policy.weights[2]
        return LayerTimes(
            (shape.weight_bytes * (1.0 - policy.weights[0]) + crossing) / link,
            crossing / link,
            self._disk_seconds(cache * policy.cache[2] + weights + on_disk),
            self._disk_seconds(shape.cache_bytes * batch * policy.cache[2] + on_disk),
            policy.blocks * self._decoding(request, policy) / shape.layers,
        )

    def _decoding(self, request: Request, policy: Policy) -> Number:
        """Work of a part over all layers."""
        setting = step(policy.part, round(request.middle), ends=False)
        gpu, cpu = (predicted(self.network, setting, d) for d in (self.device, self.host))
        attention, host_attention = (p.classes.get("attention", 0.0) for p in (gpu, cpu))
        share = policy.cache[0]
        return gpu.seconds - attention + share * attention + (1.0 - share) * host_attention

    def _disk_seconds(self, volume: Number) -> Number:
        """Seconds on the disk. Raises `ProblemError` where data is on disk and there is none."""
        if self.disk is not None:
            return self.disk.seconds(volume)
        if np.any(np.asarray(volume) > 0.5):
            raise ProblemError(NO_DISK)
        return 0.0 * volume
