"""Strategies that several files of laws draw from: problems under every kind of schedule.

A draw is a `Laid`: a family of schedules, sizes, tiles and options, so that a law can change one of
them, put symbols in their place, or stack several draws of a family into arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.count import Cost, count
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.rowwise import elementwise, rows
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.standard import standard, standard_backward
from perfmodel.schedules.tiled import split_kv, tiled, tiled_backward

ATTENTION: dict[str, Any] = {
    "flash 1": lambda mask, r, c, _, **more: tiled(mask, r, c, order=1, **more),
    "flash 2": lambda mask, r, c, _, **more: tiled(mask, r, c, **more),
    "split": lambda mask, r, c, d, **more: split_kv(mask, r, d * c, c, **more),
    "flash 1 backward": lambda mask, r, c, _, **more: tiled_backward(mask, r, c, order=1, **more),
    "flash 2 backward": lambda mask, r, c, _, **more: tiled_backward(mask, r, c, **more),
    "standard": lambda mask, r, c, d, **more: standard(mask, tile=(r, c, d), **more),
    "standard backward": lambda mask, r, c, d, **more: standard_backward(
        mask, tile=(r, c, d), **more
    ),
}
PRODUCTS: dict[str, Any] = {
    "product": lambda m, n, k, **more: tiled_matmul(m, n, k, **more),
    "split product": lambda m, n, k, **more: tiled_matmul(m, n, k, split_k=2 * k, **more),
}
ROWS = ("softmax", "layernorm", "rmsnorm", "quantise")
FAMILIES = (*ATTENTION, *PRODUCTS, *ROWS, *(f"{op} backward" for op in ROWS[:3]), "pointwise")


def examples(share: float) -> settings:
    """So many times the examples of the profile, whichever that is: fewer of a law of which each
    example is long, or that is drawn for each of many names, more of one where it is short."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))


@dataclass(frozen=True)
class Laid:
    """A problem under a schedule."""

    family: str
    sizes: tuple[Any, ...]
    """Batch, groups, heads a group, queries, keys, head dimensions; batch, m, n, k; or rows and
    columns."""
    tile: tuple[Any, ...]
    mask: tuple[bool, Any] = (False, None)
    """Whether attention is causal, and its window."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the schedule."""
    dtype: str = "bf16"

    @property
    def problem(self) -> Problem:
        """The problem alone."""
        if self.family in ATTENTION:
            batch, groups, ratio, *rest = self.sizes
            causal, window = self.mask
            heads = batch, groups * ratio, groups
            return Attention(*heads, *rest, causal=causal, window=window, dtype=self.dtype)
        if self.family in PRODUCTS:
            batch, *sides = self.sizes
            return Matmul(*sides, batch, dtype=self.dtype)
        op, _, backward = self.family.partition(" ")
        return Rowwise(op, *self.sizes, direction="bwd" if backward else "fwd")

    @property
    def schedule(self) -> Schedule:
        """Its schedule."""
        if self.family in ATTENTION:
            return ATTENTION[self.family](self.problem.mask(), *self.tile, **self.options)
        if self.family in PRODUCTS:
            return PRODUCTS[self.family](*self.tile, **self.options)
        if self.family == "pointwise":
            return elementwise(self.problem, self.tile[0])
        return rows(self.problem, *self.tile[:2])

    @property
    def cost(self) -> Cost:
        """Its count."""
        return count(self.schedule, self.problem.sizes(), self.problem.elements())

    def having(self, **changes: Any) -> Laid:
        """A copy."""
        return replace(self, **changes)


def options_of(family: str) -> dict[str, st.SearchStrategy[Any]]:
    """What the schedules of a family leave open."""
    if family.startswith("flash 1"):
        return {"accounting": st.sampled_from(["paper", "literal", "impl"])}
    if family.startswith("standard"):
        passes = st.sampled_from(["none", "additive", "masked_fill"])
        return {"mask_pass": passes, "dropout": st.booleans(), "scaled_copy": st.booleans()}
    if family in PRODUCTS:
        return {"group_m": st.none() | st.integers(1, 3)}
    return {"pack": st.integers(1, 3)} if family in ("flash 2", "split") else {}


@st.composite
def laid(
    draw: st.DrawFn,
    families: Sequence[str] = FAMILIES,
    masked: bool | None = None,
    most: int = 40,
) -> Laid:
    """Small problems with ragged ends, grouped heads, all masks, types and options."""
    family = draw(st.sampled_from(families))
    lengths, tiles = st.integers(1, most), st.integers(3, 20)
    options = draw(st.fixed_dictionaries(options_of(family)))
    if family in ATTENTION:
        heads = draw(st.sampled_from([(1, 1, 1), (2, 1, 2), (1, 2, 1), (1, 1, 3)]))
        dims = draw(st.integers(1, 9)), draw(st.integers(1, 9))
        sizes = *heads, draw(lengths), draw(lengths), *dims
        causal = draw(st.booleans()) if masked is None else masked
        window = draw(st.none() | st.integers(1, 45)) if masked is not False else None
        tile = draw(tiles), draw(tiles), draw(st.integers(2, 9))
        dtype = draw(st.sampled_from(["bf16", "fp8"]))
        return Laid(family, sizes, tile, (causal, window), options, dtype)
    if family in PRODUCTS:
        sizes = draw(st.integers(1, 2)), *(draw(lengths) for _ in range(3))
        tile = tuple(draw(tiles) for _ in range(3))
        dtype = draw(st.sampled_from(["bf16", "fp8", "w4a16"]))
        return Laid(family, sizes, tile, options=options, dtype=dtype)
    tile = draw(st.integers(1, 24)), draw(st.none() | st.integers(1, 24))
    return Laid(family, (draw(lengths), draw(lengths)), tile)
