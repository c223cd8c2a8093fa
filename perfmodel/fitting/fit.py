"""The command that fits constants to measured runs and writes them, the starts and the ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError, exit_code
from perfmodel.evidence.records.records import tidy
from perfmodel.fitting import ranges
from perfmodel.fitting.estimation import STEPS, fit, sample, slopes, values_of
from perfmodel.fitting.fitted import Fitted, constants_text
from perfmodel.fitting.heldout import Linearised, folds, linearised
from perfmodel.fitting.starts import measured_runs, runs_of, shown
from perfmodel.timing import runs as timed
from perfmodel.timing.constants import shipped
from perfmodel.validation.compare import beats_floor, diagnoses, predict_table

if TYPE_CHECKING:
    import pandas as pd


def possible(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that can be predicted and measured; says how many cannot, and why the first of them.

    Raises `TableError` where none is left.
    """
    found = predict_table(table)
    unknown = found["predicted_us"].isna().to_numpy()
    if unknown.any():
        first = found["reason"][unknown].iloc[0]
        print(f"left out {int(unknown.sum())} rows that cannot be predicted ({first})")
    faster = beats_floor(found)
    if faster.any():
        first = diagnoses(found)[0]
        print(f"left out {int(faster.sum())} rows faster than their device can be ({first})")
    kept: np.ndarray = ~(unknown | faster)
    if not kept.any():
        raise TableError("no row can be fitted to; give runs that can be predicted")
    return table[kept].reset_index(drop=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m perfmodel.fitting.fit TABLE...`: fit, and write the files beside `timing`."""
    return exit_code("perfmodel.fitting.fit", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from dataclasses import replace
    from pathlib import Path

    from perfmodel.evidence.records.records import read_table, replacing
    from perfmodel.timing import constants as known

    parser = argparse.ArgumentParser(prog="perfmodel.fitting.fit", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables (CSV, CSV.gz, Parquet)")
    parser.add_argument("--output", default=str(Path(known.__file__).parent), help="folder")
    parser.add_argument("--steps", type=int, default=STEPS)
    chosen = parser.parse_args(arguments)
    folder = Path(chosen.output)
    folder.mkdir(parents=True, exist_ok=True)  # better refused now than after the fit
    table = possible(tidy(read_table(chosen.table)))
    rows = sample(table)
    folds(rows, "device")  # what ranges are taken from; the same
    fitted, found = fitted_to(
        rows, sample(table.replace({"flag": {"timer_floor": ""}})), chosen.steps
    )
    texts = {
        "constants.yaml": constants_text(fitted),
        "runs.yaml": timed.text(replace(timed.table(), runs=found.runs)),
        "spread.yaml": ranges.text(ranges.table_of(found, table)),
    }
    for name, text in texts.items():
        with replacing(str(folder / name)) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {name}")


def fitted_to(
    rows: pd.DataFrame, short: pd.DataFrame, steps: int = STEPS
) -> tuple[list[Fitted], Linearised]:
    """The constants and starts that fit `rows`, from neutral ones, with errors and slopes there.

    Starts are read off short runs (`short` has those, too, that are mostly launch), which are not
    scored: at the priors for the fit, whose device times are near enough, and again by what it
    found.
    """
    start = shipped()
    runs = measured_runs(short, values_of(start, prior=True))
    first = slopes(rows, start, runs, prior=True)
    fitted = fit(rows, start, steps=steps, first=first, runs=runs, verbose=1)
    found = [item.constant for item in fitted]
    values = values_of(found, runs)
    seen = shown(short, values)
    return fitted, linearised(rows, found, runs_of(seen, values), seen)


if __name__ == "__main__":
    raise SystemExit(main())
