"""Places for text on a chart where it covers neither marks nor other text.

Everything is measured in inches on the page, so that the same chart reads well at any size: a text
is a row of sample points along its middle, and a place costs what lies near those points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

Place = tuple[float, float]

_MARK = 0.12  # inches kept free around a mark
_TEXT = 0.13  # inches kept free between two texts
_CROSSING = 0.05  # inches kept free to a line, which costs less to cover
_STEP = 0.05  # inches between the sample points of a text or a line


@lru_cache(maxsize=1024)
def text_inches(text: str, points: float) -> float:
    """Length of `text` set in type of `points`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.0
    path = TextPath((0, 0), text, size=points, prop=FontProperties(family=["DejaVu Sans"]))
    return float(path.get_extents().width) / 72


class Places:
    """What is taken on one panel, and the best of the places offered for the next text."""

    def __init__(self, marks: Iterable[Place], lines: Iterable[tuple[Place, Place]] = ()) -> None:
        self._marks = np.array([*marks], dtype=float).reshape(-1, 2)
        self._texts = np.empty((0, 2))
        self._lines = [_between(*ends) for ends in lines]

    def best(self, offered: Sequence[Place], length: float, angle: float) -> Place:
        """The place (start of the text's middle line) that costs least; earlier ones are preferred.

        `length` is in inches, `angle` in radians. The chosen place is taken from then on.
        """
        costs = [self._cost(place, length, angle) + 0.005 * i for i, place in enumerate(offered)]
        chosen = offered[costs.index(min(costs))]
        self.take(chosen, length, angle)
        return chosen

    def take(self, start: Place, length: float, angle: float) -> None:
        """Keep the place of a text that could stand nowhere else."""
        self._texts = np.concatenate([self._texts, _along(start, length, angle)])

    def _cost(self, place: Place, length: float, angle: float) -> float:
        samples = _along(place, length, angle)
        covered = _near(self._marks, samples, _MARK).sum()
        written = _near(self._texts, samples, _TEXT).sum()
        crossed = sum(_near(line, samples, _CROSSING).any() for line in self._lines)
        return float(covered + written + 0.3 * crossed)


def _along(start: Place, length: float, angle: float) -> np.ndarray:
    """Points along a text."""
    end = (start[0] + length * math.cos(angle), start[1] + length * math.sin(angle))
    return _between(start, end)


def _between(start: Place, end: Place) -> np.ndarray:
    """Points from `start` to `end`, of shape (n, 2)."""
    return np.linspace(start, end, max(2, math.ceil(math.dist(start, end) / _STEP) + 1))


def _near(points: np.ndarray, samples: np.ndarray, distance: float) -> np.ndarray:
    """Which of `points` lie closer to a sample than `distance`."""
    between = points[:, None, :] - samples[None, :, :]
    found: np.ndarray = ((between**2).sum(axis=2) < distance**2).any(axis=1)
    return found
