"""The chart of docs/accuracy.md: errors of each kind of run, left out of the fit and included.

    python -m perfmodel.render.heldout docs/accuracy.md --output docs/images/accuracy.svg

It is drawn from the first table of the page, so that both agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfmodel.errors import exit_code
from perfmodel.render.chart import Chart, dress, save
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.validation.pages import table_rows
from perfmodel.validation.wording import IN_SAMPLE, errors, worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.27  # inches for each kind of run
_TITLE = "How far predictions are off, by kind of run"
_CAPTION = (
    "Left out: by constants that were fitted without the run's source, framework, implementation, "
    "architecture or device; the worst of these five.",
)


def heldout_chart(rows: Sequence[Mapping[str, str]], page: Page | None = None) -> Chart:
    """Median and 90th percentile for every kind of run, the worst predicted at the bottom.

    `rows` are those of the page's first table: `line`, `in sample`, `without its ...`, each with a
    cell `median / 90th percentile`.
    """
    from matplotlib.figure import Figure

    page = page or Page()
    lines = sorted(map(_errors, rows), key=lambda row: (row["left_out_median"], row["kind"]))
    with styled(page) as palette:
        figure = Figure(figsize=page.size(6.6, _ROW * len(lines) + 1.5), layout="constrained")
        _fill(figure.add_subplot(), lines, palette)
        dress(figure, page, palette, _TITLE, _CAPTION)
    return Chart(figure, _TITLE, _sentence(lines), lines, _CAPTION, page)


def _errors(row: Mapping[str, str]) -> Row:
    """The numbers drawn for a line of the table, each |ln(predicted / measured)|."""
    worst_median, worst_p90 = worst(row)
    median, p90 = errors(row[IN_SAMPLE])
    return {
        "kind": row["line"],
        "left_out_median": worst_median,
        "left_out_p90": worst_p90,
        "in_sample_median": median,
        "in_sample_p90": p90,
    }


def _fill(axes: Axes, rows: Sequence[Row], palette: Palette) -> None:
    """Two lines for each kind, from the median to the 90th percentile."""
    looks = (
        ("left_out", "left out", -0.17, palette.blue),
        ("in_sample", "in sample", 0.17, palette.grey),
    )
    size = 0.62 * palette.body
    for key, name, offset, colour in looks:
        places = [place + offset for place in range(len(rows))]
        medians, tails = ([row[f"{key}_{end}"] for row in rows] for end in ("median", "p90"))
        axes.hlines(places, medians, tails, color=colour, linewidth=palette.line, gid=f"{key}-span")
        axes.plot(medians, places, "o", color=colour, markersize=size,
                  label=f"{name}: median", gid=f"{key}-median")  # fmt: skip
        axes.plot(tails, places, "o", markeredgecolor=colour, markerfacecolor=palette.ground,
                  markersize=size, label=f"{name}: 90th percentile", gid=f"{key}-p90")  # fmt: skip
    _frame(axes, [row["kind"] for row in rows], palette)


def _frame(axes: Axes, names: Sequence[str], palette: Palette) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="x", color=palette.faint)
    axes.set_axisbelow(True)
    axes.set_xlabel("|ln(predicted / measured)|: 0.1 is about 10 %")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _sentence(rows: Sequence[Row]) -> str:
    """The numbers in words."""
    parts = [
        f"{row['kind']}: left out {row['left_out_median']:.0%} (90th percentile "
        f"{row['left_out_p90']:.0%}), in sample {row['in_sample_median']:.0%} "
        f"({row['in_sample_p90']:.0%})"
        for row in rows
    ]
    return f"Median errors. {'; '.join(parts)}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the chart of a page."""
    return exit_code("perfmodel.render.heldout", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="perfmodel.render.heldout", description=__doc__)
    parser.add_argument("page", help="the page whose first table is drawn")
    parser.add_argument("--output", default="docs/images/accuracy.svg")
    options = parser.parse_args(arguments)
    text = Path(options.page).read_text(encoding="utf-8")
    save(heldout_chart(table_rows(text)), options.output)
    print(f"wrote {Path(options.output)}")


if __name__ == "__main__":
    raise SystemExit(main())
