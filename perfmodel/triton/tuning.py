"""`prune_configs_by` of `triton.autotune`, by the model.

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
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.triton.description import Description
from perfmodel.triton.ranking import rank

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
