"""How tables are read, empty ones to fill in, and what their columns mean."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from perfmodel.cli.known import named as known_name
from perfmodel.cli.known import pairs
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.validation.kinds import KINDS, load

if TYPE_CHECKING:
    from perfmodel.evidence.tables.reading import Hints
    from perfmodel.render import Report

_COLUMNS = "Columns"
"""Heading of the options that say how tables are read."""


@dataclass(frozen=True)
class TableHints:
    """How tables are read whose columns have other names."""

    mapping: Annotated[list[str] | None, FieldOption(_COLUMNS, "THEIRS=OURS", ("--map",))] = None
    """Read the column THEIRS as OURS, with commas or repeated: Runtime=measured_us."""
    stated: Annotated[list[str] | None, FieldOption(_COLUMNS, "COLUMN=VALUE", ("--set",))] = None
    """Value for rows whose cell is empty, with commas or repeated: device=h100-sxm."""
    unit: Annotated[str | None, FieldOption(_COLUMNS, "UNIT")] = None
    """Unit of the measured times: s, ms, us or ns."""
    flops: Annotated[str, FieldOption(_COLUMNS, "HOW")] = "causal"
    """How given FLOP/s count a causal mask: causal (visible pairs only) or full (all pairs)."""

    def hints(self) -> Hints:
        """The options as hints. Raises `ProblemError` or `UnknownName` for invalid ones."""
        from perfmodel.evidence.tables.reading import FLOPS, Hints
        from perfmodel.evidence.tables.vocabulary import vocabulary

        return Hints(
            pairs("--map", self.mapping, "THEIRS=OURS", "Runtime=measured_us"),
            pairs("--set", self.stated, "COLUMN=VALUE", "device=h100-sxm"),
            vocabulary().time(self.unit).name if self.unit is not None else "",
            known_name("way of counting", self.flops.strip(), FLOPS),
        )


def named(tables: list[str] | None) -> list[str]:
    """The tables. Raises `ProblemError` where none is named."""
    if not tables:
        raise ProblemError(
            "no table named; give a file or - for stdin (perfmodel compare --template gemm "
            "prints one to fill in)"
        )
    return tables


def print_template(name: str) -> None:
    """Print an empty table of an operator or of another kind. Raises `UnknownName`."""
    from perfmodel.cli.output import to_stdout
    from perfmodel.evidence.records.template import template

    name = name.strip()
    has_own = name in KINDS and load(name).example
    to_stdout(iter([load(name).template if has_own else template(name)]))


def reference(kind: str) -> Report:
    """The columns of a kind of table as a report. Raises `UnknownName`."""
    from perfmodel.evidence.tables.reference import columns
    from perfmodel.render import tablecolumns

    kind = kind.strip()
    meanings = columns(load(kind).layout, kind)
    return tablecolumns.report(
        kind, [{**asdict(column), "names": list(column.names)} for column in meanings]
    )
