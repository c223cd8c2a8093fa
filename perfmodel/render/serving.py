"""Tables of served networks: loads, and what fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perfmodel.render.refused import Refused, head, lines
from perfmodel.render.report import Column, Report, Row, text
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.memory import (
    Memory,
    fitting_batch,
    fitting_context,
    memory,
    sequence_bytes,
    token_bytes,
)
from perfmodel.serving.served import Served
from perfmodel.units import binary

_AXES = (("tp", "tensor"), ("pp", "pipeline"), ("ep", "expert"), ("dp", "data"))
_TOKENS = (("isl", "isl"), ("osl", "osl"), ("cached", "cached"))
_FORMS = ("device", "engine", "weights", "cache")
KINDS = ("matmul", "attention", "norm", "pointwise", "embedding", "communication", "host")


def report(loads: Sequence[Served], refused: Refused = (), *, terms: bool) -> Report:
    """One row for each load; with `terms` the time between tokens by class.

    Values that all rows share are in the title. Classes below a hundredth of the time have no
    column.
    """
    rows = [_row(load, terms=terms) for load in loads]
    common = {key: value for key, value in rows[0].items() if all(r[key] == value for r in rows)}
    columns = [text(key, key) for key in _FORMS if key not in common]
    columns += [_number(name, key) for name, key in (*_AXES, *_TOKENS) if key not in common]
    columns += [_number(size_name(loads), "size")]
    if any(row["resident"] != row["size"] for row in rows):
        columns += [_number("resident", "resident")]
    columns += [
        _ranged("TTFT ms", "ttft_ms"), _ranged("TPOT ms", "tpot_ms"),
        _number("tokens/s", "output_tokens_per_s"),
    ]  # fmt: skip
    if any(load.of.devices > 1 for load in loads):
        columns += [_number("a device", "output_tokens_per_s_per_device")]
    columns += [_number(kind, f"token_{kind}_ms") for kind in KINDS if _counts(kind, rows)]
    columns += [] if terms else [text("limiter", "limiter")]
    notes = [*_notes(loads, terms=terms), *lines(refused)]
    title = _load_title(loads[0], common)
    return Report("loads", rows, columns, title, head=head(refused, "deployment"), notes=notes)


def _counts(kind: str, rows: Sequence[Row]) -> bool:
    """Whether a class is at least a hundredth of the time between tokens in any row."""
    return any(row.get(f"token_{kind}_ms", 0.0) >= 0.01 * row["tpot_ms"] for row in rows)


def _load_title(first: Served, common: Row) -> str:
    """The network, and the values that all rows share."""
    words = [first.of.network.name]
    words += [f"{key} {common[key]}" for key in ("weights", "cache") if key in common]
    words += [str(common[key]) for key in ("device", "engine") if key in common]
    words += [
        f"{name} {common[key]}"
        for name, key in (*_AXES, *_TOKENS)
        if key in common and (common[key] > 1 or key in ("isl", "osl"))
    ]
    words += ["overlap"] if common.get("overlap") else []
    return ", ".join(words)


def _notes(loads: Sequence[Served], *, terms: bool) -> list[str]:
    """Notes on how to read the numbers."""
    engines = {
        f"{load.of.engine.name}: no host time is known of it; its kernels' time alone"
        for load in loads
        if load.of.engine.name != "ideal" and not load.of.engine.fitted
    }
    classes = ["classes: milliseconds of a time between tokens"] if terms else []
    statistic = loads[0].statistic
    ttft = [] if statistic == "mean" else [f"TTFT: {statistic} of the requests"]
    return ["TTFT and TPOT with their 80 % ranges", *ttft, *classes, *sorted(engines)]


def size_name(loads: Sequence[Served]) -> str:
    """The name of a load's size."""
    return {"static batch": "batch", "concurrency": "clients", "rate": "requests/s"}.get(
        loads[0].kind, "load"
    )


def _row(load: Served, *, terms: bool) -> Row:
    row = load.as_dict()
    if load.kind == "full":
        row["size"] = None
    by_kind = load.load.token.by_kind(load.place) if terms else {}
    row |= {f"token_{kind}_ms": seconds * 1e3 for kind, seconds in by_kind.items()}
    return row | ({"terms_us": load.terms()} if terms else {})


def _network_title(deployments: Sequence[Deployment]) -> str:
    """What is served, with the formats of weights and cache."""
    weights = " or ".join(dict.fromkeys(plan.weights for plan in deployments))
    caches = " or ".join(dict.fromkeys(plan.cache_type for plan in deployments))
    return f"{deployments[0].network.name}, weights {weights}, cache {caches}"


def _number(header: str, key: str) -> Column:
    return Column(header, lambda row: row.get(key), _short)


def _ranged(header: str, key: str) -> Column:
    def show(row: Row) -> str:
        low, high = (_short(row[f"{end}_{key}"]) for end in ("low", "high"))
        return f"{_short(row[key])} ({low}-{high})"

    return Column(header, lambda row: row, show)


def _short(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def _bytes(header: str, key: str) -> Column:
    return Column(header, lambda row: row.get(key), binary)


def fitting_batch_report(
    of: Sequence[Deployment], tokens: Sequence[int], refused: Refused = ()
) -> Report:
    """Sequences of each length that fit."""
    return _fitting(
        of, tokens, "tokens", "sequences", refused,
        lambda d, has, size: (fitting_batch(d, size, has=has), sequence_bytes(d, size)),
    )  # fmt: skip


def fitting_context_report(
    of: Sequence[Deployment], batches: Sequence[int], refused: Refused = ()
) -> Report:
    """Tokens of each sequence that fit, for each batch."""

    def answer(plan: Deployment, has: Memory, size: int) -> tuple[int, float]:
        most = fitting_context(plan, size, has=has)
        return most, size * sequence_bytes(plan, most)

    return _fitting(of, batches, "batch", "context", refused, answer)


def _fitting(
    deployments: Sequence[Deployment],
    sizes: Sequence[int],
    axis: str,
    quantity: str,
    refused: Refused,
    answer: Callable[[Deployment, Memory, int], tuple[int, float]],
) -> Report:
    rows: list[Row] = []
    for plan in deployments:
        has = memory(plan)
        for size in sizes:
            most, cached = answer(plan, has, size)
            rows.append({
                "network": plan.network.name, "device": plan.device.slug,
                "engine": plan.engine.name, "weights": plan.weights, "cache": plan.cache_type,
                "tensor": plan.tensor, "pipeline": plan.pipeline,
                axis: size, quantity: most, "bytes_per_token": token_bytes(plan),
                "cache_bytes": cached, "total_bytes": has.total_bytes,
                **{f"{name.replace(' ', '_')}_bytes": v for name, v in has.terms().items()},
            })  # fmt: skip
    varying = [key for key in _FORMS[2:] if len({row[key] for row in rows}) > 1]
    fields = [text(key, key) for key in (*_FORMS[:2], *varying)]
    fields += [_number(name, key) for name, key in _AXES if len({row.get(key) for row in rows}) > 1]
    fields += [
        _number(axis, axis),
        _number(quantity, quantity),
        _bytes("cache" if quantity == "context" else "each", "cache_bytes"),
    ]
    fields += [
        _bytes("runtime" if name == "context" else name, f"{name.replace(' ', '_')}_bytes")
        for name in memory(deployments[0]).terms()
    ]
    per_token = " or ".join(dict.fromkeys(binary(token_bytes(plan)) for plan in deployments))
    title = f"{_network_title(deployments)}: {per_token} a token"
    return Report(
        "fits", rows, fields, title, head=head(refused, "deployment"), notes=lines(refused)
    )
