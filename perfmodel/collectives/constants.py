"""Constants of collectives: `constants.yaml`, read as those of the time model."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from perfmodel.timing.constants import Constant, read

PATH = Path(__file__).with_name("constants.yaml")

Values = dict[str, float]
"""Value of each constant by name."""


@lru_cache(maxsize=1)
def shipped() -> tuple[Constant, ...]:
    """The constants that come with the package."""
    return read(PATH)


@lru_cache(maxsize=1)
def default() -> Values:
    """Values of the shipped constants; callers share them."""
    return {item.name: item.value for item in shipped()}


def priors() -> Values:
    """What the sources alone say."""
    return {item.name: item.prior for item in shipped()}
