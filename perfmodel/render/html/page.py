"""Joins data, styles and scripts into one self-contained page.

The data are in a JSON block that cannot contain markup. The content security policy allows the
page's own script and styles, by their hashes, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from string import Template
from typing import Any

from perfmodel.elements import ELEMENTS
from perfmodel.hardware.levels import OWN
from perfmodel.prediction import counted_work
from perfmodel.render.html import devices, summary
from perfmodel.render.html.results import Results, case_key
from perfmodel.render.html.sections import Row, Section
from perfmodel.render.terms import ABOUT

_WHOLE = 2**53  # JavaScript represents whole numbers up to here exactly

SCRIPTS = (
    *("base", "format", "tip", "labels", "axes", "dots", "table", "download"),
    *("whatif", "devices", "roofline", "terms", "bars", "scatter", "sections"),
    *("explorer", "main"),
)
"""The scripts in the order in which they are joined; each describes itself."""


def render(
    results: Results,
    *,
    title: str,
    command: str,
    explorer: Mapping[str, Any] | None = None,
) -> str:
    """The page as HTML; the same bytes for the same results."""
    style = _asset("style.css")
    script = "\n".join(
        ["(() => {", '"use strict";', *(_asset(f"{name}.js") for name in SCRIPTS), "})();"]
    )
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        policy=html.escape(policy, quote=True),
        style=style,
        data=as_json(data(results, title, command, explorer)),
        script=script,
    )


def data(
    results: Results, title: str, command: str, explorer: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Everything that the scripts show."""
    contents = replace(results, cases=[*results.cases, *results.derived()])
    sections, late = results.sections(late=False), results.sections(late=True)
    cases = [
        {
            **case,
            "key": case_key(case["device"], case["problem"]),
            "compute_type": _type(case),
            **_work(case),
        }
        for case in contents.cases
    ]
    types = list(dict.fromkeys(case["compute_type"] for case in cases if case["compute_type"]))
    specs = {slug: devices.described(slug, types) for slug in contents.devices}
    for case in cases:  # rows of a sweep lack their device's names of levels
        levels = (specs[case["device"]] or {}).get("levels", {})
        case["levels"] = {**{name: roof["name"] for name, roof in levels.items()},
                          **(case.get("levels") or {})}  # fmt: skip
    sections, late = ([_section(s, specs) for s in group] for group in (sections, late))
    counts = Counter(text for case in results.cases for text in case.get("assumptions") or ())
    for section in (*sections, *late):
        counts.update(section.assumptions)
    sentences = [text for section in (*sections, *late) for text in section.sentences]
    return {
        "title": title,
        "command": command,
        "sentences": [
            *summary.sentences([case for case in cases if not case.get("part_of")]),
            *sentences,
            *results.sentences,
        ],
        "devices": {slug: spec for slug, spec in specs.items() if spec is not None},
        "unknown_devices": [slug for slug, spec in specs.items() if spec is None],
        "cases": cases,
        "sections": [section.as_dict() for section in sections],
        "late_sections": [section.as_dict() for section in late],
        "tables": [section.as_dict() for section in results.tables],
        "effects": results.effects,
        "quantities": results.quantities,
        "assumptions": [{"text": text, "count": count} for text, count in counts.most_common()],
        "terms": ABOUT,
        "explorer": explorer,
    }


def _work(case: Mapping[str, Any]) -> dict[str, Any]:
    """The operations that a case's rate counts, and its intensities by the same operations."""
    work = counted_work(case.get("useful_flops"), case.get("flops") or {})
    traffic = case.get("bytes") or {}
    intensity = {level: work / size for level, size in traffic.items() if size and work}
    return {"work": work, "arithmetic_intensity": intensity}


def _section(section: Section, specs: Mapping[str, Any]) -> Section:
    """The section with each row's limiter, if it is a memory level, by the device's name for it."""
    rows: list[Row] = []
    for row in section.rows:
        levels = (specs.get(str(row.get("device"))) or {}).get("levels", {})
        level = levels.get(row.get("limiter"))
        local = level is not None and row["limiter"] in OWN
        rows.append({**row, "limiter": level["name"]} if local else row)
    return replace(section, rows=rows)


def _type(case: Mapping[str, Any]) -> str | None:
    """The type whose matrix rate applies to a case, if its problem has one."""
    element = ELEMENTS.get(str(case["problem"].get("dtype")))
    return None if element is None else element.compute


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
