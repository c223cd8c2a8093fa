"""How many kernels go through a list of tensors, and which optimiser implementations do so how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from perfmodel.arithmetic import ceil_div


@dataclass(frozen=True)
class Style:
    """How an implementation runs an update over many tensors."""

    name: str
    """What a plan calls it."""
    about: str
    """One line for a person."""
    passes: Literal["fewest", "each"]
    """Steps of one kernel: as many as dependences allow, or one."""
    copy: Literal["within", "apart"]
    """Whether the copy of the weights in another type is written by the update's last kernel."""
    source: str
    """Where that is said."""
    chunk: int | None = None
    """Elements that one thread block goes through; None where a kernel takes one tensor."""
    blocks: int = 0
    """Thread blocks, so chunks, that the arguments of a launch hold."""
    tensors: tuple[int, ...] = ()
    """Tensors that they hold, by the number of lists of tensors: the first is for one list."""

    def launches(self, elements: Iterable[tuple[int, int]], lists: int) -> int:
        """Launches over tensors, in order: pairs of the elements of one and of how many there are.

        A launch ends where its blocks are full, even within a tensor, or its tensors are; what is
        left of a cut tensor is the first of the next launch (multi_tensor_apply.cuh). `lists` are
        those that a kernel walks side by side: weights, gradients, each state, the copy.
        """
        if self.chunk is None:
            return sum(count for _, count in elements)
        most = self.tensors[min(lists, len(self.tensors)) - 1]
        launches = blocks = tensors = 0
        for size, count in elements:
            chunks = ceil_div(size, self.chunk)
            for _ in range(count):
                tensors += 1
                full, blocks = divmod(blocks + chunks, self.blocks)
                launches += full
                if full:
                    tensors = 1 if blocks else 0
                if tensors == most:
                    launches, blocks, tensors = launches + 1, 0, 0
        return launches + (blocks > 0)
