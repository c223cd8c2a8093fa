"""Joins sections, charts, styles and scripts into one self-contained page.

The rows are in a JSON block that cannot contain markup. The content security policy allows the
page's own script and styles, by their hashes, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from string import Template
from typing import Any

from perfmodel.render.dots import Dots
from perfmodel.render.html import cases, controls, devices, summary, waterfall
from perfmodel.render.html.figures import bars_figure, dots_figure, frame
from perfmodel.render.html.kind import described
from perfmodel.render.html.markup import Markup, section, tag
from perfmodel.render.html.results import Results
from perfmodel.render.html.sections import Row, Section
from perfmodel.render.svg import shapes

_WHOLE = 2**53  # JavaScript represents whole numbers up to here exactly
_STILL = 5e-3  # a time that changes by less, as a logarithm, stands still
_TERMS = (
    "The limiter is the longest term, in vermilion. Terms without a + run beside each other; as "
    "they overlap imperfectly, the others add the ochre part to the longest of them. Terms with a "
    "+ stand before or behind and are added."
)
_WHATIF = (
    "Each number from half to twice what it is. Times are interpolated between the model's own for "
    "half, now and twice; several changes are multiplied, which is an estimate."
)


@dataclass(frozen=True)
class Contents:
    """Everything that a page shows."""

    sentences: Sequence[str]
    """The summary."""
    cases: Sequence[Mapping[str, Any]]
    """Predicted cases, complete."""
    table: Section
    """The table of the cases."""
    early: Sequence[Section]
    """Sections before the cases."""
    late: Sequence[Section]
    """Sections behind the cases."""
    assumptions: Mapping[str, int]
    """Assumptions, and the number of rows that make each."""
    results: Results
    """What was read."""


_EXPLORER = (
    "How long does it take on a GPU that I do not have? Choose what to run and its sizes. Each "
    "device's time is predicted from its data sheet and what is known of its libraries."
)


def contents(results: Results) -> Contents:
    """What the page of some results shows."""
    every = cases.complete(results)
    early, late = ([_named(s) for s in results.sections(late=late)] for late in (False, True))
    alone = (
        case for case in every if not case.get("label")
    )  # others are parts of a section's rows
    counts = Counter(text for case in alone for text in case.get("assumptions") or ())
    for each in (*early, *late):
        counts.update(each.assumptions)
    sentences = [
        *results.told,
        *summary.sentences([case for case in every if not case.get("part_of")]),
        *(text for each in (*early, *late) for text in each.sentences),
        *results.sentences,
    ]
    table = cases.section(every, cases.bounds_of(every), results.effects)
    return Contents(sentences, every, table, early, late, dict(counts.most_common()), results)


def _named(each: Section) -> Section:
    """The section with each row's limiter, if it is a memory level, by the device's name for it."""
    rows: list[Row] = [
        {**row, "limiter": cases.names_on(str(row.get("device"))).get(limiter, limiter)}
        if (limiter := row.get("limiter")) else row
        for row in each.rows
    ]  # fmt: skip
    return replace(each, rows=rows)


def render(
    results: Results,
    *,
    title: str,
    command: str,
    explorer: Mapping[str, Any] | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page as HTML; the same bytes for the same results. `links` are other pages by what is
    said of them."""
    content = contents(results)
    data: dict[str, Any] = {"title": title, "command": command, "tables": {}, "charts": {}}
    words = content.sentences or ([_EXPLORER] if explorer else [])
    pages = [tag("p", tag("a", text, href=page)) for text, page in (links or {}).items()]
    parts = [section("summary", "Summary", [*(tag("p", text) for text in words), *pages])]
    parts += [_section(s, s.id or f"result-{i}", data) for i, s in enumerate(content.early)]
    parts += _cases(content, data)
    parts += [_section(s, s.id or f"late-{i}", data) for i, s in enumerate(content.late)]
    if explorer:
        data["explorer"] = explorer
        frames = {str(each["title"]): frame(each, f"explorer-{i}")
                  for i, each in enumerate(explorer["operators"])}  # fmt: skip
        parts.append(section("explorer", "Explorer", controls.explorer(frames, explorer["note"])))
    types = [str(case["compute_type"]) for case in content.cases if case["compute_type"]]
    facts = devices.section(results.devices, list(dict.fromkeys(types)))
    parts += [_section(facts, "devices", data)] if facts else []
    parts += [_section(s, f"table-{i}", data) for i, s in enumerate(results.tables)]
    if content.cases or content.assumptions:
        parts.append(_assumptions(content.assumptions))
    names = ["page.js", *(["explorer.js"] if explorer else [])]
    script = "\n".join(["(() => {", '"use strict";', *map(_asset, names), "})();"])
    style = _asset("style.css")
    policy = "; ".join([
        "default-src 'none'", f"script-src '{_hash(script)}'", f"style-src '{_hash(style)}'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        policy=html.escape(policy, quote=True),
        style=style,
        shapes=shapes() if data["charts"] or explorer else "",
        main="\n".join(parts),
        command=html.escape(command),
        data=as_json(data),
        script=script,
    )


def _section(each: Section, ident: str, data: dict[str, Any]) -> Markup:
    """A section with its charts and its table."""
    data["tables"][ident] = each.table()
    parts: list[Markup] = []
    for i, chart in enumerate(each.charts):
        name = f"{ident}-{i}"
        figure = (
            dots_figure(chart, each, name, ident)
            if isinstance(chart, Dots)
            else bars_figure(chart, name)
        )
        if figure is not None:
            data["charts"][figure.id] = figure.script
            parts.append(figure.markup(each))
    parts += [controls.table(ident, each, each.title)] if each.rows else []
    return section(ident, each.title, parts)


def _cases(content: Contents, data: dict[str, Any]) -> list[Markup]:
    """Rooflines, terms, what-ifs and table of the cases."""
    if not content.cases:
        return []
    parts = []
    drawn = cases.roofline(content.cases, content.table, cases.bounds_of(content.cases))
    if drawn is not None:
        figure, note = drawn
        data["charts"][figure.id] = figure.script
        about = tag("p", note, class_="note")
        parts.append(section("roofline", "Roofline", figure.markup(content.table), about))
    names = ["device", "operator", "schedule", *cases.varying(content.cases)]
    if any(case.get("terms_us") for case in content.cases):
        data["terms"] = [[waterfall.told(case), *(waterfall.lines(case) if case.get("terms_us")
                                                  else ())] for case in content.cases]  # fmt: skip
        words = [described(row, names) for row in content.table.rows]
        parts.append(section("terms", "Terms of a case", controls.terms(words, _TERMS)))
    every = content.results.effects
    effects = [every.get(case["key"]) for case in content.cases]
    if any(effects):
        moving = _moving(content, every)
        data["effects"] = effects
        reset = tag("p", tag("button", "As it is", type="button"))
        answer = tag("p", aria_live="polite", id="whatif-result")
        about = tag("p", _WHATIF, class_="note")
        parts.append(section("whatif", "What if", about, controls.sliders(moving), reset, answer))
    return [*parts, _section(content.table, "cases", data)]


def _moving(content: Contents, effects: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The hardware numbers that change the time of some case by more than half a per cent."""
    quantities = content.results.quantities
    ends = {
        name: [
            end is None or abs(math.log(end / case["time_us"])) > _STILL
            for case in content.cases
            for end in effects.get(case["key"], {}).get(name, ())
        ]
        for name in quantities
    }
    return {name: title for name, title in quantities.items() if any(ends[name])}


def _assumptions(counts: Mapping[str, int]) -> Markup:
    if not counts:
        text = "None: everything that the predictions needed was given or is in the specs."
        return section("assumptions", "Assumptions", tag("p", text))
    lines = [
        tag("li", f"{text} ({count} {'case' if count == 1 else 'cases'})")
        for text, count in counts.items()
    ]
    return section("assumptions", "Assumptions", tag("ul", lines))


def as_json(value: Any) -> str:
    """JSON that contains neither `</script>` nor an HTML comment."""
    text = json.dumps(_json_value(value), allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _json_value(value: Any) -> Any:
    """`value` without empty members, numbers to six digits, null for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        number = float(f"{value:.6g}")
        return int(number) if number.is_integer() and abs(number) < _WHOLE else number
    return value


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _asset(name: str) -> str:
    return files("perfmodel.render.html").joinpath("assets", name).read_text(encoding="utf-8")
