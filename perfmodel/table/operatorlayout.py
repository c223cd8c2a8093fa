"""The layout of the measured-run table, whose columns follow from the operators of its rows.

An operator's options give the names of its sizes on the command line (`--heads`, `--seq`), the
options that set several sizes (`seq`), and the size that a missing size equals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.algorithms.rowwise import MAPS
from perfmodel.errors import PerfmodelError
from perfmodel.operators import Operator, find, names, rowwise
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.table import cells, families, work
from perfmodel.table.layout import Layout
from perfmodel.table.matching import match
from perfmodel.table.records import (
    LEAST_US,
    MOST_US,
    NEEDED,
    SIZES,
    TEXT,
    tidy,
)
from perfmodel.table.sheet import Sheet
from perfmodel.table.values import tells
from perfmodel.table.vocabulary import vocabulary
from perfmodel.timing.libraries.naming import asked_for, is_known

if TYPE_CHECKING:
    import pandas as pd


_ROWWISE = frozenset(operator.name for operator in rowwise.OPERATORS)


@dataclass(frozen=True)
class OperatorLayout(Layout):
    """The columns of the measured-run table, and those of the operators in it."""

    own: tuple[str, ...] = ()
    """Sizes of this table's operators beyond those of every table."""

    def example(self, frame: pd.DataFrame) -> str:
        """The command that writes a template of the table's first operator."""
        names = cells.text(frame["op"]).unique() if "op" in frame else ()
        op = next((op for op in names if find(op) is not None), "attention")
        return f"perfmodel compare --template {op}"

    @property
    def wanted(self) -> str:
        """A time, in microseconds."""
        return "a positive number of microseconds, 1e-6 to 1e15"

    def sound(self, values: np.ndarray) -> np.ndarray:
        """From a picosecond to thirty years."""
        return (values >= LEAST_US) & (values <= MOST_US)

    def of(
        self, sheet: Sheet, stated: Mapping[str, str], mapping: Mapping[str, str]
    ) -> OperatorLayout:
        """The layout with the sizes of the operators that the sheet or the user names."""
        ops = tuple(dict.fromkeys(_ops(sheet, stated, mapping, self)))
        operators = [operator for op in ops if (operator := find(op)) is not None]
        sizes = dict.fromkeys(name for each in operators for name in each.measured_sizes)
        extras = tuple(name for name in sizes if name not in SIZES)
        shares = dict.fromkeys(name for each in operators for name in each.measured_shares)
        joint = tuple(dict.fromkeys((*extras, *_joint_options(operators or [*BUILT_IN.values()]))))
        return replace(self, own=extras, whole=(*SIZES, *joint), numbers=tuple(shares))

    def completed(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """The table with the operator filled in if its columns fit only one, and with missing sizes
        filled in."""
        notes: list[str] = []
        if "op" not in frame:
            op = _only_operator(frame)
            if op is None:
                return frame, notes
            frame = frame.assign(op=op)
            notes.append(f"no column says which operation: the columns are those of {op}")
        frame = _maps(frame)
        for op in cells.text(frame["op"]).unique():
            operator = find(op)
            if operator is not None:
                frame = _fill_sizes(frame, operator, self.own, notes)
                frame = _kernels(frame, operator, notes)
        joint = [name for name in frame if name in self.whole and name not in (*SIZES, *self.own)]
        return frame.drop(columns=joint), notes

    def lacking(self, frame: pd.DataFrame) -> list[str]:
        """The missing columns: those that every table needs, and those that its operators need."""
        columns = super().lacking(frame)
        if "op" not in frame:
            return columns
        for op in cells.text(frame["op"]).unique():
            operator = find(op)
            if operator is not None:
                columns += [name for name in operator.needed if name not in frame]
        return list(dict.fromkeys(columns))

    def needed_by(self, name: str) -> list[str]:
        """The built-in operators that need a size; `row-wise` if all row-wise operators do.

        A size with a default taken from another size is not needed.
        """
        follow = {
            item.name for operator in BUILT_IN.values() for item in operator.sizes if item.follows
        }
        ops = [op for op, o in BUILT_IN.items() if name in o.needed and name not in follow]
        rest = [op for op in ops if op not in _ROWWISE]
        return [*rest, "row-wise"] if len(ops) - len(rest) == len(_ROWWISE) else ops

    def seconds(self, frame: pd.DataFrame, kind: str, rates: np.ndarray, flops: str) -> np.ndarray:
        """Operations, or bytes of all inputs and outputs, divided by the measured rate."""
        work = self.work(frame, kind, flops)
        return np.full(len(frame), np.nan) if work is None else work / rates

    def work(self, frame: pd.DataFrame, kind: str, flops: str) -> np.ndarray | None:
        """Operations by the papers' convention, or compulsory bytes; missing where unknown."""
        if self.lacking(frame):
            return None
        try:
            return work.of(tidy(frame.assign(measured_us=1.0)), kind, flops)
        except PerfmodelError:
            return None

    def typed(self, table: pd.DataFrame, where: str = "table") -> pd.DataFrame:
        """The measured-run table, its texts as categories."""
        texts = {name: cells.words(table[name]) for name in ("op",) if name in table}
        return tidy(table.assign(**texts), where)


OPERATORS = OperatorLayout(
    needed=NEEDED,
    measured="measured_us",
    text=(*TEXT, "output_dtype"),
    whole=SIZES,
    truth=("causal",),
    adapted=families.adapted,
)
"""The measured-run table."""


def _ops(
    sheet: Sheet, stated: Mapping[str, str], mapping: Mapping[str, str], layout: Layout
) -> Iterator[str]:
    """The operators that a sheet names."""
    if "op" in stated:
        yield vocabulary().value("op", stated["op"])
    aliases = {theirs: ours for theirs, ours in mapping.items() if ours == "op"}
    matches = match(
        [heading for heading in sheet.headings if heading in aliases or heading not in mapping],
        ("op", "implementation"),
        "",
        aliases,
        lambda heading, column: tells(sheet.frame[heading], column, layout),
    )
    if "op" in matches.columns:
        for word in cells.text(sheet.frame[matches.columns["op"].heading]).unique():
            yield vocabulary().value("op", word)


def _joint_options(operators: list[Operator]) -> Iterator[str]:
    """Options that set several sizes: `seq` sets queries and keys."""
    for operator in operators:
        for item in operator.options:
            if not getattr(item, "argument", True):
                yield item.name


def _only_operator(frame: pd.DataFrame) -> str | None:
    """The built-in operator whose needed sizes are all there, if it is the only one.

    Products of groups have the sizes of batched ones, so that their rows must say so.
    """
    ops = []
    for op, operator in BUILT_IN.items():
        if op == "grouped-gemm":
            continue
        notes: list[str] = []
        columns = _fill_sizes(frame, operator, (), notes)
        if all(name in columns for name in operator.needed):
            ops.append(op)
    return ops[0] if len(ops) == 1 else None


def _maps(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows whose operator is the name of a map become `pointwise` with the map as variant."""
    ops = cells.text(frame["op"])
    mask = ops.isin(MAPS) & ~ops.isin(names())
    if not mask.any():
        return frame
    variant: Any = cells.text(frame["variant"]) if "variant" in frame else ""
    column = ops.where(mask, variant)
    return frame.assign(op=ops.mask(mask, "pointwise"), variant=column)


def _kernels(frame: pd.DataFrame, operator: Operator, notes: list[str]) -> pd.DataFrame:
    """Kernel names of one operator in the model's spelling: flash2 for FlashAttention-2."""
    if "implementation" not in frame or not operator.library:
        return frame
    kernels = cells.text(frame["implementation"])
    mask = cells.text(frame["op"]) == operator.name
    names: dict[str, str] = {}
    for name in kernels[mask].unique():
        kernel = asked_for(operator.library, name) if name else None
        if kernel is not None and kernel != name and not is_known(operator.library, name):
            names[name] = kernel
    if not names:
        return frame
    notes.append(f"read {', '.join(f'{theirs} as {ours}' for theirs, ours in names.items())}")
    return frame.assign(implementation=kernels.where(~mask, kernels.replace(names)))


def _fill_sizes(
    frame: pd.DataFrame, operator: Operator, extras: tuple[str, ...], notes: list[str]
) -> pd.DataFrame:
    """Missing sizes filled in from the option that sets them or the size that they equal."""
    for item in operator.sizes:
        if item.name in frame or (item.name not in SIZES and item.name not in extras):
            continue
        for source in (item.source, item.follows):
            if source is not None and source in frame:
                frame = frame.assign(**{item.name: frame[source]})
                if source == item.follows and source != item.source:
                    notes.append(f"{item.name} is taken as {source}, for lack of a column")
                break
    return frame
