"""Constants of collectives: `constants.yaml`, read like those of the time model."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from perfmodel.timing.constants import Constant, read

PATH = Path(__file__).with_name("constants.yaml")

Values = dict[str, float]
"""Value of each constant by name."""


@lru_cache(maxsize=1)
def shipped() -> tuple[Constant, ...]:
    """The shipped constants."""
    return read(PATH)


@lru_cache(maxsize=1)
def default() -> Values:
    """Values of the shipped constants; callers share this dictionary."""
    return {item.name: item.value for item in shipped()}


def priors() -> Values:
    """Values by the sources alone, before the fit."""
    return {item.name: item.prior for item in shipped()}
