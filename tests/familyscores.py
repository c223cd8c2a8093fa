"""Writes docs/accuracy/families.csv: errors on operators of 2026, by family, device and framework.

    python tests/familyscores.py SHARED/data/ops2026

No constant is fitted to these tables. Of each table at most `ROWS` unflagged rows are taken, evenly
spaced. Each row is predicted three times: by the model alone, corrected by what the other devices'
runs of its framework and operator teach (`perfmodel learn`), and by what other frameworks' do.
families-learning.csv has the errors after learning from some of the rows themselves.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from perfmodel.table.records import read_table, tidy
from perfmodel.validation import learn
from perfmodel.validation.compare import predict_table

ROWS, COUNTS = 3000, (10, 20, 50)
TABLES = {
    "encoder attention": "encoder_attention", "latent attention": "mla", "expert layers": "moe",
    "linear attention": "linear_attention", "sparse attention": "sparse_attention",
    "residual streams": "mhc", "exchange of experts": "moe_exchange",
}  # fmt: skip
PAGES = Path(__file__).parents[1] / "docs" / "accuracy"
WAYS = ("without device", "without framework")


def timed(path):
    """The rows of a table that are scored, predicted by the model alone."""
    table = tidy(read_table(path))
    table = table[table["flag"] == ""]
    table = table.iloc[:: -(-len(table) // ROWS)].reset_index(drop=True)
    table = predict_table(table, learned=False)
    framework = table["implementation"].str.extract(r"^(\w+?)[-(]")[0]
    names = {"predicted_us": "alone", "low_us": "alone low", "high_us": "alone high"}
    return table.assign(framework=framework).rename(columns=names)


def pooled(parts):
    """Groups of runs as one."""
    names = set.intersection(*(set(part.numbers) for part in parts))
    columns = ("measured_us", "model_us", "devices", "places")
    return replace(
        parts[0],
        kernels=tuple(dict.fromkeys(kernel for part in parts for kernel in part.kernels)),
        numbers={name: np.concatenate([part.numbers[name] for part in parts]) for name in names},
        words=[words for part in parts for words in part.words],
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns},
    )


def others(groups, group, way):
    """The groups of the same operator that are left where a group's device or framework is not."""
    framework, family, architecture = group.key
    same = [each for each in groups if each.key[1] == family]
    if way == "without device":
        return [e for e in same if e.key[0] == framework and e.key[2] != architecture]
    return [each for each in same if each.key[0] != framework]


def left_out(table):
    """The table with times and ranges in both ways; the model's where nothing is learned."""
    groups = learn.grouped(table.rename(columns={"alone": "predicted_us"}))
    ends = ("", " low", " high")
    for way in WAYS:
        times = table[["alone" + end for end in ends]].to_numpy(dtype=float)
        learned = np.zeros(len(table))
        for group in groups:
            rest = others(groups, group, way)
            taught = learn.taught(pooled(rest)) if sum(map(len, rest)) >= learn.LEAST else None
            if taught is not None:
                times[group.places] = np.stack(learn.times(taught, group), axis=1)
                learned[group.places] = 1.0
        table = table.assign(**{way + end: times[:, i] for i, end in enumerate(ends)})
        table = table.assign(**{f"{way} learned": learned})
    return table, groups


def score(rows, way):
    """Median, 90th percentile, coverage and width of one way."""
    measured, middle, low, high = (
        rows[name] for name in ("measured_us", way, way + " low", way + " high")
    )
    errors = np.log(middle / measured).abs()
    inside = (low <= measured) & (measured <= high)
    return {
        "median": errors.median(), "p90": errors.quantile(0.9), "coverage": inside.mean(),
        "width": np.log(high / low).median(),
    }  # fmt: skip


def line(family, device, framework, rows):
    """One line of the page."""
    ways = {"": score(rows, "alone")} | {f" {way}": score(rows, way) for way in WAYS}
    scores = {
        f"{name}{way}": round(float(value), 3)
        for way, values in ways.items()
        for name, value in values.items()
    }
    learned = {f"learned {way}": round(rows[f"{way} learned"].mean(), 2) for way in WAYS}
    return {
        "family": family, "device": device, "framework": framework, "rows": len(rows),
        "unpredicted": int(rows["alone"].isna().sum()), **scores, **learned,
    }  # fmt: skip


def main(folder):
    """Score every table and write the pages."""
    lines, curve = [], []
    for family, name in TABLES.items():
        table, groups = left_out(timed(Path(folder) / f"{name}_dev.csv.gz"))
        lines.append(line(family, "all", "all", table))
        print(lines[-1], flush=True)
        for (device, framework), rows in table.groupby(["device", "framework"], observed=True):
            lines.append(line(family, device, framework, rows))
        curve += [
            {"device": group.devices[0], **learn.scored(group, count)}
            for group in groups
            for count in COUNTS
            if 2 * count <= len(group)
        ]
    for name, entries in (("families", lines), ("families-learning", curve)):
        frame = pd.DataFrame(entries)
        frame.round(3).to_csv(PAGES / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1])
