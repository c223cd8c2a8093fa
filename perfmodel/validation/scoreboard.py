"""The scoreboard: how accurate the model is, beside baselines, held-out fits and ablations.

    python -m perfmodel.validation.scoreboard TABLE...        writes docs/accuracy.md

Figures only; the measured rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting.estimation import first_slopes, sample
from perfmodel.fitting.fitted import families
from perfmodel.fitting.heldout import left_out
from perfmodel.timing import ablation, constants
from perfmodel.validation.compare import LEFT_OUT, predict_table
from perfmodel.validation.masking import MASKS, masked

if TYPE_CHECKING:
    import pandas as pd

# |ln| between two good libraries on one device and shape: what no model can be better than.
NOISE_FLOOR = {
    "gemm-16": "0.035-0.06",
    "attention-prefill": "0.10-0.15",
    "attention-decode": "0.10",
}

# Launch floor of the simple baselines, by harness, in microseconds.
_BASELINE_FLOOR_US = {"cuda_graph": 3.0, "cuda_events_eager": 45.0, "wall_clock": 30.0}


def scores(table: pd.DataFrame, by: Sequence[str], column: str = "predicted_us") -> pd.DataFrame:
    """n, median and p90 of |ln|, MAPE, bias, rank correlation and range coverage by columns."""
    import pandas as pd

    rows = table[table[column].notna()]
    ratio = rows[column] / rows["measured_us"]
    error = ratio.map(np.log)
    inside = (rows["measured_us"] >= rows["low_us"]) & (rows["measured_us"] <= rows["high_us"])
    frame = rows[list(by)].assign(
        error=error, size=error.abs(), relative=(ratio - 1).abs(), inside=inside
    )
    grouped = frame.groupby(list(by), sort=True)
    ranks = {
        key if len(by) > 1 else key[0]: part[column].corr(part["measured_us"], method="spearman")
        for key, part in rows.groupby(list(by))
        if len(part) > 2 and part[column].nunique() > 1 < part["measured_us"].nunique()
    }
    found = pd.DataFrame(
        {
            "n": grouped["size"].size(),
            "median": grouped["size"].median(),
            "p90": grouped["size"].quantile(0.9),
            "MAPE": grouped["relative"].mean(),
            "bias": np.exp(grouped["error"].mean()),
            "coverage": grouped["inside"].mean(),
        }
    )
    return found.assign(spearman=pd.Series(ranks))


def baselines(table: pd.DataFrame) -> pd.DataFrame:
    """Plain roofline (the physical floor), and that over 0.85 with a launch floor per harness."""
    roofline = np.maximum(table["floor_us"], 1e-3)
    floor = table["harness"].map(_BASELINE_FLOOR_US).fillna(5.0)
    return table.assign(roofline_us=roofline, scaled_us=roofline / 0.85 + floor)


def ablations(table: pd.DataFrame) -> pd.DataFrame:
    """Median and p90 of |ln| by family with each term switched off, no refit."""
    import pandas as pd

    found = {}
    for name in ("nothing", *ablation.TERMS):
        off = () if name == "nothing" else (name,)
        rows = predict_table(table, constants=constants.default().without(*off))
        found[name] = _medians(rows)
    return pd.DataFrame(found).T


def maskings(table: pd.DataFrame) -> pd.DataFrame:
    """Median and p90 of |ln| by family, with everything known and as if something were not."""
    import pandas as pd

    found = {"known": predict_table(table)} | {mask: masked(table, mask) for mask in MASKS}
    return pd.DataFrame({name: _medians(rows) for name, rows in found.items()})


def _medians(rows: pd.DataFrame) -> pd.Series:
    """Median / p90 of |ln| by family, as text."""
    score = scores(rows.assign(family=families(rows)), ["family"])
    return score["median"].map("{:.3f}".format) + " / " + score["p90"].map("{:.2f}".format)


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
    what = words.get(str(row["limiter"]), str(row["limiter"]))
    return f"{'overestimates' if slow else 'underestimates'} the {what}"


def markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """A frame as a Markdown table, floats rounded."""
    head = [*(str(name or "") for name in frame.index.names), *map(str, frame.columns)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for key, *row in frame.itertuples():
        index = key if isinstance(key, tuple) else (key,)
        cells = [f"{v:.{digits}f}" if isinstance(v, float) else str(v) for v in row]
        lines.append(f"| {' | '.join([*map(str, index), *cells])} |")
    return "\n".join(lines)


def held_out(subset: pd.DataFrame, column: str, first: np.ndarray) -> str:
    """The section on fits without one `column` value each: by family, and by value and family.

    `first` are the subset's `first_slopes`.
    """
    held = left_out(subset, column, constants.shipped(), first=first)
    seen = baselines(predict_table(subset)).set_axis(subset.index, axis="index").loc[held.index]
    rows = held.assign(
        family=families(held), seen_us=seen["predicted_us"], scaled_us=seen["scaled_us"]
    )
    parts = [f"\n## Held out: one {column} at a time\n", _HELD.format(column=column)]
    for by in (["family"], ["held_out", "family"]):
        score = scores(rows, by)
        fitted = scores(rows, by, "seen_us")["median"]
        against = {
            "fitted median": fitted,
            "times": score["median"] / fitted,
            "scaled median": scores(rows, by, "scaled_us")["median"],
        }
        parts += [markdown(score.drop(columns=["MAPE", "spearman"]).assign(**against)), ""]
    return "\n".join(parts)


def page(
    table: pd.DataFrame, *, columns: Iterable[str] = ("device", "source", "implementation")
) -> str:
    """The whole of docs/accuracy.md for a measured-run table; `columns` are held out in turn."""
    rows = predict_table(table)
    rows = baselines(rows.assign(family=families(rows)))
    said = rows["predicted_us"].notna().mean()
    ours = scores(rows, ["family"])
    others = {
        "roofline median": scores(rows, ["family"], "roofline_us")["median"],
        "scaled median": scores(rows, ["family"], "scaled_us")["median"],
    }
    whole = ours.assign(**others, noise=[NOISE_FLOOR.get(name, "") for name in ours.index])
    parts = [
        _HEAD.format(n=len(rows), devices=rows["device"].nunique(), said=said),
        "## By operator\n",
        markdown(whole),
        "\n## By operator and device\n",
        markdown(scores(rows, ["family", "device"])),
        "\n## By operator and implementation\n",
        markdown(scores(rows, ["family", "implementation"])),
        "\n## Masked\n",
        _MASKED,
        markdown(maskings(table)),
    ]
    subset = sample(table)
    several = [name for name in columns if subset[name].nunique() > 1]
    if several:
        first = first_slopes(subset, constants.shipped())
        parts += [held_out(subset, name, first) for name in several]
    parts += ["\n## What each term is worth\n", _ABLATION, markdown(ablations(subset).T)]
    parts.append("\n" + "\n".join(f"* `{name}`: {said}" for name, said in ablation.TERMS.items()))
    parts += ["\n## The twenty worst rows\n", _worst(rows), "\n## Constants\n", _constants()]
    return "\n".join(parts) + "\n"


_HEAD = """# Accuracy

Written by `make scoreboard DATA=table`; figures only. {n:,} measured runs on {devices} devices,
{said:.1%} of them predicted. Errors are |ln(predicted / measured)|, so 0.10 is about 10 %; bias is
the geometric mean of predicted over measured; coverage the share of runs inside the 80 % range.
Plain roofline is the physical floor alone; scaled is that over 0.85, with a launch floor.
"""
_HELD = """Fitted again to the rows of every other {column}, from the priors of the constants, and
that {column} predicted: a fit that has never seen it, over a sample of the rows as for a fit,
and of as many steps.
What no other {column} identifies stays at its prior. `fitted median` is the error of the shipped
constants on the same rows and `times` how much larger the held-out one is; `scaled median` is the
baseline's.
Starts of calls were read off the runs of all, and the facts of the kernel classes, host times of
libraries among them, were set with all runs in view: where a {column} alone has an operator, its
held-out error is flattered.
"""
_MASKED = """Median / 90th percentile of runs predicted as if a name were not known: of the library,
of the harness; of the device, which is then its data sheet without anything measured on it, and
constants at their priors; of all three.
"""
_ABLATION = """Median / 90th percentile with a term switched off and nothing fitted again.
"""


def _worst(rows: pd.DataFrame) -> str:
    known = rows[rows["predicted_us"].notna()]
    error = (known["predicted_us"] / known["measured_us"]).map(np.log)
    worst = known.loc[error.abs().sort_values(ascending=False).index[:20]]
    lines = [
        "| device | operator | implementation | factor | the model believes |",
        "|---|---|---|---|---|",
    ]
    for row in worst.to_dict("records"):
        factor = row["predicted_us"] / row["measured_us"]
        said = belief({str(name): value for name, value in row.items()})
        lines.append(
            f"| {row['device']} | {row['family']} {row['dtype']} | {row['implementation']} "
            f"| {factor:.2f} | {said} |"
        )
    return "\n".join(lines)


def _constants() -> str:
    rows = (
        f"| `{item.name}` | {item.value:.4g} | {item.unit} | {item.low:g} to {item.high:g} "
        f"| {_interval(item)} | {item.meaning} |"
        for item in constants.shipped()
    )
    head = "| constant | value | unit | bounds | 95 % interval | meaning |"
    return "\n".join([head, _rule(6), *rows])


def _interval(item: constants.Constant) -> str:
    if not item.fitted:
        return "not fitted"
    if item.interval is None or not item.identified:
        return "not identified"
    return f"{item.interval[0]:.3g} to {item.interval[1]:.3g}"


def _rule(columns: int) -> str:
    return f"|{'---|' * columns}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    return exit_code("perfmodel.validation.scoreboard", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    from perfmodel.evidence.records.records import read_table, replacing, tidy

    parser = argparse.ArgumentParser(prog="perfmodel.validation.scoreboard", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables")
    parser.add_argument("--output", default="docs/accuracy.md")
    chosen = parser.parse_args(arguments)
    table = tidy(read_table(chosen.table))
    table = table[~table["flag"].isin(LEFT_OUT)].reset_index(drop=True)
    with replacing(chosen.output) as partial:
        partial.write_text(page(table), encoding="utf-8")
    print(f"wrote {Path(chosen.output)}")


if __name__ == "__main__":
    raise SystemExit(main())
