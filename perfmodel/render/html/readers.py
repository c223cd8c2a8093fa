"""Readers of the tool's results: a registry by the member that a document has its rows under.

    @reader("serving")
    def serving(document, results, source): ...

A JSON document that no reader knows is shown as a table where one of its members is a list of
objects. CSV is told by its header: predictions, measured runs with predictions, or any table.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from perfmodel.errors import TableError, reason
from perfmodel.plaintext import csv_text
from perfmodel.render.html.results import Results, case_key

Document = Mapping[str, Any]
Reader = Callable[[Document, Results, str], None]

READERS: dict[str, Reader] = {}
"""Readers by the name of the member that they know a document by."""

_LARGEST = 64 * 2**20  # bytes of a file
_NESTED = (
    *("problem", "terms_us", "flops", "bytes", "arithmetic_intensity"),
    *("footprints", "fits_at", "levels", "tile", "known"),
)
"""Members of a prediction whose own members are columns of a CSV."""
_SWEPT = ("limiter", "time_us", "low_us", "high_us", "useful_flops", "footprint_bytes", "waves")
_NO_PROBLEM = ("device", "case", "schedule", "implementation", "occupancy", "reason", *_SWEPT)
_SAYS = "perfmodel report reads JSON and CSV that perfmodel wrote"


def reader(member: str) -> Callable[[Reader], Reader]:
    """Register a reader of documents that have `member`."""

    def register(function: Reader) -> Reader:
        READERS[member] = function
        return function

    return register


def read(path: str, results: Results) -> None:
    """Add what a file holds; raises `TableError` for one that cannot be read or holds nothing."""
    name = Path(path).name
    text = _text(path)
    if name.lower().removesuffix(".gz").endswith(".csv"):
        _csv(text, results, name)
        return
    try:
        document = json.loads(text)
    except ValueError as error:
        raise TableError(f"{path}: not JSON ({error}); {_SAYS}") from None
    if not isinstance(document, dict):
        raise TableError(f"{path}: a JSON document without named members; {_SAYS}")
    add(document, results, name)


def add(document: Document, results: Results, source: str) -> None:
    """Add what a document holds; raises `TableError` where that is nothing."""
    known = [member for member in READERS if member in document]
    try:
        for member in known:
            READERS[member](document, results, source)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise TableError(f"{source}: {known[0]} are not as perfmodel writes them: {said}") from None
    if known:
        return
    tables = {name: rows for name, rows in document.items() if _is_table(rows)}
    if not tables:
        names = ", ".join(sorted(READERS))
        raise TableError(f"{source}: holds none of {names}, and no table; {_SAYS}")
    for name, rows in tables.items():
        results.add_table(f"{name} ({source})", rows)


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) for row in rows)


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise TableError(f"{path}: larger than 64 MiB; choose some of its rows")
        raw = Path(path).read_bytes()
        return (gzip.decompress(raw) if path.endswith(".gz") else raw).decode("utf-8")
    except (OSError, EOFError) as error:
        said = reason(error) if isinstance(error, OSError) else "cut short"
        raise TableError(f"cannot read {path}: {said}") from None
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8 text; {_SAYS}") from None


@reader("predictions")
def predictions(document: Document, results: Results, source: str) -> None:
    """What `perfmodel predict` writes."""
    for row in document["predictions"]:
        _check(row)
        results.add_case(row, source)


@reader("graphs")
def graphs(document: Document, results: Results, source: str) -> None:
    """What `perfmodel graph` writes: nodes as cases, and a table of each graph."""
    for graph in document["graphs"]:
        name, total = f"{graph['graph']} on {graph['device']}", graph["time_us"]
        for node in graph["nodes"]:
            _check(node["prediction"])
            results.add_case(node["prediction"], source, f"{graph['graph']}: {node['node']}")
        results.add_table(name, graph["nodes"])
        shares = sorted(graph["by_operator_us"].items(), key=lambda item: -item[1])
        said = ", ".join(f"{operator} {time / total:.0%}" for operator, time in shares[:3])
        results.sentences.append(f"{name} takes {total / 1e3:.3g} ms: {said}.")


@reader("whatif")
def whatifs(document: Document, results: Results, source: str) -> None:
    """What `perfmodel whatif` writes: effects of cases, which are added where they are new."""
    known = {case_key(case["device"], case["problem"]) for case in results.cases}
    for row in document["whatif"]:
        key = case_key(row["device"], row["problem"])
        if row["quantity"] is not None:
            found = results.effects.setdefault(key, {})
            found[row["quantity"]] = [row["halved_us"], row["after_us"]]
            results.quantities.setdefault(row["quantity"], row["what_if"].removesuffix(" x2"))
        if key not in known:
            known.add(key)
            plain = {name: row[name] for name in ("device", "problem", "time_us", "limiter")}
            results.add_case({"algorithm": "", **plain}, source)
    results.add_table(f"what-ifs ({source})", document["whatif"])


@reader("report")
def compared(document: Document, results: Results, source: str) -> None:
    """What `perfmodel compare` reports; the runs themselves are in its `--output`."""
    results.add_table(f"errors ({source})", document["report"])
    total = document["report"][-1]
    if total.get("median_abs_ln") is not None and total.get("coverage") is not None:
        results.sentences.append(
            f"{source}: {document['rows']} measured runs, a median |ln| of "
            f"{total['median_abs_ln']:.3f}, {total['coverage']:.0%} inside the predicted ranges."
        )


@reader("rows")
def swept(document: Document, results: Results, source: str) -> None:
    """What a question to `perfmodel sweep` answers."""
    if not isinstance(document["rows"], list):  # how many rows a comparison has
        return
    for row in document["rows"]:
        results.add_case(_from_sweep(row, str(document.get("operator", ""))), source)


def _from_sweep(row: Document, operator: str) -> dict[str, Any]:
    """A sweep's flat row as a prediction."""
    prefixes = ("bytes_", "flops_", "tile_")
    problem = {
        name: value
        for name, value in row.items()
        if name not in _NO_PROBLEM and not name.startswith(prefixes)
    }
    flops, moved = (
        {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}
        for prefix in ("flops_", "bytes_")
    )
    work = (flops.get("matrix") or 0) or (flops.get("vector") or 0) + (flops.get("special") or 0)
    return {
        **{name: row.get(name) for name in ("device", "schedule", "implementation", *_SWEPT)},
        "algorithm": operator,
        "problem": problem,
        "flops": flops,
        "bytes": {name: value for name, value in moved.items() if value is not None},
        "arithmetic_intensity": {name: work / value for name, value in moved.items() if value},
    }


def _check(row: Document) -> None:
    for name in ("device", "problem", "time_us"):
        if name not in row:
            raise KeyError(name)


def _csv(text: str, results: Results, source: str) -> None:
    """A table by its header."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows:
        raise TableError(f"{source}: no row below the header, so there is nothing to report")
    header = rows[0].keys()
    values = [{name: _value(cell) for name, cell in row.items() if name} for row in rows]
    if {"predicted_us", "measured_us", "device"} <= header:
        for row in values:
            results.add_run(row)
    elif {"algorithm", "time_us", "device"} <= header:
        for row in values:
            results.add_case(_nested(row), source)
    else:
        results.add_table(source, values)


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """A flat row with the members of predictions as mappings again."""
    found: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        outer = next((key for key in _NESTED if name.startswith(f"{key}_")), None)
        if outer is None:
            found[name] = value
        elif value is not None:
            inside.setdefault(outer, {})[name.removeprefix(f"{outer}_")] = value
    assumed = str(found.get("assumptions") or "")
    return {**found, **inside, "assumptions": [said for said in assumed.split("; ") if said]}


def _value(cell: str | Iterable[str] | None) -> Any:
    """A cell as a number, a truth value, a text, or None where it is empty."""
    if cell is None or cell == "" or not isinstance(cell, str):
        return None
    if cell in ("True", "False"):
        return cell == "True"
    try:
        number = float(cell)
    except ValueError:
        return csv_text(cell)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and "." not in cell and "e" not in cell else number
