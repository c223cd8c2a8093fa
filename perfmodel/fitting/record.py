"""The bundled record of corrections (`perfmodel.learned.record`), and what it is worth.

    python -m perfmodel.fitting.record TABLE...   writes record.npz, and a section of accuracy.md

A group is an implementation, a family, types, kernel, harness and architecture: another version of
a framework was predicted no better by it. It is kept where its runs, each predicted from the
others, come out better than by the model, and where each device does from its siblings.

Left out are harnesses that no two devices test so, and those that wait for each call: they say how
long one host takes.

What it is worth is measured on devices left out: everything is learned again without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting.estimation import sample
from perfmodel.hardware import load
from perfmodel.learned.active import corrected_by
from perfmodel.learned.groups import Learned, architecture_name
from perfmodel.learned.record import PATH, packed
from perfmodel.timing.constants import default
from perfmodel.timing.runs import harnesses
from perfmodel.validation.compare import predict_table
from perfmodel.validation.learn import Runs, groups, taught, times
from perfmodel.validation.pages import between
from perfmodel.validation.scores import lines, markdown, scores

if TYPE_CHECKING:
    import pandas as pd

_LEAST = 100  # runs from which a group is learned
_MOST = 1200  # runs of a group on one device that it is learned from
_ALIKE = ["device", "implementation", "harness", "op", "phase", "direction", "dtype", "kv_dtype"]
_SEED = 0
_CLIPPED = 0.5  # largest error of a run in comparisons, in ln


def learned_from(table: pd.DataFrame, source: str, tested: frozenset[str] | None = None) -> Learned:
    """The corrections of a measured-run table, of the harnesses `tested`; None: by this table."""
    from perfmodel import __version__

    runs = [each for each in groups(_sampled(table), apart=True) if len(each) >= _LEAST]
    gains = [_gain(each) for each in runs]
    tested = _tested(runs, gains) if tested is None else tested
    learned = [
        taught(each)
        for each, gain in zip(runs, gains, strict=True)
        if gain.sum() >= 0.0 and tested.intersection(each.shared)
    ]
    better = (group for group in learned if group is not None and group.after < group.before)
    return Learned(source, __version__, tuple(better))


def _sampled(table: pd.DataFrame) -> pd.DataFrame:
    """At most `_MOST` named runs of each kind and device."""
    rows = table[table["flag"].eq("") & table["implementation"].ne("")]
    shuffled = rows.sample(frac=1.0, random_state=_SEED)
    chosen = shuffled.groupby(_ALIKE, observed=True, dropna=False).head(_MOST)
    return chosen.sort_index().reset_index(drop=True)


def _gain(runs: Runs) -> np.ndarray:
    """By how much the error of each run is smaller, of devices predicted from the others."""
    gains = [np.zeros(0)]
    for device in np.unique(runs.devices):
        mine = runs.devices == device
        if mine.all() or (~mine).sum() < _LEAST:
            continue
        group, rest = taught(runs.chosen(np.flatnonzero(~mine))), runs.chosen(np.flatnonzero(mine))
        predicted = rest.model_us if group is None else times(group, rest)[0]
        model, corrected = (
            np.minimum(np.abs(np.log(rest.measured_us / each)), _CLIPPED)
            for each in (rest.model_us, predicted)
        )
        gains.append(model - corrected)
    return np.concatenate(gains)


def _tested(runs: Sequence[Runs], gains: Sequence[np.ndarray]) -> frozenset[str]:
    """The harnesses under which devices are predicted better from others."""
    totals: dict[str, float] = {}
    for each, gain in zip(runs, gains, strict=True):
        for word in each.shared if len(gain) else ():
            totals[word] = totals.get(word, 0.0) + float(gain.sum())
    better = {word for word, total in totals.items() if total > 0.0}
    known = default().runs
    return frozenset(name for name in better.intersection(known) if not known[name].one_at_a_time)


def without_device(table: pd.DataFrame, tested: frozenset[str]) -> Iterator[tuple[str, Learned]]:
    """Each device that has siblings, and what is learned without its runs."""
    kinds = {str(name): architecture_name(load(str(name))) for name in table["device"].unique()}
    for device, kind in kinds.items():
        siblings = [name for name, other in kinds.items() if other == kind and name != device]
        if siblings:
            rows = table[table["device"].isin(siblings)]
            yield device, learned_from(rows, "siblings", tested)


def left_out(table: pd.DataFrame, tested: frozenset[str]) -> pd.DataFrame:
    """Runs of devices with siblings, predicted by the model (`model_us`) and with what is learned
    from the siblings; `is_corrected` says whether there was anything."""
    import pandas as pd

    subset, parts = sample(table[table["flag"].eq("")].reset_index(drop=True)), []
    for device, learned in without_device(table, tested):
        rows = subset[subset["device"] == device].reset_index(drop=True)
        with corrected_by(learned, record=False):
            timed = predict_table(rows)
        model = predict_table(rows, learned=False)
        both_ways = timed.assign(
            model_us=model["predicted_us"], line=lines(timed),
            is_corrected=timed["predicted_us"].ne(model["predicted_us"]),
        )  # fmt: skip
        parts.append(both_ways)
    return pd.concat(parts, ignore_index=True)


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Errors by line of the runs of `left_out` that are corrected, without the record and with it,
    the last line for all; and of all runs of the line."""
    import pandas as pd

    runs = pd.concat([runs, runs.assign(line="all")])
    corrected = runs[runs["is_corrected"]]
    frame = scores(corrected, ["line"])[["n", "coverage", "width"]]
    for title, rows, column in (
        ("without", corrected, "model_us"), ("with", corrected, "predicted_us"),
        ("every run without", runs, "model_us"), ("every run with", runs, "predicted_us"),
    ):  # fmt: skip
        score = scores(rows, ["line"], column)
        pairs = score["median"].map("{:.3f}".format) + " / " + score["p90"].map("{:.2f}".format)
        frame = frame.assign(**{title: pairs})
    order = ["n", "without", "with", "every run without", "every run with", "coverage", "width"]
    return frame[order].loc[[*(name for name in frame.index if name != "all"), "all"]]


_INTRODUCTION = """## The bundled record

What published runs teach beyond the model comes with perfmodel
([how](learn.md#the-bundled-record)). It corrects predictions that name an implementation which has
runs of that family, types, kernel and harness on the architecture. *Without* and *with* the record
are median / 90th percentile of the error on devices that were left out: everything was learned
again from other devices of their architecture. *Every run* has those without a correction too. The
other figures of this page are of the model alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m perfmodel.fitting.record TABLE...`."""
    return exit_code("perfmodel.fitting.record", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.replacing import replacing
    from perfmodel.table.records import read_table, tidy

    parser = argparse.ArgumentParser(prog="perfmodel.fitting.record", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables")
    parser.add_argument("--output", default=str(PATH), help="the record")
    parser.add_argument(
        "--page", help="document whose section between markers is written anew, too"
    )
    args = parser.parse_args(arguments)
    table = tidy(read_table(args.table))
    learned = learned_from(table, "published runs")
    tested = frozenset(harnesses()).intersection(word for g in learned.groups for word in g.shared)
    with replacing(args.output) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **packed(learned))
    print(f"wrote {Path(args.output).name}: {len(learned.groups)} groups")
    if args.page:
        text = Path(args.page).read_text(encoding="utf-8")
        block = f"{_INTRODUCTION}\n\n{markdown(summary(left_out(table, tested)))}"
        with replacing(args.page) as partial:
            partial.write_text(between(text, block, args.page, "record"), encoding="utf-8")
        print(f"wrote {Path(args.page).name}")


if __name__ == "__main__":
    raise SystemExit(main())
