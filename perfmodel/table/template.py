"""A measured-run table to fill in: the columns of an operator, and a row of its defaults."""

from __future__ import annotations

import csv
import io

from perfmodel.operators import Operator, load
from perfmodel.operators.options import Flag
from perfmodel.table.records import COLUMNS, SIZES, TEXT

_DEVICE = "h100-sxm"
_ALWAYS = ("device", "op", "implementation", "harness", "dtype", "measured_us")


def template(name: str) -> str:
    """CSV with the columns of an operator's rows, and one row of defaults without a time.

    Raises `UnknownName` for an unknown operator.
    """
    operator = load(name)
    row = _row(operator)
    base = [column for column in (*COLUMNS, "head_dim_v") if column in row]
    columns = [column for column in dict.fromkeys((*base, *row)) if column != "measured_us"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, "measured_us"])
    writer.writerow([*(row[column] for column in columns), ""])
    return text.getvalue()


def _row(operator: Operator) -> dict[str, str]:
    """A cell for each column: the option's default, else the default of the size it equals, else
    empty."""
    row = dict.fromkeys(_ALWAYS, "") | {"device": _DEVICE, "op": operator.name, "harness": "kernel"}
    defaults = {item.name: getattr(item, "default", None) or "" for item in operator.options}
    for item in operator.sizes:
        if item.name in operator.needed or item.name in SIZES:
            source = item.source or item.follows
            row[item.name] = defaults[item.name] or (defaults[source] if source else "")
            if item.follows and not row[item.name]:
                row[item.name] = row[item.follows]
    for choice in operator.choices:
        if choice.name in TEXT:
            row[choice.name] = choice.default or ""
    flags = [item.name for item in operator.options if isinstance(item, Flag)]
    row |= {name: "False" for name in flags if name in COLUMNS}
    return row
