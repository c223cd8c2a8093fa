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
"""The level that a tensor lies in unless it is placed: the device's own memory."""


@dataclass(frozen=True)
class Tensor:
    """An array in memory; raises `ProblemError` for a shape without meaning, `UnknownName` for a
    type or level that is not there.
    """

    name: str
    """What edges call it."""
    shape: tuple[int, ...]
    """Extents; 0 is none at all, as of a cache with nothing in it yet."""
    dtype: str = "bf16"
    """Element type."""
    place: str = OWN
    """The level of memory that it lies in: hbm, host, peer, network."""
    over: str = ""
    """The tensor whose memory it is written into, where it is an update in place."""

    def __post_init__(self) -> None:
        element(self.dtype)
        for extent in self.shape:
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
                shown = " x ".join(str(one) for one in self.shape)
                raise ProblemError(
                    f"tensor {self.name} is {shown}; extents are whole numbers of at least 0"
                )
        if math.prod(self.shape) > MOST_ELEMENTS:
            raise ProblemError(
                f"tensor {self.name} has more than 2^56 elements; give it a smaller shape"
            )
        if self.place not in (OWN, *LINKS):
            raise UnknownName(f"level that tensor {self.name} lies in", self.place, (OWN, *LINKS))

    @cached_property
    def bytes(self) -> float:
        """Bytes, the scales of its type included."""
        return math.prod(self.shape) * element(self.dtype).bytes
