"""Configs sorted by predicted time; configs that cannot run come last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load
from perfmodel.operators.owntile import TileDoesNotFit
from perfmodel.predict import predict_arrays
from perfmodel.triton import running
from perfmodel.triton.description import Description

IMPLEMENTATION = "triton"


@dataclass(frozen=True)
class Ranked:
    """A config and its predicted time."""

    config: Any
    """The config as given."""
    seconds: float
    """Predicted device time; infinite if it cannot run."""
    reason: str = ""
    """Why it cannot run; empty if it can."""


def rank(
    configs: Sequence[Any],
    description: Description,
    arguments: Mapping[str, Any] | None = None,
    *,
    device: str | Device | None = None,
) -> tuple[Ranked, ...]:
    """The configs by predicted time, fastest first; equal ones keep their order.

    Configs are `triton.Config`s, or mappings of their fields (`num_warps` and `num_stages`
    included). `arguments` are those of the kernel's by name that the description uses. `device` is
    a slug or a device; None: this machine's. Raises `ProblemError` and `UnknownName` for invalid
    input.
    """
    chip = current() if device is None else load(device) if isinstance(device, str) else device
    problem, tiles = description.problem(arguments or {}), description.tiles(configs)
    spills = running.spilling(description, problem, tiles, chip)
    tiles = running.buffered(chip, tiles)
    seconds = np.full(len(configs), np.inf)
    reasons = np.where(spills, "its registers spill", "").astype(object)
    left = np.flatnonzero(~spills)
    while left.size:
        some = {name: values[left] for name, values in tiles.items()}
        try:
            answer = predict_arrays(problem, chip, implementation=IMPLEMENTATION, tile=some)
        except TileDoesNotFit as refused:
            reasons[left[~refused.fits]] = "a block needs more shared memory than the device has"
            left = left[refused.fits]
            continue
        seconds[left] = answer.seconds
        break
    order = np.argsort(seconds, kind="stable")
    return tuple(Ranked(configs[i], float(seconds[i]), str(reasons[i])) for i in order)


def choose(
    configs: Sequence[Any],
    description: Description,
    arguments: Mapping[str, Any] | None = None,
    *,
    device: str | Device | None = None,
) -> Any:
    """The config with the least predicted time, without a run; arguments as for `rank`.

    Raises `ProblemError` if none can run, and what `rank` raises.
    """
    if not configs:
        raise ProblemError("there are no configs to choose from")
    best = rank(configs, description, arguments, device=device)[0]
    if best.reason:
        raise ProblemError(f"none of {len(configs)} configs can run: {best.reason}")
    return best.config


@cache
def current() -> Device:
    """This machine's device, by the name that its driver reports.

    Raises `ProblemError` where there is none, `UnknownName` for one without a spec.
    """
    from perfmodel.evidence.measured.environment import device_slug, needs_torch

    torch = needs_torch()
    if not torch.cuda.is_available():
        raise ProblemError("there is no GPU here; name a device (device='h100-sxm')")
    return load(device_slug(torch.cuda.get_device_properties(torch.cuda.current_device()).name))
