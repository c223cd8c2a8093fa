"""Host time of a kernel launch (`hosts.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfmodel.catalogue import Table


@dataclass(frozen=True)
class Host:
    """Host time of one launch, in seconds."""

    name: str
    """Name, as stacks refer to it."""
    forward_seconds: float
    """A launch in the forward pass, from Python."""
    backward_seconds: float
    """A launch in the backward pass, from the autograd engine."""
    micro_batch_seconds: float = 0.0
    """Between two micro-batches, while the device idles: the host fetches a batch and reads a
    loss."""
    source: str = ""
    """Where the numbers come from."""


HOSTS = Table("host", Host, Path(__file__).with_name("hosts.yaml"), "hosts")
"""The hosts of stacks."""
load = HOSTS.load
