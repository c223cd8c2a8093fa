"""Coordinates of a log-log panel: from data to inches and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfmodel.render.labels import Box, Place

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Frame:
    """A panel with logarithmic axes."""

    x: tuple[float, float]
    """Limits of the x axis."""
    y: tuple[float, float]
    """Limits of the y axis."""
    width: float
    """Inches."""
    height: float
    """Inches."""

    def inches(self, x: float, y: float) -> Place:
        """The position of a data point, from the panel's lower left corner."""
        return (
            self.width * math.log(x / self.x[0]) / math.log(self.x[1] / self.x[0]),
            self.height * math.log(y / self.y[0]) / math.log(self.y[1] / self.y[0]),
        )

    def data(self, place: Place) -> tuple[float, float]:
        """The inverse of `inches`."""
        return (
            self.x[0] * (self.x[1] / self.x[0]) ** (place[0] / self.width),
            self.y[0] * (self.y[1] / self.y[0]) ** (place[1] / self.height),
        )

    @property
    def angle(self) -> float:
        """Screen angle of a diagonal, in radians."""
        per_decade_x = self.width / math.log10(self.x[1] / self.x[0])
        per_decade_y = self.height / math.log10(self.y[1] / self.y[0])
        return math.atan2(per_decade_y, per_decade_x)

    def write(
        self, axes: Axes, words: str, box: Box, points: float, colour: str, gid: str = ""
    ) -> None:
        """Write `words` into `box`."""
        axes.text(
            *self.data(box.start),
            words,
            fontsize=points,
            color=colour,
            rotation=math.degrees(box.angle),
            rotation_mode="anchor",
            ha="left",
            va="center_baseline",
            zorder=9,
            gid=gid or None,
            bbox={
                "boxstyle": "square,pad=0.05",
                "facecolor": axes.get_facecolor(),
                "alpha": 0.75,
                "linewidth": 0,
            },
        )
