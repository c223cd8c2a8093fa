"""Where steps are predicted, and what lies between: tables by size that grow as they are asked.

The time of a step's products goes nearly linearly with its tokens between neighbours of the menu
below, attention's with sequences × cached tokens. So a step is predicted at knots and interpolated
between them, and sweeps of any length cost a few hundred predictions. Common batches are knots.
"""

from __future__ import annotations

import numpy as np

_HALVES = (1.0, 1.5)
KNOTS = np.unique(
    [int(2**power * part) for power in range(24) for part in _HALVES if 2**power * part >= 1]
)
"""1, 2, 3, 4, 6, 8, 12, 16, 24, 32 ... 12 million."""


def around(
    values: np.ndarray, knots: np.ndarray = KNOTS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knots below and above each value, and the share of the way from one to the other."""
    values = np.clip(np.asarray(values, dtype=float), knots[0], knots[-1])
    above = np.searchsorted(knots, values)
    below = np.where(knots[above] == values, above, above - 1)
    low, high = knots[below], knots[above]
    return low, high, np.where(high > low, (values - low) / np.maximum(high - low, 1), 0.0)
