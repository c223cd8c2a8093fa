"""Check physics on random predictions: `make physics`, or python tests/physics --seed 7 --jobs 2.

It checks bounds of every single prediction, and that a larger problem is not faster and a better
device not slower, except for the cliffs in `cliffs.py`; and that no rate is worth more than all of
the time. Sample number i of a seed is always the same. The exit code is 1 if anything is violated.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from draws import LEAST  # noqa: E402
from elasticities import elasticities  # noqa: E402
from neighbours import neighbours  # noqa: E402
from sample import SIZE, sample  # noqa: E402
from tally import Tally  # noqa: E402

Sample = Callable[[int, int], Tally]


def checked(seed: int, predictions: int, jobs: int, draw: Sample = sample) -> Tally:
    """Samples of so many problems together, drawn and checked by `jobs` processes."""
    total, began, told = Tally(), time.monotonic(), 0.0
    count = -(-predictions // SIZE)
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for tally in pool.imap_unordered(partial(draw, seed), range(count), chunksize=8):
            total.add(tally)
            since = time.monotonic() - began
            if since > told + 30:
                told = since
                print(f"{total.asked:,} of {predictions:,} problems, {total.violations:,} "
                      f"violations, {since:.0f} s", file=sys.stderr)  # fmt: skip
    return total


def main() -> int:
    """Read the arguments, check, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predictions", type=int, default=1_000_000)
    parser.add_argument(
        "--neighbours",
        type=int,
        default=200_000,
        help="problems that are compared with each of their neighbours",
    )
    parser.add_argument(
        "--elasticities",
        type=int,
        default=100_000,
        help="problems whose elasticities are taken, a thousand for each device",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    chosen = parser.parse_args()
    seed = secrets.randbelow(2**32) if chosen.seed is None else chosen.seed
    began = time.monotonic()
    total = checked(seed, chosen.predictions, chosen.jobs)
    total.add(checked(seed, chosen.neighbours, chosen.jobs, neighbours))
    total.add(checked(seed, chosen.elasticities, chosen.jobs, elasticities))
    print(f"seed {seed}, {time.monotonic() - began:,.0f} s")
    print("\n".join(total.lines()))
    few = total.predicted < LEAST * total.asked
    if few:
        print(f"\nless than {LEAST:.0%} of what was asked was predicted")
    return int(few or total.violations > 0)


if __name__ == "__main__":
    sys.exit(main())
