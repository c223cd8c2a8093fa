"""What the host spends on a launch (`hosts.yaml`)."""

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
    """As stacks name it."""
    forward_seconds: float
    """In the forward pass, from Python."""
    backward_seconds: float
    """In the backward pass, from the autograd engine."""
    micro_batch_seconds: float = 0.0
    """Between two micro-batches, while nothing runs: batches fetched, losses read."""
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
