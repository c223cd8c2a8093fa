"""What-ifs as a table and as a tornado chart: the hardware numbers that decide the time.

The chart adds the times of all cases. A bar goes from the time with the number halved to the time
with it doubled. The widest bar is on top; requested changes follow below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.analysis.whatif import CaseChange, WhatIf
from perfmodel.columns import columns_of
from perfmodel.errors import ProblemError
from perfmodel.quantities import signed
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.problem import spoken
from perfmodel.render.report import Column, Report, Row
from perfmodel.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.235  # inches for each bar
_FAR = 1.5  # a bar longer than this share of the time is cut and labelled with its length


def report(found: Sequence[WhatIf], varying: Sequence[str], follows: Mapping[str, str]) -> Report:
    """One line for each case and hardware number, and for each case and change.

    `varying` are the problem's fields that differ between the cases; `follows` maps a field to
    another one that it always equals.
    """
    rows = [row for item in found for row in item.rows()]
    names = {
        (item.setting.device.slug, level.name): level.short
        for item in found
        for level in item.setting.device.levels()
    }

    def limiters(row: Row) -> str:
        before, after = (names.get((row["device"], row[key]), row[key])
                         for key in ("limiter", "limiter_after"))  # fmt: skip
        return str(before) if before == after else f"{before} → {after}"

    device, *own = columns_of(CaseChange)
    columns = [
        device,
        *(_problem(name) for name in varying),
        *(replace(each, get=limiters) if each.key == "limiter" else each for each in own),
    ]
    missing = {item.setting.device.slug: item.missing for item in found if item.missing}
    return Report(
        "whatif",
        rows,
        columns,
        title=_title(rows[0], varying, follows),
        notes=[f"{slug}: the spec has no {', '.join(names)}" for slug, names in missing.items()],
        examples=rows,
    )


def _problem(name: str) -> Column:
    return Column(name, lambda row: row["problem"].get(name))


def _title(row: Row, varying: Sequence[str], follows: Mapping[str, str]) -> str:
    hidden = {*varying, *(name for name, other in follows.items() if other in varying)}
    fixed = [f"{key}={value}" for key, value in row["problem"].items() if key not in hidden]
    return f"{row['device']}: {' '.join(fixed)}"


@dataclass(frozen=True)
class _Line:
    """A row of the chart: a hardware number halved and doubled, or a change that was asked for."""

    name: str
    shares: Mapping[str, float]
    """Changes of the time, by what is done."""
    elasticity: float | None = None
    """That of a number; NaN where a case steps."""

    @property
    def note(self) -> str:
        """What stands at the right: the elasticity, or the change that was asked for."""
        if self.elasticity is None:
            (share,) = self.shares.values()
            return signed(share, "+.0%") if math.isfinite(share) else ""
        return "step" if math.isnan(self.elasticity) else signed(self.elasticity)

    @property
    def width(self) -> float:
        return sum(min(abs(x), _FAR) for x in self.shares.values() if math.isfinite(x))

    @property
    def moves(self) -> bool:
        """Whether the time changes by a thousandth or more."""
        return any(not math.isfinite(x) or abs(x) >= 1e-3 for x in self.shares.values())


def tornado_chart(found: Sequence[WhatIf], page: Page | None = None) -> Chart:
    """The tornado of all cases together; its height depends on the number of bars.

    Numbers without an effect are named in the caption. Raises `ProblemError` without a case, and
    for more than one device.
    """
    from matplotlib.figure import Figure

    slugs = list(dict.fromkeys(item.setting.device.slug for item in found))
    if len(slugs) != 1:
        raise ProblemError(f"a tornado chart shows one device, not {len(slugs)}; name one")
    total = _total([item.now.seconds for item in found])
    numbers = sorted(_numbers(found, total), key=lambda line: -line.width)
    moving = [line for line in numbers if line.moves] or numbers[:1]
    changes = list(_changes(found, total))
    still = [line.name.split("  (")[0] for line in numbers if line not in moving]
    caption = ["Elasticity: per cent of time for each per cent of the number."]
    if still:
        caption.append(f"Neither halved nor doubled do these change the time: {', '.join(still)}.")
    page = page or Page()
    title = f"{slugs[0]}: {_cases(found)}, {seconds(total)} now"
    rows = len(moving) + len(changes) + bool(changes)
    with styled(page) as palette:
        width, height = page.size(6.2, _ROW * rows + 1.4)
        if page.height is None and page.width is None:
            height = (_ROW * rows + 1.0 + 0.4 * page.caption) * palette.scale
        figure = Figure(figsize=(width, height), layout="constrained")
        _draw(figure.add_subplot(), moving, changes, palette)
        dress(figure, page, palette, title, caption)
    phrases = [f"{line.name}: " + ", ".join(f"{side} {x:+.0%}" for side, x in line.shares.items())
            for line in numbers]  # fmt: skip
    data: list[Row] = [{"what": line.name, **line.shares, "elasticity": line.elasticity}
                       for line in numbers]  # fmt: skip
    data += [{"what": line.name, **line.shares} for line in changes]
    return Chart(figure, title, f"Change of time. {'; '.join(phrases)}.", data, caption, page)


def _total(parts: Sequence[np.ndarray]) -> float:
    return float(sum(part.sum() for part in parts))


def _cases(whatifs: Sequence[WhatIf]) -> str:
    """The single case, or the number of cases and what they share."""
    fields = [row["problem"] for item in whatifs for row in item.rows()]
    first = fields[0]
    common = {name: value for name, value in first.items()
              if all(each.get(name) == value for each in fields)}  # fmt: skip
    count = sum(item.now.seconds.size for item in whatifs)
    words = spoken(whatifs[0].setting.problem.operator, common)
    return words if count == 1 else f"{words}, {count:,} cases together"


def _numbers(whatifs: Sequence[WhatIf], total: float) -> Iterator[_Line]:
    """A line for each hardware number, with the elasticity of the total: the mean of the cases'
    own, weighted by their times."""
    for together in zip(*(item.sensitivities for item in whatifs), strict=True):
        quantity = together[0].quantity
        label = f"{quantity.on(whatifs[0].setting.device)}  ({quantity.show(together[0].value)})"
        slope = sum(
            float(np.sum(each.elasticity * item.now.seconds))
            for each, item in zip(together, whatifs, strict=True)
        ) / total  # fmt: skip
        sides = {
            side: _total([getattr(each, side).seconds for each in together]) / total - 1
            for side in ("halved", "doubled")
        }
        yield _Line(label, sides, slope)


def _changes(whatifs: Sequence[WhatIf], total: float) -> Iterator[_Line]:
    for together in zip(*(item.effects for item in whatifs), strict=True):
        share = _total([each.after.seconds for each in together]) / total - 1
        yield _Line(str(together[0].change), {"change": share})


def _draw(axes: Axes, numbers: Sequence[_Line], changes: Sequence[_Line], palette: Palette) -> None:
    """Bars from the top, the widest first, and the changes below them."""
    from matplotlib.ticker import FuncFormatter

    colours = {"halved": palette.vermilion, "doubled": palette.blue, "change": palette.green}
    places = [*range(len(numbers)), *(len(numbers) + 1 + i for i in range(len(changes)))]
    lines = [*numbers, *changes]
    for place, line in zip(places, lines, strict=True):
        for side, share in line.shares.items():
            fits = math.isfinite(share)
            if fits:
                known = axes.get_legend_handles_labels()[1]
                axes.barh(place, min(share, _FAR), height=0.62, color=colours[side],
                          gid=f"{side}-{place}",
                          label=side if side not in (*known, "change") else None)  # fmt: skip
            if not fits or share > _FAR:
                axes.annotate(
                    f"{share:+.0%}" if fits else f"{side}: does not fit",
                    (_FAR if fits else 0.0, place), xytext=(-3 if fits else 4, 0),
                    textcoords="offset points", ha="right" if fits else "left", va="center",
                    color=palette.ground if fits else colours[side], fontsize=palette.small,
                )  # fmt: skip
        axes.text(1.015, place, line.note, transform=axes.get_yaxis_transform(), va="center",
                  fontsize=palette.label)  # fmt: skip
    axes.axvline(0, color=palette.grey, linewidth=0.7)
    axes.set_yticks(places, [line.name for line in lines])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    left, right = axes.get_xlim()
    axes.set_xlim(left - 0.04 * (right - left), right + 0.02 * (right - left))
    percent = FuncFormatter(lambda value, _: f"{value:+.0%}" if value else "now")
    axes.xaxis.set_major_formatter(percent)
    axes.set_xlabel("Change of time")
    axes.text(1.015, 1.01, "elasticity", transform=axes.transAxes, fontsize=palette.label,
              va="bottom")  # fmt: skip
    axes.legend(loc="lower right", ncols=1)
