"""Weights, gradients and states by device: ZeRO's stages, FSDP and sharding groups.

A stage shards what every device of a data-parallel group would hold over d devices, `shards`
(Rajbhandari et al. 2019, 1910.02054, §5):

    0   nothing                         w + g + k
    1   master weights and states       w + g + k/d
    2   and gradients                   w + (g + k)/d
    3   and weights                     (w + g + k)/d

w: bytes of the weights, g: of the gradients, k: of master weights and states. Groups smaller than
all data-parallel devices (HSDP, MiCS) are stage 3 with the shards of a group. Numbers may be
integers, arrays or SymPy symbols. Padding to whole shards is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from perfmodel.arithmetic import Number, is_symbolic
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.training.precision import Precision

Offload = Literal["none", "optimiser", "all"]
STAGES = (0, 1, 2, 3)
"""ZeRO's stages; 3 is FSDP."""
OFFLOADS = ("none", "optimiser", "all")
"""What is in host memory: nothing, all but the weights, or everything."""

# The first stage in which each is sharded.
_SHARDED_FROM = {"weights": 3, "gradients": 2, "master": 1, "states": 1}


@dataclass(frozen=True)
class ModelStates:
    """Bytes on one device."""

    weights: Number
    """Of the weights."""
    gradients: Number
    """Of the gradients."""
    master: Number
    """Of the master weights."""
    states: Number
    """Of the optimiser's states."""

    @property
    def total(self) -> Number:
        """All of them."""
        return self.weights + self.gradients + self.master + self.states


def model_states(
    precision: Precision,
    parameters: Number,
    state_bytes: Number,
    *,
    stage: int = 0,
    shards: Number = 1,
) -> ModelStates:
    """Bytes on one device of `parameters`, whose states take `state_bytes` together.

    Raises `UnknownName` for another stage and `ProblemError` for shards below 1.
    """
    _check(stage, shards)
    sizes = {
        "weights": parameters * precision.weight_bytes,
        "gradients": parameters * precision.gradient_bytes,
        "master": parameters * precision.master_bytes,
        "states": state_bytes,
    }
    return ModelStates(
        **{
            name: size / shards if stage >= _SHARDED_FROM[name] else size
            for name, size in sizes.items()
        }
    )


def _check(stage: int, shards: Number) -> None:
    if stage not in STAGES:
        raise UnknownName("stage of ZeRO", str(stage), [str(s) for s in STAGES])
    if not is_symbolic(shards) and np.any(np.asarray(shards) < 1):
        raise ProblemError(f"states are split over {shards} shards; give at least 1")


@dataclass(frozen=True)
class Estimate:
    """Bytes by place."""

    device: Number
    """Of one device."""
    host: Number
    """Of one host."""


def deepspeed_zero3(
    precision: Precision,
    parameters: Number,
    state_bytes: Number,
    largest_layer: Number,
    *,
    shards: Number,
    hosts: Number = 1,
    offload: Offload = "none",
    buffer: float = 1.5,
) -> Estimate:
    """Stage 3 by DeepSpeed's estimate, with the largest layer gathered in fp32 on the device.

    Offloaded data is split evenly over the hosts, times a factor `buffer` for temporary copies
    (estimate_zero3_model_states_mem_needs, with `zero_init`). Without offload, the host only builds
    the largest layer, once for each of its devices. Raises `UnknownName` for another `offload`,
    `ProblemError` for shards or hosts below 1.
    """
    if offload not in OFFLOADS:
        raise UnknownName("offload", offload, OFFLOADS)
    _check(3, hosts)
    states = model_states(precision, parameters, state_bytes, stage=3, shards=shards)
    gathered = largest_layer * 4
    if offload == "none":
        return Estimate(states.total + gathered, gathered * (shards / hosts) * buffer)
    weights = states.weights if offload == "optimiser" else 0
    return Estimate(weights + gathered, (states.total - weights) * (shards / hosts) * buffer)
