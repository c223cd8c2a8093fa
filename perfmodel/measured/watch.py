"""Reads a device's clock and power in the background while it works."""

from __future__ import annotations

import threading
from statistics import median
from types import TracebackType

from perfmodel.measured.environment import Gauge, State

_EVERY_S = 0.02


class Watch:
    """Reads `gauge` until the context ends, in a thread of its own; at least once.

    A reading takes about a millisecond of one host core and no time on the device.
    """

    def __init__(self, gauge: Gauge, every_s: float = _EVERY_S) -> None:
        self._gauge = gauge
        self._every_s = every_s
        self._over = threading.Event()
        self._states: list[State] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def clock_mhz(self) -> float | None:
        """The median clock; None where it cannot be read."""
        return _median([state.clock_mhz for state in self._states])

    @property
    def power_w(self) -> float | None:
        """The median power; None where it cannot be read."""
        return _median([state.power_w for state in self._states])

    @property
    def throttle(self) -> str:
        """Every throttle reason that was read meanwhile."""
        reasons = (part for state in self._states for part in state.throttle.split("+") if part)
        return "+".join(dict.fromkeys(reasons))

    def _run(self) -> None:
        while True:
            self._states.append(self._gauge.read())
            if self._over.wait(self._every_s):
                return


def _median(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return median(numbers) if numbers else None
