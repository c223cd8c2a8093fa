"""Host time of a kernel launch (`hosts.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfmodel import yamltable
from perfmodel.errors import UnknownName


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


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Host]:
    document = yamltable.read(Path(__file__).with_name("hosts.yaml"))
    return {name: Host(name=name, **entry) for name, entry in document["hosts"].items()}


def load(name: str) -> Host:
    """The host of a stack; raises `UnknownName`."""
    if name not in _table():
        raise UnknownName("host", name, _table())
    return _table()[name]
