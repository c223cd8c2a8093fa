"""Lists of options combined: every value with every other, or with `--zip` in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any

from perfmodel.errors import ProblemError
from perfmodel.fieldoption import PLAN, FieldOption

Zip = Annotated[
    bool,
    FieldOption(
        PLAN,
        spellings=("--zip",),
        help="Pair the lists element by element (-d h100,b200 --tensor 4,2), not each with each; "
        "a list of one value repeats.",
    ),
]


def count(lists: Mapping[str, Sequence[Any]], *, pairs: bool) -> int:
    """Number of combinations. Raises `ProblemError` for lists that do not pair."""
    if pairs:
        sizes = {name: len(values) for name, values in lists.items() if len(values) != 1}
        if len(set(sizes.values())) > 1:
            text = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ProblemError(
                f"--zip pairs lists of one length, not {text}; give each as many values, or one"
            )
        return max(sizes.values(), default=1)
    total = 1
    for values in lists.values():
        total *= len(values)
    return total


def combined(lists: Mapping[str, Sequence[Any]], *, pairs: bool) -> list[dict[str, Any]]:
    """A value of each list by name: every combination, or element by element with `pairs`.

    Raises as `count`.
    """
    if not pairs:
        return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    return [
        {name: values[i % len(values)] for name, values in lists.items()}
        for i in range(count(lists, pairs=True))
    ]
