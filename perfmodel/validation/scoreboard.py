"""The scoreboard: how accurate the model is on what it has seen and on what it has not.

    python -m perfmodel.validation.scoreboard TABLE...        writes docs/accuracy.md

Figures only; the measured rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

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
from perfmodel.timing import ablation, constants
from perfmodel.timing.constants import Constant, Constants
from perfmodel.timing.knowledge import is_calibrated
from perfmodel.timing.knowledge import table as ranges_table
from perfmodel.validation import wording
from perfmodel.validation.compare import beats_floor, predict_table
from perfmodel.validation.judging import LEFT_OUT
from perfmodel.validation.masking import MASKS, masked
from perfmodel.validation.pages import between, blocks, headings, kept, table_rows
from perfmodel.validation.scores import baselines, both, lines, markdown, scores

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
    """Coverage / width by line and category."""
    import pandas as pd

    columns = {}
    for name, rows in held:
        score = scores(rows.assign(line=lines(rows)), ["line"])
        columns[name] = (
            score["coverage"].map("{:.2f}".format) + " / " + score["width"].map("{:.2f}".format)
        )
    return pd.DataFrame(columns).rename_axis("line").fillna("")


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
    """Median / p90 by line without each term, on devices whose architecture was left out."""
    import pandas as pd

    names = lines(fit.table)
    columns = {}
    for name in ("nothing", *ablation.TERMS):
        tests = left_out(fit, "architecture", known=known, change=_term_change(name))
        columns[name] = both(tests.assign(line=names), ["line"])
    return pd.DataFrame(columns).T


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
    """Median / p90 by line of devices of an architecture left out, whose spec has measured rates.

    With these, and from the data sheet alone.
    """
    import pandas as pd

    slugs = {str(name) for name in fit.table["device"] if is_calibrated(load(str(name)))}
    mask = fit.table["device"].isin(slugs)
    names = lines(fit.table)[mask]
    columns = {}
    for name, device in (("measured rates", load), ("data sheet", sheet)):
        tests = left_out(fit, "architecture", known=known, device=device)[mask]
        columns[name] = both(tests.assign(line=names), ["line"])
    return pd.DataFrame({"n": pd.Series(names).value_counts(), **columns}).rename_axis("line")


def maskings(table: pd.DataFrame) -> pd.DataFrame:
    """Median / p90 by line, with everything known and as if something were not."""
    import pandas as pd

    predictions = {"known": predict_table(table)} | {mask: masked(table, mask) for mask in MASKS}
    return pd.DataFrame(
        {name: both(rows.assign(line=lines(rows)), ["line"]) for name, rows in predictions.items()}
    )


def belief(row: Mapping[str, object]) -> str:
    """What the model believes went wrong with a row, in words."""
    slow = float(row["predicted_us"]) > float(row["measured_us"])  # type: ignore[arg-type]
    if float(row["measured_us"]) < float(row["floor_us"]):  # type: ignore[arg-type]
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


def page(
    table: pd.DataFrame, *, columns: Sequence[str] = tuple(COLUMNS), others: Sequence[str] = ()
) -> tuple[str, str]:
    """The whole of docs/accuracy.md for a measured-run table, and its first table by itself.

    `columns` are left out in turn; `others` are the page's sections by other commands.
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
    tables = {
        "What it has not seen": first, **_ranges(fit, folds), **_sample_tables(rows),
        "Masked": markdown(maskings(subset)), **_worths(fit, folds),
    }  # fmt: skip
    for name in splits:
        tables[f"Without each {name}"] = markdown(held_by_value(fit, name, folds))
    tables |= {"The twenty worst rows": _worst(rows), "How it was fitted": ""}
    figures = {
        "n": len(rows), "devices": rows["device"].nunique(), "said": share,
        "expected": wording.expected(table_rows(first)),
    }  # fmt: skip
    return wording.page(figures, {**tables, "Constants": _constants()}, others), first


def _ranges(fit: Linearised, folds: Folds) -> dict[str, str]:
    """What ranges hold, where all that they need can be left out."""
    if not {"framework", "device", "architecture"} <= folds.keys():
        return {}
    groups = list(coverage.categories(fit, folds))
    total, by_line = markdown(categories(groups)), markdown(coverage_by_line(groups))
    return {
        "Ranges": f"{total}\n\nCoverage / width by kind of run:\n\n{by_line}",
        "When first met": markdown(first_met()),
    }


def _worths(fit: Linearised, folds: Folds) -> dict[str, str]:
    """What terms, constants and measured rates are worth where an architecture is left out."""
    if "architecture" not in folds:
        return {}
    cases = folds["architecture"]
    terms = "\n".join(f"* `{name}`: {text}" for name, text in ablation.TERMS.items())
    return {
        "What each term is worth": f"{markdown(term_worth(fit, cases).T)}\n\n{terms}",
        "What each constant is worth": markdown(constant_worth(fit, cases)),
        "What measured rates are worth": markdown(calibrated_worth(fit, cases)),
    }


def _sample_tables(rows: pd.DataFrame) -> dict[str, str]:
    """The tables of what was in the fit."""
    rivals = {
        "roofline median": scores(rows, ["family"], "roofline_us")["median"],
        "scaled median": scores(rows, ["family"], "scaled_us")["median"],
    }
    frame = scores(rows, ["family"])
    total = frame.assign(**rivals, noise=[NOISE_FLOOR.get(name, "") for name in frame.index])
    tables = {
        f"In sample, by operator and {name}": markdown(scores(rows, ["family", name]))
        for name in ("device", "implementation")
    }
    return {"In sample, by operator": markdown(total), **tables}


def _worst(rows: pd.DataFrame) -> str:
    predicted = rows[rows["predicted_us"].notna()]
    error = (predicted["predicted_us"] / predicted["measured_us"]).map(np.log)
    worst = predicted.loc[error.abs().sort_values(ascending=False).index[:20]]
    lines = [
        "| device | operator | implementation | factor | the model believes |",
        "|---|---|---|---|---|",
    ]
    for row in worst.to_dict("records"):
        factor = row["predicted_us"] / row["measured_us"]
        reason = belief({str(name): value for name, value in row.items()})
        lines.append(
            f"| {row['device']} | {row['family']} {row['dtype']} | {row['implementation']} "
            f"| {factor:.2f} | {reason} |"
        )
    return "\n".join(lines)


def _constants() -> str:
    rows = (
        f"| `{item.name}` | {item.value:.4g} | {item.unit} | {item.low:g} to {item.high:g} "
        f"| {_interval(item)} | {item.meaning} |"
        for item in constants.shipped()
    )
    head = "| constant | value | unit | bounds | 95 % interval | meaning |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _interval(item: constants.Constant) -> str:
    if not item.fitted:
        return "not fitted"
    if item.interval is None or not item.identified:
        return "not identified"
    return f"{item.interval[0]:.3g} to {item.interval[1]:.3g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    return exit_code("perfmodel.validation.scoreboard", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.evidence.records.records import read_table, tidy
    from perfmodel.evidence.records.replacing import replacing

    parser = argparse.ArgumentParser(prog="perfmodel.validation.scoreboard", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables")
    parser.add_argument("--output", default="docs/accuracy.md")
    parser.add_argument("--readme", help="file whose table between markers is written anew, too")
    args = parser.parse_args(arguments)
    table = tidy(read_table(args.table))
    page_file = Path(args.output)
    content = page_file.read_text(encoding="utf-8") if page_file.is_file() else ""
    document, first = page(table, others=headings("\n".join(blocks(content))))
    texts = {args.output: kept(content, document)}
    if args.readme:
        readme = Path(args.readme).read_text(encoding="utf-8")
        texts[args.readme] = between(readme, first, args.readme)
    for name, text in texts.items():
        with replacing(name) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {Path(name)}")


if __name__ == "__main__":
    raise SystemExit(main())
