"""Reads what nccl-tests (all_reduce_perf and the others) prints as a table of collectives.

    #   size      count   type   redop  root   time  algbw   busbw  #wrong   time   algbw   busbw
    #    (B)  (elements)                       (us)  (GB/s)  (GB/s)          (us)  (GB/s)  (GB/s)
    67108864  16777216   float     sum    -1  345.5  194.24  339.92      0  345.1  194.46  340.30

The first time is that of separate buffers (out of place), which is what libraries call. Ranks,
nodes and the device come from the lines before the table, where a release prints them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from perfmodel.table.sheet import Sheet

_HEADING = re.compile(r"#\s+size\s+count\s+type\b.*\btime\b")
_RANK = re.compile(r"#\s+Rank\s+\d+ .* on\s+(\S+) device\s+\d+ \[[^]]*\]\s+(.+)")
_TEST = re.compile(r"#.*\b(\w+)_perf\b")
_DTYPES = {"float": "fp32", "half": "fp16", "bfloat16": "bf16", "double": "fp64", "int8": "int8"}
_NOTE = "times in place are left out"


def read(text: str, where: str) -> Sheet | None:
    """The table in the text; None if it is not of nccl-tests."""
    import pandas as pd

    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _HEADING.match(line)), None)
    if start is None:
        return None
    names = lines[start].lstrip("# ").split()
    time = names.index("time")
    entries = [
        (number, line.split())
        for number, line in enumerate(lines[start + 1 :], start + 2)
        if line.strip()[:1].isdigit()
    ]
    rows = [(number, cells) for number, cells in entries if len(cells) > time]
    columns = {
        "size (B)": [cells[0] for _, cells in rows],
        "dtype": [_DTYPES.get(cells[2], cells[2].partition("_")[0]) for _, cells in rows],
        "time (us)": [cells[time] for _, cells in rows],
        **{name: [value] * len(rows) for name, value in _circumstances(lines[:start]).items()},
    }
    frame = pd.DataFrame({name: pd.Series(cells, dtype="str") for name, cells in columns.items()})
    return Sheet(where, frame, np.array([number for number, _ in rows], np.int64), notes=(_NOTE,))


def _circumstances(lines: Sequence[str]) -> dict[str, str]:
    """Columns that hold for the whole table: the collective, ranks, ranks of a node, device."""
    ranks = [match for line in lines if (match := _RANK.match(line))]
    test = next((match[1] for line in lines if (match := _TEST.match(line))), "")
    columns = {"collective": test.replace("_", "-")} if test else {}
    if ranks:
        hosts = {match[1] for match in ranks}
        columns |= {
            "ranks": str(len(ranks)),
            "ranks_per_node": str(len(ranks) // len(hosts)),
            "device": ranks[0][2].strip(),
        }
    return columns
