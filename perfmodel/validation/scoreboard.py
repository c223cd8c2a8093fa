"""The scoreboard: how accurate the model is on what it has seen and on what it has not.

    python -m perfmodel.validation.scoreboard TABLE...   writes docs/accuracy.md and docs/accuracy/

The page has the tables that are read, the folder the long ones as CSV. Figures only: the measured
rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting import coverage
from perfmodel.fitting.estimation import sample, values_of
from perfmodel.fitting.fitted import families
from perfmodel.fitting.heldout import (
    COLUMNS,
    Fold,
    Linearised,
    labels,
    left_out,
    linearised,
    without_each,
)
from perfmodel.fitting.ranges import sheet
from perfmodel.fitting.starts import shown
from perfmodel.hardware import load
from perfmodel.learned.active import corrected_by
from perfmodel.timing import ablation, constants
from perfmodel.timing.constants import Constant, Constants
from perfmodel.timing.knowledge import is_calibrated
from perfmodel.timing.knowledge import table as ranges_table
from perfmodel.validation import wording
from perfmodel.validation.compare import beats_floor, predict_table
from perfmodel.validation.factworth import fact_worth
from perfmodel.validation.judging import LEFT_OUT
from perfmodel.validation.masking import MASKS, masked
from perfmodel.validation.pages import between, kept, table_rows
from perfmodel.validation.scores import baselines, both, csv_text, lines, markdown, pair, scores

if TYPE_CHECKING:
    import pandas as pd

# |ln| between two good libraries on one device and shape: what no model can be better than.
NOISE_FLOOR = {
    "gemm-16": "0.035-0.06",
    "attention-prefill": "0.10-0.15",
    "attention-decode": "0.10",
}

Folds = Mapping[str, Sequence[Fold]]
"""By a column, what was fitted without each of its values."""


def fit_of(subset: pd.DataFrame, short: pd.DataFrame) -> Linearised:
    """The shipped constants as a fit to a sample; `short` has launch-bound runs, too."""
    shipped, values = constants.shipped(), constants.default()
    return linearised(subset, shipped, dict(values.runs), shown(short, values))


def summary(fit: Linearised, folds: Folds) -> pd.DataFrame:
    """Median / p90 by line: of the fit, and with each column's values left out in turn."""
    import pandas as pd

    in_sample = predict_table(fit.table, constants=values_of(fit.constants, fit.runs))
    names = lines(fit.table)
    columns = {"runs": pd.Series(names).value_counts()}
    for column, cases in folds.items():
        tests = left_out(fit, column, known=cases)
        columns[f"without its {column}"] = both(tests.assign(line=names), ["line"])
    columns["in sample"] = both(in_sample.assign(line=names), ["line"])
    return pd.DataFrame(columns).rename_axis("line").sort_index()


Held = Sequence[tuple[str, "pd.DataFrame"]]
"""Categories of what is known, each with its runs."""


def categories(held: Held) -> pd.DataFrame:
    """Errors, coverage and width by what is known."""
    import pandas as pd

    parts = []
    for name, rows in held:
        total = scores(rows.assign(category=name), ["category"])
        coverages = scores(rows.assign(line=lines(rows)), ["line"])["coverage"].to_dict()
        ends = {"least covered": min, "most covered": max}
        names = {title: end(coverages, key=coverages.__getitem__) for title, end in ends.items()}
        texts = {title: f"{line} {coverages[line]:.2f}" for title, line in names.items()}
        parts.append(total[["n", "median", "p90", "coverage", "width"]].assign(**texts))
    return pd.concat(parts)


def coverage_by_line(held: Held) -> pd.DataFrame:
    """Coverage and width by line and category."""
    import pandas as pd

    parts = [
        pair(rows.assign(line=lines(rows)), name, ("coverage", "width")) for name, rows in held
    ]
    return pd.concat(parts, axis=1).sort_index()


def first_met() -> pd.DataFrame:
    """What groups missed by when they were first met, by what was known of them."""
    import pandas as pd

    table = ranges_table()
    frame = pd.DataFrame(coverage.first_met(table["families"], table["factors"]))
    return frame.set_index(["device", "implementation"])


def held_by_value(fit: Linearised, column: str, folds: Folds) -> pd.DataFrame:
    """Scores by value left out and line, beside those of the fit."""
    tests = left_out(fit, column, known=folds[column])
    in_sample = predict_table(fit.table, constants=values_of(fit.constants, fit.runs))
    rows = tests.assign(line=lines(tests), seen_us=in_sample["predicted_us"].to_numpy())
    score = scores(rows, ["held_out", "line"])[["n", "median", "p90", "bias"]]
    return score.assign(**{"in sample": scores(rows, ["held_out", "line"], "seen_us")["median"]})


def term_worth(fit: Linearised, known: Sequence[Fold]) -> pd.DataFrame:
    """Median and p90 by line without each term, on devices whose architecture was left out."""
    import pandas as pd

    names = lines(fit.table)
    parts = []
    for name in ("nothing", *ablation.TERMS):
        tests = left_out(fit, "architecture", known=known, change=_term_change(name))
        parts.append(pair(tests.assign(line=names), name))
    return pd.concat(parts, axis=1)


def constant_worth(fit: Linearised, known: Sequence[Fold]) -> pd.DataFrame:
    """What each fitted constant is worth where the architecture was left out.

    Errors of the rows that it moves, with its value and with its prior instead, and the lines that
    gain and lose the most.
    """
    import pandas as pd

    names = lines(fit.table)
    base = left_out(fit, "architecture", known=known)
    columns = {}
    for item in (c for c in fit.constants if c.fitted):
        tests = left_out(fit, "architecture", known=known, change=_prior_change(item))
        mask = ~np.isclose(tests["predicted_us"], base["predicted_us"], rtol=1e-4, equal_nan=True)
        columns[item.name] = _worth(base[mask], tests[mask], names[mask])
    return pd.DataFrame(columns).T.rename_axis("constant")


def _prior_change(item: Constant) -> Callable[[Constants], Constants]:
    return lambda values: values.with_values({item.name: item.prior})


def _term_change(name: str) -> Callable[[Constants], Constants]:
    return lambda values: values.without(*(() if name == "nothing" else (name,)))


def _worth(base: pd.DataFrame, tests: pd.DataFrame, names: np.ndarray) -> dict[str, object]:
    """Errors of rows by both, and the line of 30 rows or more whose median gains the most."""

    def size(rows: pd.DataFrame) -> pd.Series:
        return (rows["predicted_us"] / rows["measured_us"]).map(np.log).abs()

    errors, prior = size(base), size(tests)
    gains = (prior.groupby(names).median() - errors.groupby(names).median())[
        errors.groupby(names).size() >= 30
    ]
    extremes = {} if gains.empty else {
        "gains most": f"{gains.idxmax()} {gains.max():+.3f}",
        "loses most": f"{gains.idxmin()} {gains.min():+.3f}",
    }  # fmt: skip
    return {
        "n": len(errors),
        "median": f"{errors.median():.3f}",
        "at its prior": f"{prior.median():.3f}",
        "p90": f"{errors.quantile(0.9):.2f}",
        "p90 at its prior": f"{prior.quantile(0.9):.2f}",
        **extremes,
    }


def calibrated_worth(fit: Linearised, known: Sequence[Fold]) -> pd.DataFrame:
    """Median and p90 by line, where the architecture was left out and specs have measured rates.

    With these, and from the data sheet alone.
    """
    import pandas as pd

    slugs = {str(name) for name in fit.table["device"] if is_calibrated(load(str(name)))}
    mask = fit.table["device"].isin(slugs)
    names = lines(fit.table)[mask]
    parts = [pd.Series(names).value_counts().rename("n").to_frame()]
    for name, device in (("measured rates", load), ("data sheet", sheet)):
        tests = left_out(fit, "architecture", known=known, device=device)[mask]
        parts.append(pair(tests.assign(line=names), name))
    return pd.concat(parts, axis=1).rename_axis("line").sort_index()


def maskings(table: pd.DataFrame) -> pd.DataFrame:
    """Median and p90 by line, with everything known and as if something were not."""
    import pandas as pd

    predictions = {"known": predict_table(table)} | {mask: masked(table, mask) for mask in MASKS}
    parts = [pair(rows.assign(line=lines(rows)), name) for name, rows in predictions.items()]
    return pd.concat(parts, axis=1)


def belief(row: Mapping[Any, Any]) -> str:
    """What the model believes went wrong with a row, in words."""
    slow = row["predicted_us"] > row["measured_us"]
    if row["measured_us"] < row["floor_us"]:
        return "faster than the device allows: shape, type or inputs are not what the row says"
    words = {
        "launch": "launch floor of this harness",
        "hbm": "bytes over memory, or how much of them the L2 kept",
        "llc": "bytes beyond the L2",
        "l2": "tile of the library against ours",
        "matrix": "tile or instruction path of the library",
        "power": "power limit",
        "latency": "chain of dependent loads",
        "transpose": "transposing of 8-bit values",
        "blocks": "price of thread blocks",
    }
    cause = words.get(str(row["limiter"]), str(row["limiter"]))
    return f"{'overestimates' if slow else 'underestimates'} the {cause}"


@dataclass(frozen=True)
class Scoreboard:
    """Accuracy on a measured-run table, as documents show it."""

    page: str
    """The text of docs/accuracy.md."""
    first: str
    """Its first table, in Markdown: the README shows it, too."""
    files: Mapping[str, pd.DataFrame]
    """The long tables, by the names of their files in docs/accuracy."""


@corrected_by(None)
def scoreboard(
    table: pd.DataFrame, *, columns: Sequence[str] = tuple(COLUMNS), others: Collection[str] = ()
) -> Scoreboard:
    """The scoreboard of a measured-run table, with `columns` left out in turn.

    `others` are the files of other commands beside the page, which it may link to.
    """
    runs = table[~table["flag"].isin(LEFT_OUT)].reset_index(drop=True)
    rows = predict_table(runs)
    rows = baselines(rows.assign(family=families(rows)))
    share = rows["predicted_us"].notna().mean()
    possible = rows["predicted_us"].notna() & ~beats_floor(rows)
    subset = sample(runs[possible.to_numpy()].reset_index(drop=True))
    fit = fit_of(subset, sample(table.replace({"flag": {"timer_floor": ""}})))
    splits = [name for name in columns if labels(subset, name).nunique() > 1]
    folds = {name: without_each(fit, name) for name in splits}
    first = markdown(summary(fit, folds))
    tables, files = {"What it has not seen": first}, _sample_tables(rows)
    if {"framework", "device", "architecture"} <= folds.keys():
        groups = list(coverage.categories(fit, folds))
        tables |= {"Ranges": markdown(categories(groups)), "When first met": markdown(first_met())}
        files["ranges.csv"] = coverage_by_line(groups)
    if "architecture" in folds:
        known = folds["architecture"]
        worth = constant_worth(fit, known)
        read = worth.reindex(columns=["n", "median", "at its prior", "gains most", "loses most"])
        tables["What each constant is worth"] = markdown(read)
        files["constants.csv"] = worth
        files["terms.csv"] = term_worth(fit, known)
        files["measured-rates.csv"] = calibrated_worth(fit, known)
    files["masked.csv"] = maskings(subset)
    files["facts.csv"] = fact_worth(subset)
    files |= {f"without-each-{name}.csv": held_by_value(fit, name, folds) for name in splits}
    figures = {
        "n": f"{len(rows):,}",
        "devices": str(rows["device"].nunique()),
        "predicted": f"{share:.1%}",
        "expected": wording.expected(table_rows(first)),
    }
    return Scoreboard(wording.page(figures, tables, {*files, *others}), first, files)


def _sample_tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of what was in the fit."""
    rivals = {
        "roofline median": scores(rows, ["family"], "roofline_us")["median"],
        "scaled median": scores(rows, ["family"], "scaled_us")["median"],
    }
    frame = scores(rows, ["family"])
    total = frame.assign(**rivals, noise=[NOISE_FLOOR.get(name, "") for name in frame.index])
    return {
        "in-sample.csv": total,
        "in-sample-by-device.csv": scores(rows, ["family", "device"]),
        "in-sample-by-implementation.csv": scores(rows, ["family", "implementation"]),
        "worst-rows.csv": _worst(rows),
    }


def _worst(rows: pd.DataFrame) -> pd.DataFrame:
    """The twenty rows with the largest errors, and what the model blames."""
    predicted = rows[rows["predicted_us"].notna()]
    factor = predicted["predicted_us"] / predicted["measured_us"]
    order = factor.map(np.log).abs().sort_values(ascending=False).index[:20]
    worst = predicted.loc[order].assign(
        operator=predicted["family"] + " " + predicted["dtype"],
        factor=factor.map("{:.2f}".format),
        belief=[belief(row) for row in predicted.loc[order].to_dict("records")],
    )
    return worst.set_index("device")[["operator", "implementation", "factor", "belief"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and its tables."""
    return exit_code("perfmodel.validation.scoreboard", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.replacing import replacing
    from perfmodel.table.records import read_table, tidy

    parser = argparse.ArgumentParser(prog="perfmodel.validation.scoreboard", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables")
    parser.add_argument(
        "--output", default="docs/accuracy.md", help="the page; the folder of its name has the CSVs"
    )
    parser.add_argument("--readme", help="file whose table between markers is written anew, too")
    args = parser.parse_args(arguments)
    table = tidy(read_table(args.table))
    page_file = Path(args.output)
    content = page_file.read_text(encoding="utf-8") if page_file.is_file() else ""
    folder = page_file.with_suffix("")
    folder.mkdir(exist_ok=True)
    board = scoreboard(table, others=[path.name for path in folder.glob("*.csv")])
    texts = {args.output: kept(content, board.page)}
    if args.readme:
        readme = Path(args.readme).read_text(encoding="utf-8")
        texts[args.readme] = between(readme, board.first, args.readme)
    texts |= {str(folder / name): csv_text(frame) for name, frame in board.files.items()}
    for name, text in texts.items():
        with replacing(name) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {Path(name)}")


if __name__ == "__main__":
    raise SystemExit(main())
