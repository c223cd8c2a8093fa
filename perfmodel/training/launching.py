"""Launches over a list of tensors, and the optimiser implementations that make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from perfmodel.arithmetic import ceil_div


@dataclass(frozen=True)
class Style:
    """How an implementation runs an update over many tensors."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    passes: Literal["fewest", "each"]
    """Steps in one kernel: as many as the dependences allow, or one."""
    copy: Literal["within", "apart"]
    """Whether the update's last kernel also writes the weights' copy in another type, or a separate
    one."""
    source: str
    """Source."""
    chunk: int | None = None
    """Elements that one thread block processes; None where a kernel takes one tensor."""
    blocks: int = 0
    """Thread blocks (chunks) that the arguments of one launch hold."""
    tensors: tuple[int, ...] = ()
    """Tensors that the arguments hold, by the number of lists; the first entry is for one list."""

    def launches(self, elements: Iterable[tuple[int, int]], lists: int) -> int:
        """Launches over tensors, in order; a pair is the elements of a tensor and the number of
        such tensors.

        A launch ends when it has no room for another block, even within a tensor, or for another
        tensor. A tensor that was cut continues as the first of the next launch
        (multi_tensor_apply.cuh). `lists` counts the lists that a kernel goes through in parallel:
        weights, gradients, each state, the copy.
        """
        if self.chunk is None:
            return sum(count for _, count in elements)
        limit = self.tensors[min(lists, len(self.tensors)) - 1]
        launches = blocks = tensors = 0
        for size, count in elements:
            chunks = ceil_div(size, self.chunk)
            for _ in range(count):
                tensors += 1
                full, blocks = divmod(blocks + chunks, self.blocks)
                launches += full
                if full:
                    tensors = 1 if blocks else 0
                if tensors == limit:
                    launches, blocks, tensors = launches + 1, 0, 0
        return launches + (blocks > 0)
