"""Predicted cases on the page: their table and their rooflines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from perfmodel.columns import ASIDE, DIFFERS, Column, text
from perfmodel.elements import ELEMENTS
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load
from perfmodel.prediction import counted_work
from perfmodel.render.html.columns import hidden, telling
from perfmodel.render.html.figures import Figure, roofline_figure
from perfmodel.render.html.results import Results
from perfmodel.render.html.sections import Section
from perfmodel.render.html.waterfall import joined
from perfmodel.render.roofs import LEVELS, LINKS, Kernel, Roofs, level_names, roofs

Case = Mapping[str, Any]

_MOST = 1e60  # what is larger is no rate of a device, and too large for an axis
_DRAWN = 16  # number of devices with a roofline
_ABOUT = (
    "Point at a mark, or walk them with the arrow keys; Enter shows its terms. Bars are the "
    "predictions' ranges."
)


def complete(results: Results) -> list[dict[str, Any]]:
    """All cases, with the operations that their rate counts, the intensities by these, and the type
    whose matrix rate applies."""
    cases = []
    for case in results.cases:
        work = counted_work(case.get("useful_flops"), case.get("flops") or {})
        traffic = case.get("bytes") or {}
        element = ELEMENTS.get(str(case["problem"].get("dtype")))
        cases.append({
            **case,
            "work": work,
            "arithmetic_intensity": {
                level: work / size for level, size in traffic.items() if size and work
            },
            "compute_type": None if element is None else element.compute,
            "levels": {**names_on(str(case["device"])), **(case.get("levels") or {})},
        })  # fmt: skip
    return cases


def names_on(slug: str) -> dict[str, str]:
    """A device's own names of its levels of memory; empty without a spec."""
    try:
        return load(slug).level_names
    except PerfmodelError:
        return {}


def varying(cases: Sequence[Case]) -> list[str]:
    """Fields of the problems that differ between cases of one operator."""
    groups: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        for name, value in case["problem"].items():
            groups.setdefault((case["algorithm"], name), set()).add(str(value))
    names = (name for (_, name), values in groups.items() if len(values) > 1 and name != "op")
    return list(dict.fromkeys(names))


def section(
    cases: Sequence[Case], bounds: Mapping[str, Roofs], effects: Collection[str]
) -> Section:
    """The table of the cases; what is too much for it is told where one points at a case. `effects`
    are the keys of those with what-ifs."""
    names = list(dict.fromkeys(name for case in cases for name in case["problem"] if name != "op"))
    rows = [dict(_row(case, bounds.get(case["device"]), effects)) for case in cases]
    memory = next((case["levels"]["hbm"] for case in cases if "hbm" in case["levels"]), "memory")
    order = [
        *(text(key, key) for key in ("device", "operator", "schedule", "implementation")),
        *(Column(name, name, number=_numeric(rows, name), when=DIFFERS) for name in names),
        *(Column(name, f"{name}_us") for name in ("time", "low", "high")),
        Column("time, what if", "after_us"),
        text("limiter", "limiter"),
        Column("share of its roof", "share"),
        Column("rate", "rate", "flops_per_s"),
        Column(f"{memory} bytes", "hbm_bytes"),
        Column("memory", "footprint_bytes"),
        text("joined", "joined", when=ASIDE),
    ]
    levels = dict.fromkeys(key for row in rows for key in row if key.startswith("at "))
    order += [Column(f"FLOP/byte {key}", key, when="" if key == f"at {memory}" else ASIDE)
              for key in levels]  # fmt: skip
    kept = [
        column for column in order
        if any(row.get(column.name) not in (None, "") for row in rows)
        and (not hidden(column, rows) or all(column.name in row for row in rows))
    ]  # fmt: skip
    return Section("Cases", rows, kept, id="cases")


def _numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return not any(isinstance(row.get(name), str | bool) for row in rows)


def _row(case: Case, bound: Roofs | None, effects: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The columns of a case."""
    yield from case["problem"].items()
    yield "device", case["device"]
    yield "operator", case.get("label") or case["algorithm"]
    for key in ("schedule", "implementation", "time_us", "low_us", "high_us", "footprint_bytes"):
        yield key, case.get(key)
    if case["key"] in effects:
        yield "after_us", case["time_us"]
    yield "limiter", case["levels"].get(case.get("limiter"), case.get("limiter"))
    yield "hbm_bytes", (case.get("bytes") or {}).get("hbm")
    if case["work"]:
        yield "rate", case["work"] / case["time_us"] * 1e6
        if bound is not None:
            yield "share", bound.share(_kernel(case, 0))
    for level, intensity in case["arithmetic_intensity"].items():
        yield f"at {case['levels'].get(level, level)}", intensity
    yield "joined", joined(case)


def _kernel(case: Case, index: int) -> Kernel:
    """A case as marks on a roofline."""
    low, high = (case["work"] / case[end] * 1e6 if case.get(end) else None
                 for end in ("high_us", "low_us"))  # fmt: skip
    return Kernel(
        str(index),
        case["device"],
        case["work"] / case["time_us"] * 1e6,
        case["arithmetic_intensity"],
        matrix=bool((case.get("flops") or {}).get("matrix")),
        dtype=case["compute_type"] or "",
        low_flops_per_s=low,
        high_flops_per_s=high,
    )


def _drawable(case: Case) -> bool:
    """Whether a case does arithmetic, and its numbers are some that an axis can hold."""
    values = [case["work"] / case["time_us"], *case["arithmetic_intensity"].values()]
    return len(values) > 1 and all(1 / _MOST < value < _MOST for value in values)


def bounds_of(cases: Sequence[Case]) -> dict[str, Roofs]:
    """The roofs of each device that has some, for the types of its cases."""
    bounds = {}
    for slug in dict.fromkeys(str(case["device"]) for case in cases):
        mine = [case for case in cases if case["device"] == slug]
        try:
            device = load(slug)
            types = dict.fromkeys(str(case["compute_type"]) for case in mine)
            matrix = [name for name in types if name in device.matrix_types]
            crossed = {level for case in mine for level in case["arithmetic_intensity"]}
            levels = [level for level in (*LEVELS, *LINKS)
                      if device.level(level) is not None
                      and (level in LEVELS or level in crossed)]  # fmt: skip
            bounds[slug] = roofs(device, matrix or device.matrix_types[:1], levels)
        except PerfmodelError:
            continue
    return bounds


def roofline(
    cases: Sequence[Case], rows: Section, bounds: Mapping[str, Roofs]
) -> tuple[Figure, str] | None:
    """The rooflines and what is said of them; None if no case has a place on one."""
    kernels = [
        _kernel(case, i)
        for i, case in enumerate(cases)
        if case["device"] in bounds and _drawable(case)
    ]
    drawn = [slug for slug in bounds if any(kernel.device == slug for kernel in kernels)]
    if not kernels:
        return None
    boards, left = [bounds[slug] for slug in drawn[:_DRAWN]], drawn[_DRAWN:]
    sizes = varying(cases)
    script = {
        "table": "cases", "levels": level_names(boards), "choose": True,
        **rows.told(["device", "operator", "schedule", *sizes]),
        "filters": telling(rows.rows, ("operator", "schedule", *sizes)),
    }  # fmt: skip
    figure = roofline_figure(boards, kernels, script)
    return figure, _ABOUT + (f" Without a roofline here: {', '.join(left)}." if left else "")
