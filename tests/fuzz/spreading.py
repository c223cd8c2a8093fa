"""Where operands lie and over which devices axes are split: --place, --mesh, --stored."""

from __future__ import annotations

from collections.abc import Sequence

from dice import Dice

AXES = {
    "attention": ("batch", "heads", "kv_heads", "seq", "b", "g", "h", "q", "x", "d", "kv", "e"),
    "gemm": ("m", "n", "k", "batch", "b"),
    **dict.fromkeys(("softmax", "layernorm", "rmsnorm", "pointwise", "quantise"),
                    ("rows", "cols", "r", "c", "i", "j")),
}  # fmt: skip
TENSORS = {
    "attention": ("Q", "K", "V", "O", "kv", "q", "S", "P"),
    "gemm": ("A", "B", "C", "weights", "activations"),
    **dict.fromkeys(("softmax", "layernorm", "rmsnorm", "pointwise", "quantise"), ("X", "Y")),
}
LINKS = ("nvlink", "nvlink", "peer", "network", "host", "xgmi", "hbm", "pcie", "foo", "")


def spread(
    dice: Dice,
    operator: str,
    *,
    axes: Sequence[str] = (),
    tensors: Sequence[str] = (),
    place: bool = True,
    most: float = 0.15,
) -> list[str]:
    """Options of one call; `axes` and `tensors` are those of an operator that is not built in."""
    axes = axes or AXES.get(operator, ("m",))
    tensors = tensors or TENSORS.get(operator, ("X",))
    found: list[str] = []
    if place and dice.chance(most):
        for _ in range(dice.choice((1, 1, 2))):
            level = dice.choice(("host", "peer", "network", "hbm", "l2", "foo"))
            found += ["--place", _word(dice, f"{dice.choice(tensors)}={level}")]
    if dice.chance(most):
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            ranks = dice.choice(
                ("2", "2", "4", "8", "1", "0", "-1", "3", "72", "1000000", "9" * 30)
            )
            found += ["--mesh", _word(dice, f"{dice.choice(axes)}={ranks}@{dice.choice(LINKS)}")]
        for _ in range(dice.choice((0, 0, 1, 2))):
            lies = dice.choice((*axes, "whole", "foo"))
            found += ["--stored", _word(dice, f"{dice.choice(tensors)}={lies}")]
    return found


def _word(dice: Dice, text: str) -> str:
    """The value of an option, now and then damaged."""
    draw = dice.random()
    if draw < 0.05:
        return dice.damaged(text)
    return dice.hostile() if draw < 0.07 else text
