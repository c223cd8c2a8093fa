"""An even sample of rows in one pass over tables, of at most a given size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class Sample:
    """Every n-th row, with n doubled whenever there are more than `most`; deterministic."""

    def __init__(self, columns: Sequence[str], most: int = 2000) -> None:
        self._columns = list(dict.fromkeys(columns))
        self._most = most
        self._step = 1
        self._seen = 0
        self.rows: list[dict[str, Any]] = []

    def add(self, table: pa.Table) -> None:
        """Add the next rows."""
        first = -self._seen % self._step
        index = np.arange(first, table.num_rows, self._step)
        self._seen += table.num_rows
        self.rows += table.select(self._columns).take(index).to_pylist()
        while len(self.rows) > self._most:
            self.rows = self.rows[::2]
            self._step *= 2
