"""Which runs are worth measuring: those that stand for all sizes that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfmodel.errors import ProblemError
from perfmodel.validation.learn import groups, spread

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.hardware import Device

NOTE = "measure them with perfmodel measure or a script of yours, fill in measured_us, then learn"
_GRID = "full"
_SIZES = ("device", "op", "variant", "implementation", "dtype", "kv_dtype", "direction", "phase",
          "batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "causal", "m", "n", "k",
          "rows", "cols", "inputs", "outputs")  # fmt: skip


def planned(
    candidates: pd.DataFrame | None, count: int, device: Device | None, op: str | None
) -> pd.DataFrame:
    """The `count` rows of `candidates` that stand for all: cluster centres of each group, as many
    of a group as it has of all rows, at least one.

    Without candidates: of the cases that `perfmodel measure` times, on `device`. Raises
    `ProblemError` where there is nothing to choose from.
    """
    table = _grid(device) if candidates is None else candidates.assign(measured_us=1.0, flag="")
    if device is not None and candidates is not None:
        table = table.assign(device=device.slug)
    if op is not None:
        table = table[table["op"] == op]
    table = table.reset_index(drop=True)
    grouped = groups(table, unnamed=True) if len(table) else []
    if not grouped:
        raise ProblemError("there is no run to choose from; name a table, or another operator")
    total = sum(map(len, grouped))
    places: list[int] = []
    for runs in sorted(grouped, key=len, reverse=True):
        share = min(max(round(count * len(runs) / total), 1), count - len(places))
        if share > 0:
            places += [runs.places[i] for i in spread(runs, share)]
    chosen = table.iloc[sorted(places)].convert_dtypes()
    names = [name for name in _SIZES if name in chosen and chosen[name].astype(str).ne("").any()]
    return chosen[[name for name in names if chosen[name].notna().any()]].assign(measured_us="")


def _grid(device: Device | None) -> pd.DataFrame:
    import pandas as pd

    from perfmodel.measured.grids import grid

    if device is None:
        raise ProblemError("--plan needs the device to measure on; add --device, or name a table")
    rows = [{**case.columns(), "device": device.slug, "measured_us": "1"} for case in grid(_GRID)]
    frame = pd.DataFrame(rows).replace("", None)
    sizes = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "m", "n", "k", "rows",
             "cols", "inputs", "outputs", "measured_us")  # fmt: skip
    for name in sizes:
        frame[name] = pd.to_numeric(frame[name])
    return frame
