"""Targets of a service: limits on the time to the first token and between tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.units import parse

_PANEL = "Targets"
"""Heading of the options."""


def _seconds(text: str) -> float:
    """Seconds of a text such as 500ms. Raises `UnitError` and `ProblemError`."""
    seconds = parse(text, "time")
    if not 0.0 < seconds < 1e6:
        raise ProblemError(f"a target of {text}: give a time above 0, such as 500ms")
    return seconds


@dataclass(frozen=True)
class Targets:
    """Limits that a service must meet."""

    ttft: Annotated[float | None, FieldOption(_PANEL, "TIME", single=True, read=_seconds)] = None
    """Target of the time to the first token, as 500ms: what meets it is counted, and --plan auto
    searches it."""
    tpot: Annotated[float | None, FieldOption(_PANEL, "TIME", single=True, read=_seconds)] = None
    """Target of the time between tokens, as 50ms."""

    @property
    def given(self) -> bool:
        """Whether there is a target."""
        return not self.ttft is self.tpot is None

    @property
    def limits(self) -> tuple[float, float]:
        """Seconds to the first token and between tokens; infinite without a target."""
        return self.ttft or math.inf, self.tpot or math.inf
