"""Hints of a user on tables whose columns have other names and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perfmodel.fieldoption import FieldOption

_COLUMNS = "Columns"
"""Heading of the options."""


def _time(unit: str) -> str:
    """The name of a unit of time. Raises `UnknownName`."""
    from perfmodel.table.vocabulary import vocabulary

    return vocabulary().time(unit).name


@dataclass(frozen=True)
class Hints:
    """Information from the user that a table lacks."""

    mapping: Annotated[
        Mapping[str, str],
        FieldOption(_COLUMNS, "THEIRS=OURS", ("--map",), example="Runtime=measured_us"),
    ] = field(default_factory=dict)
    """Read the column THEIRS as OURS, with commas or repeated: Runtime=measured_us."""
    stated: Annotated[
        Mapping[str, str],
        FieldOption(_COLUMNS, "COLUMN=VALUE", ("--set",), example="device=h100-sxm"),
    ] = field(default_factory=dict)
    """Value for rows whose cell is empty, with commas or repeated: device=h100-sxm."""
    unit: Annotated[str, FieldOption(_COLUMNS, "UNIT", read=_time)] = ""
    """Unit of the measured times: s, ms, us or ns; overrides that of the heading."""
    flops: Annotated[Literal["causal", "full"], FieldOption(_COLUMNS)] = "causal"
    """How given FLOP/s count a causal mask: visible pairs only, or all."""
