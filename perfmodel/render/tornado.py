"""What-ifs as a table and as a tornado chart: the hardware numbers that decide the time.

The chart adds the times of all cases. A bar goes from the time with the number halved to the time
with it doubled. The widest bar is on top; requested changes follow below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.analysis.quantities import QUANTITIES
from perfmodel.analysis.whatif import Sensitivity, WhatIf
from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.problem import spoken
from perfmodel.render.report import Column, Report, Row, micros, text
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
    devices = {item.setting.device.slug: item.setting.device for item in found}
    labels = {
        slug: {level.name: level.short for level in device.levels()}
        for slug, device in devices.items()
    }
    columns = [text("device", "device")] if len({row["device"] for row in rows}) > 1 else []
    columns += [_problem(name) for name in varying]
    columns += [
        Column("what if", lambda row: row["what_if"], number=False),
        Column("now", _now, rank=3),
        Column("elasticity", lambda row: row["step"] or row["elasticity"], _slope),
        Column("time", lambda row: row["time_us"], micros, rank=2),
        Column("after", lambda row: row["after_us"], micros),
        Column("speed-up", lambda row: row["speedup"], lambda value: f"{value:.2f}x"),
        Column("limiter", lambda row: _limiters(row, labels[row["device"]]), number=False, rank=1),
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


def _now(row: Row) -> str | None:
    quantity = QUANTITIES.get(row["quantity"])
    return quantity.show(row["value"]) if quantity else None


def _signed(value: float, form: str = "+.2f") -> str:
    """A number with its sign, and a zero without one."""
    text = format(value, form)
    return text if any(digit in text for digit in "123456789") else text[1:]


def _slope(value: float | str) -> str:
    """An elasticity, or what steps in its place."""
    return value if isinstance(value, str) else _signed(value)


def _limiters(row: Row, labels: Mapping[str, str]) -> str:
    before, after = (labels.get(row[key], row[key]) for key in ("limiter", "limiter_after"))
    return str(before) if before == after else f"{before} → {after}"


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
    ranking = sorted(_bars(found), key=lambda bar: -_width(bar))
    bars = [bar for bar in ranking if _moves(bar)] or ranking[:1]
    effects = [
        (effect.change, _total([item.effects[i].after.seconds for item in found]) / total - 1)
        for i, effect in enumerate(found[0].effects)
    ]
    page = page or Page()
    title = f"{slugs[0]}: {_cases(found)}, {seconds(total)} now"
    caption = _caption([bar for bar in ranking if bar not in bars])
    rows = len(bars) + len(effects) + bool(effects)
    with styled(page) as palette:
        width, height = page.size(6.2, (_ROW * rows + 1.4))
        if page.height is None and page.width is None:
            height = (_ROW * rows + 1.0 + 0.4 * page.caption) * palette.scale
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        _fill(axes, bars, effects, palette)
        dress(figure, page, palette, title, caption)
    data: list[Row] = [
        {"what": name, "halved": halved, "doubled": doubled, "elasticity": slope}
        for name, halved, doubled, slope in ranking
    ]
    data += [{"what": str(name), "change": share} for name, share in effects]
    return Chart(figure, title, _sentence(ranking), data, caption, page)


def _fill(
    axes: Axes, bars: Sequence[Bar], effects: Sequence[tuple[str, float]], palette: Palette
) -> None:
    """Draw the bars from the top, each with its elasticity, and the changes below them."""
    for place, bar in enumerate(bars):
        _draw(axes, place, *bar[1:3], palette)
        axes.text(
            1.015,
            place,
            "step" if math.isnan(bar[3]) else _signed(bar[3]),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=palette.label,
        )
    for i, (_, share) in enumerate(effects):
        _mark(axes, len(bars) + 1 + i, share, palette)
    spacer = [""] if effects else []
    names = [*(bar[0] for bar in bars), *spacer, *(name for name, _ in effects)]
    _frame(axes, names, palette)


def _moves(bar: Bar) -> bool:
    """Whether halving or doubling the number changes the time by a thousandth or more."""
    return any(not math.isfinite(share) or abs(share) >= 1e-3 for share in bar[1:3])


def _caption(bars: Sequence[Bar]) -> list[str]:
    sentences = ["Elasticity: per cent of time for each per cent of the number."]
    if bars:
        names = ", ".join(bar[0].split("  (")[0] for bar in bars)
        sentences.append(f"Neither halved nor doubled do these change the time: {names}.")
    return sentences


def _sentence(bars: Sequence[Bar]) -> str:
    """The elasticity of each number, in words."""
    parts = [f"{name}: halved {halved:+.0%}, doubled {doubled:+.0%}"
             for name, halved, doubled, _ in bars]  # fmt: skip
    return f"Change of time. {'; '.join(parts)}."


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


Bar = tuple[str, float, float, float]


def _bars(whatifs: Sequence[WhatIf]) -> list[Bar]:
    """Label, change of time with the number halved and doubled, and elasticity of the total; NaN
    where a case steps."""
    total = _total([item.now.seconds for item in whatifs])
    names = [item.quantity.name for item in whatifs[0].sensitivities]
    bars = []
    for name in names:
        slopes: list[Sensitivity] = [
            next(s for s in item.sensitivities if s.quantity.name == name) for item in whatifs
        ]
        quantity = slopes[0].quantity
        label = f"{quantity.on(whatifs[0].setting.device)}  ({quantity.show(slopes[0].value)})"
        # The elasticity of a sum is the mean of the parts' own, weighted by their times.
        slope = sum(
            float(np.sum(s.elasticity * item.now.seconds))
            for s, item in zip(slopes, whatifs, strict=True)
        )
        halved, doubled = (
            _total([getattr(s, side).seconds for s in slopes]) / total - 1
            for side in ("halved", "doubled")
        )
        bars.append((label, halved, doubled, slope / total))
    return bars


def _width(bar: Bar) -> float:
    return sum(min(abs(share), _FAR) for share in bar[1:3] if math.isfinite(share))


def _draw(axes: Axes, place: int, halved: float, doubled: float, palette: Palette) -> None:
    looks = ((halved, palette.vermilion, "halved"), (doubled, palette.blue, "doubled"))
    for share, colour, label in looks:
        length = min(share, _FAR)
        if not math.isfinite(share):
            axes.annotate(
                f"{label}: does not fit", (0, place), xytext=(4, 0), textcoords="offset points",
                va="center", color=colour, fontsize=palette.small,
            )  # fmt: skip
            continue
        axes.barh(
            place,
            length,
            height=0.62,
            color=colour,
            gid=f"{label}-{place}",
            label=label if label not in axes.get_legend_handles_labels()[1] else None,
        )
        if share > _FAR:
            axes.annotate(
                f"{share:+.0%}",
                (length, place),
                xytext=(-3, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                color=palette.ground,
                fontsize=palette.small,
            )


def _mark(axes: Axes, place: int, share: float, palette: Palette) -> None:
    """Draw a requested change: its bar and its number."""
    if math.isfinite(share):
        axes.barh(place, share, height=0.62, color=palette.green, gid=f"change-{place}")
    axes.annotate(
        _signed(share, "+.0%") if math.isfinite(share) else "does not fit",
        (share if math.isfinite(share) else 0.0, place),
        xytext=(-3 if share < 0 else 3, 0),
        textcoords="offset points",
        ha="right" if share < 0 else "left",
        va="center",
        fontsize=palette.small,
    )


def _frame(axes: Axes, names: Sequence[str], palette: Palette) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.axvline(0, color=palette.grey, linewidth=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    left, right = axes.get_xlim()
    axes.set_xlim(left - 0.04 * (right - left), right + 0.02 * (right - left))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+.0%}" if value else "now")
    )
    axes.set_xlabel("Change of time")
    axes.text(
        1.015, 1.01, "elasticity", transform=axes.transAxes, fontsize=palette.label, va="bottom"
    )
    axes.legend(loc="lower right", ncols=1)
