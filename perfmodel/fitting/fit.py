"""The command that fits constants to measured runs and writes them, the starts and the ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError, exit_code
from perfmodel.evidence.records.records import tidy
from perfmodel.fitting.estimation import STEPS, first_slopes, fit, sample, values_of
from perfmodel.fitting.fitted import constants_text, spread_text
from perfmodel.fitting.heldout import folds, left_out
from perfmodel.fitting.starts import measured_runs
from perfmodel.timing import runs as timed
from perfmodel.validation.compare import beats_floor, diagnoses, predict_table
from perfmodel.validation.masking import NAMES, unnamed

if TYPE_CHECKING:
    import pandas as pd


def _p90(predicted: pd.DataFrame) -> float:
    error = (predicted["predicted_us"] / predicted["measured_us"]).map(np.log).abs()
    return float(error.quantile(0.9))


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
    from concurrent.futures import ThreadPoolExecutor
    from dataclasses import replace
    from pathlib import Path

    from perfmodel.evidence.records.records import read_table, replacing
    from perfmodel.timing import constants as known

    parser = argparse.ArgumentParser(prog="perfmodel.fitting.fit", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables (CSV, CSV.gz, Parquet)")
    parser.add_argument("--output", default=str(Path(known.__file__).parent), help="folder")
    parser.add_argument("--steps", type=int, default=STEPS)
    chosen = parser.parse_args(arguments)
    table = possible(tidy(read_table(chosen.table)))
    start = known.shipped()
    rows = sample(table)
    folds(rows, "device")  # what ranges are taken from; better refused now than after the fit
    # Starts are read off short runs, which are not scored: at the priors for the fit, whose device
    # times are near enough, and again by what it found.
    short = sample(table.replace({"flag": {"timer_floor": ""}}))
    runs = measured_runs(short, values_of(start, prior=True))
    first = first_slopes(rows, start, runs)
    # Ranges come from devices that the constants have not seen: that is what they will meet. Those
    # fits start at the priors too, and so need not wait for this one.
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(
            left_out, rows, "device", start, steps=chosen.steps, first=first, runs=runs
        )
        fitted = fit(rows, start, steps=chosen.steps, first=first, runs=runs, verbose=1)
        held = waiting.result()
    values = values_of([item.constant for item in fitted], runs)
    values = values.with_runs(measured_runs(short, values))
    usual = _p90(predict_table(rows, constants=values))
    widenings = {"device": _p90(held) / usual} | {
        column: _p90(predict_table(unnamed(rows, column), constants=values)) / usual
        for column in NAMES
    }
    folder = Path(chosen.output)
    texts = {
        "constants.yaml": constants_text(fitted),
        "runs.yaml": timed.text(replace(timed.table(), runs=values.runs)),
        "spread.yaml": spread_text(held, widenings),
    }
    for name, text in texts.items():
        with replacing(str(folder / name)) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    raise SystemExit(main())
