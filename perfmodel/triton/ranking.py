"""Configs sorted by predicted time, those that cannot run last; `prune_configs_by` of Triton.

Triton calls `early_config_prune(configs, named_args, **kwargs)` once for each key, and may then
prune further by `perf_model` and `top_k`. Here the first call does everything: one call of the
model for all configs takes milliseconds, one call a config would take as long as a run. So `top_k`
is a number of configs, never a share, which Triton would apply to the list before pruning
(Autotuner.prune_configs in 3.7).

Where the model has no answer every config is kept, which a `perf_model` could not do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
    from perfmodel.measured.environment import device_slug, needs_torch

    torch = needs_torch()
    if not torch.cuda.is_available():
        raise ProblemError("there is no GPU here; name a device (device='h100-sxm')")
    return load(device_slug(torch.cuda.get_device_properties(torch.cuda.current_device()).name))


Prune = Callable[..., list[Any]]


def prune(
    description: Description, top_k: int = 8, *, device: str | Device | None = None
) -> dict[str, Prune]:
    """The value for `prune_configs_by` of `triton.autotune`: the `top_k` configs predicted fastest.

    Configs that cannot run are dropped first. Nothing is raised during tuning: where the model has
    no answer (an unknown device or type) all configs are kept, with one warning. Raises
    `ProblemError` for a `top_k` that is not a whole number from 1.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise ProblemError(f"top_k must be a whole number of configs from 1, not {top_k!r}")
    warned: list[str] = []

    def early_config_prune(
        configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any
    ) -> list[Any]:
        try:
            ranked = rank(configs, description, {**named_args, **kwargs}, device=device)
            able = [item.config for item in ranked if not item.reason]
            return able[:top_k] or list(configs)
        except Exception as error:  # tuning must go on, whatever the arguments are
            if not warned:
                warned.append(" ".join(str(error).split()) or type(error).__name__)
                message = f"perfmodel keeps every config: {warned[0]}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            return list(configs)

    return {"early_config_prune": early_config_prune}
