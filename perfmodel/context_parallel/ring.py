"""A ring of devices, step by step: each works on its current keys while the next ones arrive.

    start(i, s + 1) = max(end(i, s), arrival at i, arrival at i + 1)
    arrival at i    = max(start(i − 1, s), start(i, s)) + send

Both ends of a transfer post it when they begin step s and wait for it at its end, as the published
kernels do. So a step takes the longer of computing and sending, and a device with less work waits
for its neighbours. In step s, device i works on the keys of device i − s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Ring:
    """The times of a simulated ring, as (predicted, low, high)."""

    seconds: np.ndarray
    """Seconds until the last device has ended, shape (3,)."""
    busy_seconds: np.ndarray
    """Seconds of computing of each device, shape (ranks, 3)."""

    @property
    def exposed_seconds(self) -> np.ndarray:
        """Seconds beyond the computing of the busiest device, shape (3,)."""
        return np.asarray(self.seconds - self.busy_seconds.max(axis=0))


def run(step_seconds: np.ndarray, send_seconds: np.ndarray) -> Ring:
    """Simulate a ring.

    `step_seconds`: computing of each device in each step, shape (ranks, steps, 3). `send_seconds`:
    one send, shape (3,). Nothing is sent in the last step.
    """
    ranks, steps, _ = step_seconds.shape
    start = np.zeros((ranks, step_seconds.shape[2]))
    for step in range(steps):
        end = start + step_seconds[:, step]
        arrival = np.maximum(np.roll(start, 1, axis=0), start) + send_seconds
        if step < steps - 1:
            start = np.maximum(end, np.maximum(arrival, np.roll(arrival, -1, axis=0)))
    return Ring(end.max(axis=0), step_seconds.sum(axis=1))
