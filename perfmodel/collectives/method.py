"""A method: an algorithm under a protocol, as a library picks one for each collective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["LL", "LL128", "Simple", "direct"]


@dataclass(frozen=True)
class Method:
    """How a collective is carried out."""

    algorithm: str
    """ring, tree, nvls, nvls-tree, pairwise, one-shot, two-shot."""
    protocol: Protocol
    """LL: a flag beside every four bytes; LL128: beside every 120; Simple: whole chunks with a
    handshake; direct: loads from the peers' memory between barriers."""
