"""A method: an algorithm under a protocol, which a library chooses for each collective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["LL", "LL128", "Simple", "pull", "push"]


@dataclass(frozen=True)
class Method:
    """How a collective is carried out."""

    algorithm: str
    """ring, tree, nvls, nvls-tree, pairwise, one-shot, two-shot, multimem."""
    protocol: Protocol
    """LL: a flag with every 4 bytes; LL128: a flag with every 120; Simple: whole chunks with a
    handshake; pull: loads from peers' memory between barriers; push: stores to it, values being
    their own flags."""
