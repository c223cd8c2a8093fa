"""The blocks of one copy's cache: what requests hold, and prefixes that stay for later ones.

A prompt may come as hashed pieces of equal length (`Arrivals.pieces`). A piece that is computed is
shared: later prompts that begin alike hold it too, and it stays after its last request until its
room is needed, the longest unused first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class CachePool:
    """Blocks of `block` tokens; `piece` tokens are a hashed piece of a prompt."""

    def __init__(self, blocks: int, block: int, piece: int) -> None:
        self.blocks, self.block, self.free = blocks, block, blocks
        self.most = 0
        self._piece, self._size = piece, max(piece // block, 1)
        self._users: dict[int, int] = {}
        self._unused: OrderedDict[int, None] = OrderedDict()

    @property
    def available(self) -> int:
        """Blocks that hold nothing, or prefixes that no request uses."""
        return self.free + len(self._unused) * self._size

    def count(self, tokens: int) -> int:
        """Blocks of `tokens` tokens."""
        return -(-tokens // self.block)

    def take(self, blocks: int) -> None:
        """Hand out blocks that are available."""
        while self.free < blocks:
            self._users.pop(self._unused.popitem(last=False)[0])
            self.free += self._size
        self.free -= blocks
        self.most = max(self.most, self.blocks - self.available)

    def known(self, pieces: Sequence[int]) -> list[int]:
        """The pieces at the start of a prompt that are kept."""
        kept: list[int] = []
        for piece in pieces:
            if piece not in self._users:
                break
            kept.append(piece)
        return kept

    def use(self, pieces: Sequence[int]) -> None:
        """Another request holds pieces that are kept."""
        for piece in pieces:
            self._unused.pop(piece, None)
            self._users[piece] += 1

    def keep(self, pieces: Sequence[int], tokens: int) -> list[int]:
        """Share the pieces among a prompt's first `tokens` tokens that no other request shares;
        their blocks are those of the request."""
        inside = dict.fromkeys(pieces[: tokens // self._piece])
        new = [piece for piece in inside if piece not in self._users]
        self._users.update(dict.fromkeys(new, 1))
        return new

    def release(self, tokens: int, shared: Sequence[int]) -> None:
        """A request with `tokens` tokens leaves; the pieces that it shared stay, the last go
        first."""
        self.free += self.count(tokens) - len(shared) * self._size
        for piece in reversed(shared):
            self._users[piece] -= 1
            if not self._users[piece]:
                self._unused[piece] = None

    def unused(self, pieces: Sequence[int]) -> int:
        """Blocks of those pieces that no request uses."""
        return sum(piece in self._unused for piece in pieces) * self._size
