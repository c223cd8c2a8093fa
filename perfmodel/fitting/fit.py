"""The command that fits constants to measured runs, and writes constants, starts and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError, exit_code
from perfmodel.fitting import ranges
from perfmodel.fitting.estimation import STEPS, fit, sample, slopes, values_of
from perfmodel.fitting.fitted import Fitted, constants_text
from perfmodel.fitting.heldout import Linearised, folds, linearised
from perfmodel.fitting.starts import measured_runs, runs_of, shown
from perfmodel.table.records import tidy
from perfmodel.timing import runs as timed
from perfmodel.timing.constants import shipped
from perfmodel.validation.compare import beats_floor, diagnoses, predict_table

if TYPE_CHECKING:
    import pandas as pd


def possible(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that can be predicted and are not faster than the device's floor; prints how many
    are left out, with the first reason.

    Raises `TableError` if none is left.
    """
    predictions = predict_table(table)
    unknown = predictions["predicted_us"].isna().to_numpy()
    if unknown.any():
        first = predictions["reason"][unknown].iloc[0]
        print(f"left out {int(unknown.sum())} rows that cannot be predicted ({first})")
    faster = beats_floor(predictions)
    if faster.any():
        first = diagnoses(predictions)[0]
        print(f"left out {int(faster.sum())} rows faster than their device can be ({first})")
    mask: np.ndarray = ~(unknown | faster)
    if not mask.any():
        raise TableError("no row can be fitted to; give runs that can be predicted")
    return table[mask].reset_index(drop=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m perfmodel.fitting.fit TABLE...`: fit, and write the files beside `timing`."""
    return exit_code("perfmodel.fitting.fit", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.replacing import replacing
    from perfmodel.table.records import read_table
    from perfmodel.timing import constants as known

    parser = argparse.ArgumentParser(prog="perfmodel.fitting.fit", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables (CSV, CSV.gz, Parquet)")
    parser.add_argument("--output", default=str(Path(known.__file__).parent), help="folder")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument(
        "--unfitted", nargs="*", default=[],
        help="tables of operators that get a range and no constant, such as chains of kernels",
    )  # fmt: skip
    args = parser.parse_args(arguments)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)  # so that a bad path fails before the fit
    table = possible(tidy(read_table(args.table)))
    rows = sample(table)
    folds(rows, "device")  # ranges need folds by device; fails early as well
    constants, linear = fitted_to(
        rows, sample(table.replace({"flag": {"timer_floor": ""}})), args.steps
    )
    spread = ranges.table_of(linear, table)
    for name in args.unfitted:
        spread["families"] |= ranges.unfitted(tidy(read_table(name)))
    texts = {
        "constants.yaml": constants_text(constants),
        "runs.yaml": timed.text(linear.runs.values()),
        "spread.yaml": ranges.text(spread),
    }
    for name, text in texts.items():
        with replacing(str(folder / name)) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {name}")


def fitted_to(
    rows: pd.DataFrame, short: pd.DataFrame, steps: int = STEPS
) -> tuple[list[Fitted], Linearised]:
    """Constants and starts fitted to `rows` from the priors, with errors and slopes at the
    solution.

    Starts are read from short runs (`short` also has the unscored runs that are mostly launch).
    They are read first at the priors, whose device times are accurate enough for the fit, and again
    with the fitted constants.
    """
    start = shipped()
    runs = measured_runs(short, values_of(start, prior=True))
    first = slopes(rows, start, runs, prior=True)
    fits = fit(rows, start, steps=steps, first=first, runs=runs, verbose=1)
    constants = [item.constant for item in fits]
    values = values_of(constants, runs)
    starts = shown(short, values)
    return fits, linearised(rows, constants, runs_of(starts, values), starts)


if __name__ == "__main__":
    raise SystemExit(main())
