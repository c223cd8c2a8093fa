"""The kinds of results that the tool writes: what names their rows, and their charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.columns import Row
from perfmodel.networks.flops import USUAL
from perfmodel.prediction import columns, counted_work
from perfmodel.quantities import kind_of
from perfmodel.render.dots import Dots
from perfmodel.render.html.kind import KINDS, Document, Kind, Stacks, own_rows

__all__ = ["KINDS", "RUNS"]

RUNS = "runs"
"""The kind of measured runs of single operators."""

_SETTING = ("stack", "dtype", "pass", "batch", "seq", "past")
_IDENTIFIED = {
    "shape": "predicted from recorded shapes",
    "order": "predicted by the order of a graph",
    "name": "known by name alone",
    "unknown": "not known",
}
"""How a kernel of a profile was identified, in words."""
_FILTERS = (
    *("metric", "device", "op", "engine", "stack", "network", "library", "collective", "load"),
    *("implementation", "direction", "system", "ranks", "verdict", "source"),
)
"""Columns that runs can be filtered by."""
_LEFT_OUT = (
    r"^(notes|row|floor_us|predicted_\w+_bytes|hidden|layers|heads|kv_heads|head_dim|inner"
    r"|vocabulary|gated|tied|\w*experts\w*|expert_inner|dense_layers|mla_\w+|assumed)$"
)
"""Columns of runs that the page omits; a network's layers follow from its name."""


_SWEPT = ("limiter", *(key for key, (_, member, _) in columns().items() if not member))
_NESTED = (
    *("problem", "terms_us", "flops", "bytes", "arithmetic_intensity"),
    *("footprints", "fits_at", "levels", "tile", "known"),
)
"""Members of a prediction whose own members are columns of a CSV."""


def _predictions(document: Document) -> Iterator[dict[str, Any]]:
    """Predictions as they are, or of a CSV with their members nested again."""
    for row in document.rows:
        members: dict[str, Any] = {"problem": {}}
        for name, value in row.items():
            group = next((key for key in _NESTED if name.startswith(f"{key}_")), None)
            if group is None:
                members[name] = value
            elif value is not None:
                members.setdefault(group, {})[name.removeprefix(f"{group}_")] = value
        lines = members.get("assumptions")
        if isinstance(lines, str):
            members["assumptions"] = [line for line in lines.split("; ") if line]
        yield members


def _points(document: Document) -> Iterator[dict[str, Any]]:
    """A sweep's flat rows as predictions."""
    own = {"device", "case", "schedule", "implementation", "reason", *_SWEPT}
    for row in document.rows:
        flops, traffic = (
            {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}
            for prefix in ("flops_", "bytes_")
        )
        yield {
            **{name: row.get(name) for name in ("device", "schedule", "implementation", *_SWEPT)},
            "algorithm": str(document.head.get("operator", "")),
            "problem": {
                name: row[name]
                for name in row
                if name not in own and not name.startswith(("flops_", "bytes_", "tile_"))
            },
            "flops": flops,
            "bytes": {name: value for name, value in traffic.items() if value is not None},
        }


def _changed(document: Document) -> Iterator[dict[str, Any]]:
    """The cases of what-ifs."""
    for row in document.rows:
        yield {"algorithm": "", **{k: row[k] for k in ("device", "problem", "time_us", "limiter")}}


def _tree_rows(document: Document) -> Iterator[dict[str, Any]]:
    """The kernels of networks, over all their layers, and of graphs; the host's time, and the
    total."""
    for tree in document.rows:
        settings = ("network", "graph", "device", *_SETTING)
        common = {key: tree[key] for key in settings if key in tree}
        total = tree["time_us"]
        rest = total
        for kernel in tree["kernels"]:
            layers = kernel.get("layers", 1)
            times = {key: layers * kernel[key] for key in ("time_us", "low_us", "high_us")}
            rest -= times["time_us"]
            place = {} if "pass" not in kernel else {
                "layer": f"{kernel['segment']}, {kernel['pass']}", "direction": kernel["pass"],
                "layers": layers,
            }  # fmt: skip
            yield {
                **common, "kernel": kernel["kernel"], "class": kernel["class"], **times,
                "share": times["time_us"] / total, **place, "limiter": kernel["limiter"],
                "operator": kernel["operator"],
                **{f"{unit}_flops": layers * count
                   for unit, count in kernel.get("flops", {}).items() if unit == "matrix"},
                **{f"{level}_bytes": layers * size
                   for level, size in kernel.get("bytes", {}).items() if level == "hbm"},
                **{key: kernel[key] for key in ("live_bytes", "scratch_bytes") if key in kernel},
            }  # fmt: skip
        names = ("kernel", "class", *(("layer", "direction") if "network" in tree else ()))
        if rest > 0:
            host = dict.fromkeys((*names, "limiter", "operator"), "host")
            yield {**common, **host, "time_us": rest, "share": rest / total}
        ends = {key: tree[key] for key in ("time_us", "low_us", "high_us")}
        yield {**common, **dict.fromkeys(names, "all"), **ends, "share": 1.0}


def _tree_cases(document: Document) -> Iterator[dict[str, Any]]:
    """A case for each kernel of networks and graphs that has arithmetic and takes a twentieth of
    the time or more."""
    for tree in document.rows:
        name = tree.get("network") or tree.get("graph")
        for kernel in tree["kernels"]:
            if kernel.get("layers", 1) * kernel["time_us"] < 0.05 * tree["time_us"]:
                continue
            words = f"{name}: {kernel['kernel']}", kernel.get("pass")
            own = kernel.get("prediction") or {
                "device": str(tree["device"]), "algorithm": kernel["operator"],
                "problem": {key: tree[key] for key in _SETTING if key in tree},
                **{key: kernel.get(key)
                   for key in ("time_us", "limiter", "flops", "useful_flops", "bytes")},
            }  # fmt: skip
            if own.get("bytes") and counted_work(own.get("useful_flops"), own["flops"]):
                yield {**own, "label": ", ".join(filter(None, words)), "part_of": name}


def _loads(document: Document) -> Iterator[dict[str, Any]]:
    """Loads with the rate that one user sees."""
    for row in own_rows(document):
        yield {**row, "tokens_per_s_per_user": 1e3 / row["tpot_ms"] if row["tpot_ms"] else None}


def _kernels(document: Document) -> Iterator[dict[str, Any]]:
    """A profile's kernels, with words for how they were identified."""
    for row in own_rows(document):
        yield {**row, "known_by": _IDENTIFIED.get(row["known_by"], row["known_by"])}


def _runs(what: str, title: str, ident: str, keys: Sequence[str], columns: Sequence[str]) -> Kind:
    """Measured runs with their predictions: a mark for each, errors beside the noise.

    `columns` are those of the measured and the predicted value, and of the ends of its range.
    """
    shared = ("measured", "predicted", "low", "high")

    def rows(document: Document) -> Iterator[dict[str, Any]]:
        for row in document.rows:
            values = dict(zip(shared, map(row.get, columns), strict=True))
            rest = {key: value for key, value in row.items() if key not in columns}
            run = {**rest, **values, "unit": kind_of(str(row.get("metric") or columns[0]))}
            if run["measured"] and run["predicted"]:
                run["ratio"] = run["predicted"] / run["measured"]
            yield run

    return Kind(
        title,
        keys,
        charts=[
            Dots(title, ["measured"], ["predicted"],
                 ["op", "network", "collective", "engine", "implementation", "device"],
                 filters=_FILTERS, compared=True, unit="unit", apart="metric"),
        ],
        first=["device", "op", "engine", "network", "stack", "collective", "ranks", "bytes",
               "metric", "measured", "predicted", "ratio", "low", "high"],
        left_out=_LEFT_OUT,
        headers={"ratio": "predicted / measured"},
        rows=rows,
        sentences=lambda each: _errors(each, what),
        late=True,
        id=ident,
    )  # fmt: skip


def _errors(rows: Sequence[Row], what: str) -> Iterator[str]:
    """How far runs are from their predictions, and how far repeated runs scatter."""
    noun = what.removesuffix("s") if len(rows) == 1 else what
    scored = [row for row in rows if row.get("ratio")]
    if not scored:
        yield f"{len(rows):,} {noun}, none of which could be predicted."
        return
    off = float(np.median([abs(row["ratio"] - 1) for row in scored]))
    ranged = [row for row in scored if None not in (row.get("low"), row.get("high"))]
    inside = sum(row["low"] <= row["measured"] <= row["high"] for row in ranged)
    coverage = f", {inside / len(ranged):.0%} inside the predicted range" if ranged else ""
    missing = f"; {len(rows) - len(scored)} could not be predicted" * (len(scored) < len(rows))
    error = f"predictions are off by {off:.1%} in the median"
    yield f"{len(rows):,} {noun}: {error}{coverage}{missing}."
    noisy = [row for row in scored if row.get("noise_ln")]
    if noisy:
        noise = float(np.median([row["noise_ln"] for row in noisy]))
        errors = [abs(np.log(row["ratio"])) for row in noisy]
        within = sum(error <= row["noise_ln"] for error, row in zip(errors, noisy, strict=True))
        yield (
            f"Repeated measurements are known of {len(noisy):,} of the {noun}: they scatter by "
            f"{noise:.1%}, and predictions are off by {float(np.median(errors)):.1%}; {within:,} "
            f"of {len(noisy):,} errors are within the noise."
        )


_LINES = Stacks("Time", "time_us", pieces=("class", "layer", "operator", "kernel", "line"),
                range="time_us")  # fmt: skip
_PLAN = ("tensor", "pipeline", "chunks", "data", "context", "expert", "zero", "micro_batch")
_DEPLOYED = (
    *("network", "device", "engine", "weights", "cache", "devices"),
    *("tensor", "pipeline", "expert", "data", "load", "isl", "osl"),
)
_RATE = "output_tokens_per_s_per_device"
_OF_A_TREE = "^(limiters|by_class|footprints|peak|fits_at|launches|useful_flops|network|pass)"
"""What a row of a tree has beside its settings, time and limiter."""
_SERIES = ("collective", "library", "system", "device", "problem_ranks", "problem_dtype")
_MFU = f"mfu_{USUAL}"

KINDS |= {
    "predictions": Kind(
        "Predictions", ("device", "algorithm", "time_us"), needed=("device", "time_us"),
        cases=_predictions, sectioned=False,
    ),
    "rows": Kind(
        "Points of a sweep", ("device", "case", "time_us", "reason"), needed=("device", "time_us"),
        cases=_points, sectioned=False,
    ),
    "whatif": Kind(
        "What-ifs", ("device", "problem", "what_if", "after_us"),
        needed=("device", "problem", "time_us"), cases=_changed, effects=True, late=True,
    ),
    "graphs": Kind(
        "Graphs: where the time goes",
        ("graph", "device", "kernels", "time_us"),
        named=("graph", "device"),
        best="-time_us",
        charts=[replace(_LINES, pieces=("operator", "kernel"))],
        first=("kernel", "operator", "time_us", "share"),
        left_out="^(direction|layer|layers|class)$",
        headers={"hbm_bytes": "memory traffic"},
        rows=_tree_rows,
        cases=_tree_cases,
    ),
    "networks": Kind(
        "Networks: where the time goes",
        ("by_class_us", "kernels"),
        named=("network", "device", *_SETTING),
        best="-time_us",
        charts=[replace(_LINES, pieces=("class", "layer", "kernel", "limiter", "direction"))],
        first=("kernel", *_SETTING, "class", "time_us", "share", "network", "device", "layer"),
        left_out="^direction$",
        headers={"hbm_bytes": "memory traffic"},
        rows=_tree_rows,
        cases=_tree_cases,
    ),
    "network lines": Kind(
        "Networks: where the time goes",
        ("network", "time_us", "share", "hbm_bytes", "intensity"),
        named=("network", "device"),
        best="-time_us",
        charts=[_LINES],
    ),
    "trace": Kind(
        "Traced modules: where the time goes",
        ("line", "aten", "time_us", "share"),
        named=("module", "device"),
        best="-time_us",
        charts=[_LINES],
        head=("module",),
    ),
    "steps": Kind(
        "Training steps",
        ("step_us", "tokens_per_s_per_device", "bubble_us"),
        named=("network", "device", "devices", *_PLAN, "recompute", "optimiser", "schedule",
               "stack", "dtype", "seq", "global_batch"),
        label="plan",
        best="tokens_per_s_per_device",
        charts=[
            Dots("Plans by memory and time", ["memory_total_bytes"],
                 ["tokens_per_s_per_device", "step_us", _MFU], ["plan"], log="",
                 filters=("recompute", "devices", *_PLAN, "network", "device"),
                 limits={"memory_total_bytes": "capacity_bytes"}, fits="fits", labelled="plan",
                 best={"tokens_per_s_per_device": 1, "step_us": -1, _MFU: 1}),
            Stacks("Time of a step by class", "by_class_us_(.+)", range="step_us", noted=(_MFU,)),
            Stacks("Memory of the fullest device by kind", "memory_bytes_(.+)", "binary",
                   limit="capacity_bytes"),
        ],
        left_out=r"^(by_class|known|memory_bytes_)|^(loss|ends|training)$",
        headers={"step_us": "time of a step",
                 "memory_total_bytes": "memory of the fullest device"},
    ),
    "step lines": Kind(
        "Training step",
        ("part", "what", "time_us", "share", "bytes"),
        named=("file",),
        charts=[
            Stacks("Time of a step by class", "time_us", pieces=("what",), whole="step"),
            Stacks("Memory of the fullest device by kind", "bytes", "binary", pieces=("what",),
                   whole="device"),
        ],
        head=("file",),
        best="-time_us",
    ),
    "loads": Kind(
        "Served networks",
        ("ttft_ms", "tpot_ms", _RATE),
        named=_DEPLOYED,
        label="system",
        best=_RATE,
        charts=[
            Dots("Throughput against interactivity", ["tokens_per_s_per_user"],
                 [_RATE, "output_tokens_per_s"], ["system", "size"], log="y",
                 filters=("system", *_DEPLOYED), joined=["system"], labelled="size"),
            Dots("Over the load", ["size", "resident"],
                 ["tpot_ms", "ttft_ms", "output_tokens_per_s", "e2e_ms"], ["system", "size"],
                 filters=("system", *_DEPLOYED), joined=["system"]),
            Stacks("Time between tokens by class", "token_(.+)_ms", "ms", range="tpot_ms",
                   noted=("size",)),
        ],
        left_out="^terms_us|^known",
        headers={"size": "load"},
        rows=_loads,
    ),
    "fits": Kind(
        "What fits",
        ("bytes_per_token", "cache_room_bytes", "total_bytes"),
        named=(*_DEPLOYED, "tokens", "batch"),
        best="cache_room_bytes",
        charts=[
            Stacks("Memory by what holds it",
                   "(weights|context|exchange_buffers|graphs|activations|cache_room)_bytes",
                   "binary", limit="total_bytes",
                   noted=("sequences", "tokens", "batch", "context")),
        ],
    ),
    "kernels": Kind(
        "Profile",
        ("known_by", "measured_us", "lost_us"),
        named=("tool", "device"),
        best="lost_us",
        charts=[
            Stacks("Coverage: how the time is known", "measured_us", pieces=("known_by",)),
            Stacks("Time lost against the model's", "(predicted|lost)_us", largest="lost_us",
                   ordered=True, noted=("ratio",), labelled=("operator", "problem", "calls")),
        ],
        first=("operator", "problem", "kernel"),
        head=("tool", "device"),
        rows=_kernels,
    ),
    RUNS: _runs("measured runs", "Predicted against measured", "scatter",
                ("measured_us", "predicted_us", "device"),
                ("measured_us", "predicted_us", "low_us", "high_us")),
    "training runs": _runs("training runs", "Predicted against measured: training",
                           "scatter-training", ("metric", "value", "predicted", "global_batch"),
                           ("value", "predicted", "low", "high")),
    "serving runs": _runs("serving runs", "Predicted against measured: serving",
                          "scatter-serving", ("metric", "value", "predicted", "engine", "load"),
                          ("value", "predicted", "low", "high")),
    "collective runs": _runs("collective runs", "Predicted against measured: collectives",
                             "scatter-collective",
                             ("latency_us", "predicted", "collective", "ranks"),
                             ("latency_us", "predicted", "low", "high")),
    "collectives": Kind(
        "Collectives",
        ("collective", "bus_gb_per_s", "protocol", "time_us", "device"),
        named=(*_SERIES, "problem_bytes"),
        best="bus_gb_per_s",
        charts=[
            Dots("Time and bandwidth over the size", ["problem_bytes", "problem_ranks"],
                 ["bus_gb_per_s", "time_us"], [*_SERIES, "problem_bytes"],
                 filters=[*_SERIES, "algorithm", "protocol", "limiter"],
                 joined=[*_SERIES, "problem_bytes"]),
        ],
        first=[*_SERIES, "problem_bytes"],
        left_out="^known",
        headers={"problem_bytes": "size", "problem_ranks": "ranks", "problem_dtype": "type"},
    ),
    "ridges": Kind(
        "Links as roofs",
        ("ridge_flop_per_byte", "parallelism", "threshold"),
        named=("system", "parallelism", "link"),
        best="-threshold",
    ),
    "formats": Kind(
        "Weight formats",
        ("format", "bits"),
        named=("device", "batch", "format"),
        best="-time_us",
        charts=[
            Dots("A decoding step by format", ["weight_bytes", "batch", "bits"],
                 ["tokens_per_s", "time_us", "gain"], ["format", "device", "batch"], log="y",
                 filters=["format", "device", "batch"], fits="fits"),
        ],
        left_out=_OF_A_TREE,
    ),
    "policies": Kind(
        "Offload policies",
        ("prefill_us", "decode_us", "decode_limiter"),
        named=("device", "blocks", "part", "weights_device", "cache_device"),
        best="tokens_per_s",
        charts=[
            Stacks("Time", "(prefill|decode)_us", ordered=True, noted=("tokens_per_s",)),
            Stacks("Memory by place", "footprints_(hbm|host|disk)", "binary", ordered=True,
                   noted=("tokens_per_s",)),
        ],
        left_out=_OF_A_TREE,
    ),
    "recompute": Kind(
        "Caches computed anew",
        ("split", "sent_us", "time_share"),
        named=("device", "batch", "context"),
        best="-time_share",
        charts=[
            Dots("Over the context", ["context", "batch"], ["time_us", "sent_us"],
                 ["device", "context", "batch"], filters=["device", "batch"],
                 joined=["device", "context", "batch"]),
        ],
        left_out=_OF_A_TREE,
    ),
    "streaming": Kind(
        "Streamed weights",
        ("link_us", "work_us", "hiding_batch"),
        named=("device", "batch", "context"),
        best="tokens_per_s",
        charts=[
            Dots("Over the batch", ["batch", "context"], ["tokens_per_s", "time_us"],
                 ["device", "batch", "context"], filters=["device", "context"],
                 joined=["device", "batch", "context"]),
        ],
        left_out=_OF_A_TREE,
    ),
    "layers": Kind(
        "Layers on the device",
        ("on_device", "on_host", "time_us"),
        named=("device", "on_device", "on_host"),
        best="tokens_per_s",
        charts=[
            Dots("Over the layers on the device", ["on_device"], ["time_us", "tokens_per_s"],
                 ["device", "on_device"], log="", filters=["device"],
                 joined=["device", "on_device"], fits="fits"),
        ],
        left_out=_OF_A_TREE,
    ),
    "machines": Kind(
        "Devices that hold the network",
        ("joules_per_token", "streamed_us", "hiding_batch"),
        named=("devices", "device"),
        best="-time_us",
        charts=[Stacks("A decoding step", "(time)_us", range="time_us")],
        left_out=_OF_A_TREE,
    ),
    "placements": Kind(
        "Embedding tables",
        ("device", "devices", "placement", "batch"),
        named=("device", "devices", "placement", "batch"),
        best="samples_per_s",
        charts=[Stacks("A batch", "(time|dense)_us", ordered=True, noted=("samples_per_s",))],
        left_out=_OF_A_TREE,
    ),
}  # fmt: skip
