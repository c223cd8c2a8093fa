"""The layout of a chart: its style, size, title, and caption.

A style is a Matplotlib style file in `perfmodel/render/styles`. Font sizes and distances scale with
its `font.size`; colours come from its cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.resources import as_file, files
from typing import Any

from perfmodel.errors import ProblemError, UnknownName

STYLES = ("default", "paper", "talk", "dark")
WIDE = {"paper": 7.0, "talk": 13.3}
"""Styles that fix a chart's width, and the width for panels side by side; other styles leave it to
the chart."""
MARKERS = "os^DvPXp<"
"""Shapes of series, in order."""
_BODY = 8.0  # font size of the default style in points, for which distances are given


@dataclass(frozen=True)
class Page:
    """The layout of a chart. Lengths in inches; None leaves the choice to the style or the
    chart."""

    style: str = "default"
    """One of `STYLES`."""
    title: str | None = None
    """Replaces the chart's own title; an empty text for none."""
    width: float | None = None
    """Width of the whole picture; without a height, the proportions are kept."""
    height: float | None = None
    """Height of the whole picture."""
    captioned: bool | None = None
    """Whether the caption is drawn; None: in all styles except paper and talk, which lack room."""
    dpi: int = 200
    """Dots an inch, of a .png."""
    transparent: bool = False
    """Whether the background is transparent."""

    def __post_init__(self) -> None:
        """Raise `UnknownName` for another style, `ProblemError` for lengths out of reason."""
        if self.style not in STYLES:
            raise UnknownName("style", self.style, STYLES)
        for name, value in (("width", self.width), ("height", self.height)):
            if value is not None and not 1 <= value <= 60:
                raise ProblemError(f"a {name} of {value:g} is not between 1 and 60 inches")
        if not 20 <= self.dpi <= 1200:
            raise ProblemError(f"{self.dpi} dots an inch are not between 20 and 1200")

    @property
    def caption(self) -> bool:
        """Whether the caption is drawn."""
        return self.style not in WIDE if self.captioned is None else self.captioned

    def titled(self, own: str) -> str:
        """The title: the given one, else the chart's `own`."""
        return own if self.title is None else self.title

    def size(self, width: float, height: float, *, columns: int = 1) -> tuple[float, float]:
        """Size in inches of a chart that is `width` × `height` in the default style.

        `columns` is the number of panels side by side. Call it inside `styled`.
        """
        if self.width is None and self.style in WIDE:
            from matplotlib import rcParams

            broad, tall = rcParams["figure.figsize"]
            if columns == 1 and width > 1.2 * height:  # the format of the style as it is
                return broad, self.height or tall
            broad = broad if columns == 1 else WIDE[self.style]
        else:
            broad = self.width or width
        return broad, self.height or broad * height / width


@contextmanager
def styled(page: Page) -> Iterator[Palette]:
    """Matplotlib's parameters of the page's style, for the duration of the context."""
    from matplotlib import rc_context

    with rc_context():
        for name in dict.fromkeys(("default", page.style)):
            _use(name)
        yield palette()


def _use(name: str) -> None:
    from matplotlib import rc_params_from_file, rcParams

    with as_file(files("perfmodel.render.styles").joinpath(f"{name}.mplstyle")) as path:
        rcParams.update(rc_params_from_file(path, use_default_template=False))


@dataclass(frozen=True)
class Palette:
    """The colours of a style by name, and the sizes that follow from its font."""

    blue: str
    """Blue, as Matplotlib names colours."""
    vermilion: str
    """Vermilion, as Matplotlib names colours."""
    green: str
    """Green, as Matplotlib names colours."""
    ochre: str
    """Ochre, as Matplotlib names colours."""
    purple: str
    """Purple, as Matplotlib names colours."""
    sky: str
    """Sky, as Matplotlib names colours."""
    ink: str
    """Colour of axes and text."""
    grey: str
    """Colour of secondary elements."""
    ground: str
    """Colour of the background."""
    faint: str
    """Colour of grids and guide lines."""
    body: float
    """Font size of the style, in points."""
    line: float
    """Line width of the style, in points."""

    @property
    def cycle(self) -> tuple[str, ...]:
        """Colours of groups, in order."""
        return tuple(getattr(self, name) for name in COLOURS)

    def look(self, i: int) -> tuple[str, str]:
        """Colour and shape of series `i`; nine shapes and eight colours, so that 72 differ."""
        return self.cycle[i % len(self.cycle)], MARKERS[i % len(MARKERS)]

    @property
    def scale(self) -> float:
        """Scale relative to the default style."""
        return self.body / _BODY

    @property
    def label(self) -> float:
        """Font size of labels inside a chart, in points."""
        return 0.875 * self.body

    @property
    def small(self) -> float:
        """Font size of captions and minor labels, in points."""
        return 0.8125 * self.body


COLOURS = tuple(each.name for each in fields(Palette)[:8])
"""Names of the colours of groups, in order."""


def palette() -> Palette:
    """The palette of the active style."""
    from matplotlib import rcParams

    colours = [each["color"] for each in rcParams["axes.prop_cycle"]][: len(COLOURS)]
    colours += [rcParams["figure.facecolor"], rcParams["grid.color"]]
    sizes = (float(rcParams[key]) for key in ("font.size", "lines.linewidth"))
    values: list[Any] = [*map(_hex, colours), *sizes]
    return Palette(*values)


def _hex(colour: str) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour))
