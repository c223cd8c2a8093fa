"""Fit the host's time of launches to training runs: `python -m perfmodel.fitting.hosts TABLE`.

It fits three times of one host (`perfmodel/networks/hosts.yaml`): a forward launch, a backward
launch, and the time between micro-batches. The loss is least squares of ln(predicted / measured),
softened for large errors. The fit is tested on runs of network widths that were left out. The
result is printed, for entry into the file by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import exit_code, needs
from perfmodel.hardware import load as load_device
from perfmodel.networks import hosts
from perfmodel.networks.hosts import Host
from perfmodel.training.step import predict_step
from perfmodel.training.trainingrows import Asked, plan_of

if TYPE_CHECKING:
    import pandas as pd

_START = (100e-6, 20e-6, 1e-3)
_SCALE = (50e-6, 20e-6, 2e-3)
_SOFT = 0.05  # errors in ln above this weigh less
_MOST = 120  # runs of a fit, spread evenly over the table


def main(arguments: Sequence[str] | None = None) -> None:
    """Read a table, fit, and print the numbers with their errors in sample and left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="a table of training runs")
    parser.add_argument("--source", default="vtrain", help="whose rows (default: %(default)s)")
    parser.add_argument("--host", default="megatron", help="which host (default: %(default)s)")
    args = parser.parse_args(arguments)
    needs("scipy", "fitting")
    from perfmodel.validation.kinds.training import read

    table = read([args.table])
    runs = _Runs(table[table["source"] == args.source], hosts.load(args.host))
    index = np.arange(len(runs))
    numbers = runs.fit(index)
    print(f"{args.host}: {_text(numbers)}: {runs.error(numbers, index):.1%} MAPE in sample")
    for width in sorted(set(runs.widths.tolist())):
        rows = np.flatnonzero(runs.widths == width)
        rest = np.flatnonzero(runs.widths != width)
        if len(rest):
            values = runs.fit(rows)
            error = runs.error(values, rest)
            print(f"fitted to width {width}: {_text(values)}: {error:.1%} MAPE on the others")


def _text(numbers: np.ndarray) -> str:
    forward, backward, pause = numbers
    return (
        f"{forward * 1e6:.0f} us forward, {backward * 1e6:.0f} us backward, "
        f"{pause * 1e3:.1f} ms a micro-batch"
    )


class _Runs:
    """Measured steps with their plans."""

    def __init__(self, table: pd.DataFrame, host: Host) -> None:
        rows: list[dict[str, Any]] = [
            {str(name): cell for name, cell in row.items()} for row in table.to_dict("records")
        ]
        self.host = host
        self.asked: list[Asked] = [plan_of(row) for row in rows]
        self.devices = [load_device(str(row["device"])) for row in rows]
        self.seconds = np.array([float(row["value"]) / 1e3 for row in rows])
        self.widths = np.array([a.network.hidden for a in self.asked])

    def __len__(self) -> int:
        return len(self.asked)

    def logs(self, values: np.ndarray, index: np.ndarray) -> np.ndarray:
        """ln(predicted / measured) of the runs `index` with these numbers."""
        forward, backward, pause = (float(value) for value in values)
        host = replace(
            self.host,
            forward_seconds=forward,
            backward_seconds=backward,
            micro_batch_seconds=pause,
        )
        seconds = [
            predict_step(
                self.asked[i].network, self.asked[i].plan, self.devices[i], host=host
            ).seconds
            for i in index
        ]
        return np.asarray(np.log(np.array(seconds) / self.seconds[index]))

    def fit(self, index: np.ndarray) -> np.ndarray:
        """The numbers fitted to the runs `index`."""
        from scipy.optimize import least_squares

        subset = index[:: max(len(index) // _MOST, 1)]

        def missed(values: np.ndarray) -> np.ndarray:
            return self.logs(values, subset)

        solution = least_squares(
            missed,
            _START,
            bounds=(0.0, np.inf),
            x_scale=_SCALE,
            diff_step=[0.05] * len(_START),
            loss="soft_l1",
            f_scale=_SOFT,
            max_nfev=12,
        )
        return np.asarray(solution.x)

    def error(self, values: np.ndarray, index: np.ndarray) -> float:
        """Mean of |predicted / measured − 1|."""
        return float(np.abs(np.expm1(self.logs(values, index))).mean())


if __name__ == "__main__":
    raise SystemExit(exit_code("perfmodel.fitting.hosts", main))
