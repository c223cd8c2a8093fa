"""A tensor of a graph: what one node writes and others read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from perfmodel.algorithms.case import MOST_ELEMENTS
from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware.levels import LINKS

OWN = "hbm"
"""The level that a tensor lies in by default: the device's own memory."""


@dataclass(frozen=True)
class Tensor:
    """An array in memory. Raises `ProblemError` for an impossible shape, `UnknownName` for an
    unknown type or level."""

    name: str
    """Name in edges."""
    shape: tuple[int, ...]
    """Extents; 0 for an empty one, such as a cache without entries."""
    dtype: str = "bf16"
    """Element type."""
    place: str = OWN
    """The level of memory that it lies in: hbm, host, peer, network."""
    over: str = ""
    """The tensor that it overwrites, for an update in place; empty: none."""

    def __post_init__(self) -> None:
        element(self.dtype)
        for extent in self.shape:
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
                shape = " x ".join(str(one) for one in self.shape)
                raise ProblemError(
                    f"tensor {self.name} is {shape}; extents are whole numbers of at least 0"
                )
        if math.prod(self.shape) > MOST_ELEMENTS:
            raise ProblemError(
                f"tensor {self.name} has more than 2^56 elements; give it a smaller shape"
            )
        if self.place not in (OWN, *LINKS):
            raise UnknownName(f"level that tensor {self.name} lies in", self.place, (OWN, *LINKS))

    @cached_property
    def bytes(self) -> float:
        """Bytes, including the scales of its type."""
        return math.prod(self.shape) * element(self.dtype).bytes
