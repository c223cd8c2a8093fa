"""Readers of documents whose rows are cases: predictions, graphs, what-ifs, answers of sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfmodel.errors import TableError
from perfmodel.prediction import columns, counted_work
from perfmodel.render.html import cells
from perfmodel.render.html.results import Results, case_key

Document = Mapping[str, Any]

_SWEPT = ("limiter", *(key for key, (_, member, _) in columns().items() if not member))
_MEMBERS = ("terms_us", "flops", "bytes", "arithmetic_intensity", "levels", "tile", "known")
_NO_PROBLEM = ("device", "case", "schedule", "implementation", "reason", *_SWEPT)


def predictions(document: Document, results: Results, source: str) -> None:
    """Output of `perfmodel predict`."""
    checked(document["predictions"], source)
    for row in document["predictions"]:
        results.add_case(row, source)


def graphs(document: Document, results: Results, source: str) -> None:
    """Output of `perfmodel graph`: nodes as cases, and a table of each graph."""
    for graph in document["graphs"]:
        checked([node["prediction"] for node in graph["nodes"]], source)
        for node in graph["nodes"]:
            results.add_case(node["prediction"], source, f"{graph['graph']}: {node['node']}")
        results.add_table(f"{graph['graph']} on {graph['device']}", graph["nodes"])


def whatifs(document: Document, results: Results, source: str) -> None:
    """Output of `perfmodel whatif`: effects on cases; new cases are added."""
    checked(document["whatif"], source)
    keys = {case_key(case["device"], case["problem"]) for case in results.cases}
    for row in document["whatif"]:
        key = case_key(row["device"], row["problem"])
        if row["quantity"] is not None:
            effects = results.effects.setdefault(key, {})
            effects[row["quantity"]] = [row["halved_us"], row["after_us"]]
            results.quantities.setdefault(row["quantity"], row["what_if"].removesuffix(" x2"))
        if key not in keys:
            keys.add(key)
            members = {name: row[name] for name in ("device", "problem", "time_us", "limiter")}
            results.add_case({"algorithm": "", **members}, source)
    results.add_table(f"what-ifs ({source})", document["whatif"])


def swept(document: Document, results: Results, source: str) -> None:
    """The answer to a query of `perfmodel sweep`."""
    checked(document["rows"], source, needed=("device", "time_us"))
    for row in document["rows"]:
        results.add_case(_prediction(row, str(document.get("operator", ""))), source)


def _prediction(row: Document, operator: str) -> dict[str, Any]:
    """A sweep's flat row as a prediction."""
    prefixes = ("bytes_", "flops_", "tile_")
    problem = {
        name: value
        for name, value in row.items()
        if name not in _NO_PROBLEM and not name.startswith(prefixes)
    }
    flops, traffic = (
        {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}
        for prefix in ("flops_", "bytes_")
    )
    work = counted_work(row.get("useful_flops"), flops)
    return {
        **{name: row.get(name) for name in ("device", "schedule", "implementation", *_SWEPT)},
        "algorithm": operator,
        "problem": problem,
        "flops": flops,
        "bytes": {name: value for name, value in traffic.items() if value is not None},
        "arithmetic_intensity": {name: work / value for name, value in traffic.items() if value},
    }


def checked(
    rows: Sequence[Document], source: str, needed: Sequence[str] = ("device", "problem", "time_us")
) -> None:
    """Raise `TableError` for a row that is no prediction: row and column are named."""
    for name in needed:
        if not all(name in row for row in rows):
            raise KeyError(name)
    cells.check(rows, source, needed=needed)
    for i, row in enumerate(rows, start=1):
        for name in (*_MEMBERS, "problem"):
            if not isinstance(row.get(name) or {}, Mapping):
                raise TableError(f"{source}: row {i}, {name}: no named numbers; write it anew")
        lines = row.get("assumptions") or []
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise TableError(f"{source}: row {i}, assumptions: no list of texts; write it anew")
