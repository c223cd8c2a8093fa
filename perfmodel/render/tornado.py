"""What-ifs as a table and as a tornado chart: the hardware numbers that decide the time.

The chart adds the times of all cases. A bar goes from the time with the number halved to the time
with it doubled. The widest bar is on top; requested changes follow below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.analysis.whatif import CaseChange, WhatIf
from perfmodel.columns import columns_of
from perfmodel.errors import ProblemError
from perfmodel.quantities import signed
from perfmodel.render.chart import Chart
from perfmodel.render.page import Page
from perfmodel.render.predictions import of_problem
from perfmodel.render.problem import equals, shared, spoken
from perfmodel.render.report import Report, Row
from perfmodel.render.spans import Lane, Span, Spans, spans_chart
from perfmodel.units import seconds

_FAR = 1.5  # a bar longer than this share of the time is cut and labelled with its length
_COLOURS = {"halved": "vermilion", "doubled": "blue", "change": "green"}


def report(found: Sequence[WhatIf], varying: Sequence[str], follows: Mapping[str, str]) -> Report:
    """One line for each case and hardware number, and for each case and change.

    `varying` are the problem's fields that differ between the cases; `follows` maps a field to
    another one that it always equals.
    """
    rows = [row for item in found for row in item.rows()]
    names = {item.setting.device.slug: item.setting.device.level_names for item in found}

    def limiters(row: Row) -> str:
        before, after = (names[row["device"]].get(row[key], row[key])
                         for key in ("limiter", "limiter_after"))  # fmt: skip
        return str(before) if before == after else f"{before} → {after}"

    device, *own = columns_of(CaseChange)
    columns = [
        device,
        *map(of_problem, varying),
        *(replace(each, get=limiters) if each.key == "limiter" else each for each in own),
    ]
    missing = {item.setting.device.slug: item.missing for item in found if item.missing}
    return Report(
        "whatif",
        rows,
        columns,
        title=f"{rows[0]['device']}: {equals(shared(rows[0]['problem'], varying, follows))}",
        notes=[f"{slug}: the spec has no {', '.join(names)}" for slug, names in missing.items()],
        examples=rows,
    )


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
    title = f"{slugs[0]}: {_cases(found)}, {seconds(total)} now"
    gap = [Lane()] if changes else []
    spans = Spans(
        title, "change", [*map(_lane, moving), *gap, *map(_lane, changes)], _COLOURS,
        {side: side for side in ("halved", "doubled")}, axis="Change of time", noted="elasticity",
    )  # fmt: skip
    phrases = [f"{line.name}: " + ", ".join(f"{side} {x:+.0%}" for side, x in line.shares.items())
               for line in numbers]  # fmt: skip
    sentence = f"Change of time. {'; '.join(phrases)}."
    return spans_chart(spans, sentence=sentence, caption=caption, page=page)


def _lane(line: _Line) -> Lane:
    """A line with its bars: long ones are cut and have their length, those without end a word."""
    spans = []
    for side, share in line.shares.items():
        row = {"what": line.name, side: share, "elasticity": line.elasticity}
        end, text = min(share, _FAR), f"{share:+.0%}" if share > _FAR else ""
        if not math.isfinite(share):
            end, text = 0.0, f"{side}: does not fit"
        spans.append(Span(0.0, end, side, row, text))
    return Lane(line.name, spans, line.note)


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
