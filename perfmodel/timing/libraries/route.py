"""Problems that a library sends to other kernels; `timing.routing` says which kernel runs."""

from __future__ import annotations

from typing import Annotated

from perfmodel.frozen import dataclass
from perfmodel.timing.architectures import Instruction

# Every number of heads or elements.
_ANY = (0.0, 1e9)


@dataclass(frozen=True)
class Route:
    """Problems that a library sends to another kernel: those for which all that is stated holds."""

    kernel: str
    """The other kernel."""
    group: Annotated[tuple[float, float], "query heads a key-value head"] = _ANY
    """Fewest and most query heads that share a key-value head."""
    head_dim: Annotated[tuple[float, float], "elements"] = _ANY
    """Least and largest head dimension."""
    cache: tuple[str, ...] = ()
    """Types of keys and values; empty: all."""
    instruction: tuple[Instruction, ...] = ()
    """Matrix instructions of the devices; empty: all."""
    windowed: bool = False
    """Whether only where a window hides keys."""
    masked: bool = False
    """Whether only under an explicit mask."""
    few_blocks: Annotated[float, "blocks a unit"] = 0.0
    """If set, only grids of fewer blocks: sequences x key-value heads x slices of `slice_keys`."""
    slice_keys: Annotated[int, "keys"] = 128
    """Keys of such a slice."""
