"""The chart of docs/accuracy.md: errors of each kind of run, left out of the fit and included.

    python tests/heldoutchart.py docs/accuracy.md --output docs/images/accuracy.svg

It is drawn from the first table of the page, so that both agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfmodel.errors import exit_code
from perfmodel.render.chart import Chart, save
from perfmodel.render.page import Page
from perfmodel.render.report import Row
from perfmodel.render.spans import Lane, Span, Spans, spans_chart
from perfmodel.validation.pages import table_rows
from perfmodel.validation.wording import IN_SAMPLE, errors, worst

_TITLE = "How far predictions are off, by kind of run"
_CAPTION = (
    "Solid to the median, pale to the 90th percentile.",
    "Left out: by constants that were fitted without the run's source, framework, implementation, "
    "architecture or device; the worst of these five.",
)


def heldout_chart(rows: Sequence[Mapping[str, str]], page: Page | None = None) -> Chart:
    """Median and 90th percentile for every kind of run, the worst predicted at the bottom.

    `rows` are those of the page's first table: `line`, `in sample`, `without its ...`, each with a
    cell `median / 90th percentile`.
    """
    lines = sorted(map(_errors, rows), key=lambda row: (row["left_out_median"], row["kind"]))
    spans = Spans(
        _TITLE, "number", [Lane(row["kind"], list(_spans(row))) for row in lines],
        {"left out": "blue", "in sample": "grey"},
        axis="|ln(predicted / measured)|: 0.1 is about 10 %",
    )  # fmt: skip
    return spans_chart(spans, sentence=_sentence(lines), caption=_CAPTION, page=page)


def _spans(row: Row) -> Iterator[Span]:
    """Two bars for each kind, solid to the median and pale to the 90th percentile."""
    for key, group, part in (
        ("left_out", "left out", (0.0, 0.5)), ("in_sample", "in sample", (0.5, 1.0))
    ):  # fmt: skip
        median, tail = (row[f"{key}_{end}"] for end in ("median", "p90"))
        numbers = {"kind": row["kind"], "what": group, "median": median, "p90": tail}
        yield Span(0.0, median, group, numbers, part=part)
        yield Span(median, tail, group, numbers, part=part, pale=True)


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
    return exit_code("heldoutchart", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> None:
    import argparse
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="heldoutchart", description=__doc__)
    parser.add_argument("page", help="the page whose first table is drawn")
    parser.add_argument("--output", default="docs/images/accuracy.svg")
    options = parser.parse_args(arguments)
    text = Path(options.page).read_text(encoding="utf-8")
    save(heldout_chart(table_rows(text)), options.output)
    print(f"wrote {Path(options.output)}")


if __name__ == "__main__":
    raise SystemExit(main())
