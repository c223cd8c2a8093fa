"""Which columns of a table fit on a terminal, and at which width.

Columns of rank 0 are always shown. The others follow by rank while they fit, each in its briefest
form. Remaining room goes to full forms, and last to columns whose cells are broken into lines. If
not even rank 0 fits, there is no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.frozen import dataclass

GAP = 2
"""Spaces between two columns."""


@dataclass(frozen=True)
class Form:
    """One way to write a column."""

    field: int
    """Index of its cells among all cells of a row."""
    least: int
    """Minimum characters: of its longest cell, or of a line where cells are broken."""
    most: int
    """Characters of its longest cell."""


@dataclass(frozen=True)
class Shape:
    """A column as it can be written."""

    rank: int
    """Without room, the highest ranks are dropped first; 0 always stays."""
    forms: Sequence[Form]
    """Forms, from the briefest to the full one."""


@dataclass(frozen=True)
class Place:
    """A column that is shown."""

    column: int
    """Index among all columns."""
    field: int
    """Index of the form of its cells."""
    width: int
    """Characters."""


def whole(shapes: Sequence[Shape]) -> list[Place]:
    """Every column in full, at its longest cell's width."""
    return [
        Place(i, shape.forms[-1].field, shape.forms[-1].least) for i, shape in enumerate(shapes)
    ]


def fitted(shapes: Sequence[Shape], room: int) -> list[Place] | None:
    """The columns that fit into `room` characters, in their order; None if rank 0 does not fit."""
    forms = {i: shape.forms[0] for i, shape in enumerate(shapes) if shape.rank == 0}
    if _width(forms) > room:
        return None
    by_rank = sorted(range(len(shapes)), key=lambda i: shapes[i].rank)
    for form in ("briefest", "full"):
        for i in by_rank:
            if form == "full" and i not in forms:
                continue
            trial = {**forms, i: shapes[i].forms[0 if form == "briefest" else -1]}
            if _width(trial) <= room:
                forms = trial
    return _places(forms, room)


def _places(forms: Mapping[int, Form], room: int) -> list[Place]:
    """The columns in order; remaining `room` goes to columns that are broken into lines."""
    spare = room - _width(forms)
    places = []
    for i in sorted(forms):
        form = forms[i]
        extra = min(spare, form.most - form.least)
        spare -= extra
        places.append(Place(i, form.field, form.least + extra))
    return places


def _width(forms: Mapping[int, Form]) -> int:
    return sum(form.least for form in forms.values()) + GAP * (len(forms) - 1)
