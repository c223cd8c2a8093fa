"""Launches whose parameters are bound by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel_kernels.limits import check_positive_counts, check_powers

from perfmodel.proof.kernel import Argument, Array, Descriptor, Launch


def launch(
    kernel: str,
    function: Any,
    blocks: int,
    arrays: Sequence[Array],
    /,
    warps: int = 4,
    stages: int = 2,
    **values: Any,
) -> Launch:
    """A launch of `blocks` blocks that carries out the schedule's `kernel`.

    A parameter that `values` lacks is the array of its name, in capitals. A value is an argument if
    its parameter has small letters, or if it is an array's name or a descriptor; else it is a
    compile-time constant. Raises `ProblemError` for warps that are no power of two and stages below
    1, and `KeyError` for a parameter without a value.
    """
    check_powers(warps=warps)
    check_positive_counts(stages=stages)
    stored = {array.name.upper(): array.name for array in arrays}
    arguments: dict[str, Argument] = {
        name: stored[name] for name in function.arg_names if name not in values
    }
    constants = {}
    for name, value in values.items():
        named = isinstance(value, str) and value in stored.values()
        bound = named or isinstance(value, Descriptor) or name.islower()
        (arguments if bound else constants)[name] = value
    return Launch(kernel, function, (blocks,), arguments, constants, warps, stages)
