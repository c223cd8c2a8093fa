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
    rows = [_row(one, terms=terms) for one in loads]
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
    if any(one.of.devices > 1 for one in loads):
        columns += [_number("a device", "output_tokens_per_s_per_device")]
    columns += [_number(kind, f"token_{kind}_ms") for kind in KINDS if _counts(kind, rows)]
    columns += [] if terms else [text("limiter", "limiter")]
    notes = [*_notes(loads, terms=terms), *lines(refused)]
    title = _said(loads[0], common)
    return Report("loads", rows, columns, title, head=head(refused, "deployment"), notes=notes)


def _counts(kind: str, rows: Sequence[Row]) -> bool:
    """Whether a class is at least a hundredth of the time between tokens in any row."""
    return any(row.get(f"token_{kind}_ms", 0.0) >= 0.01 * row["tpot_ms"] for row in rows)


def _said(first: Served, common: Row) -> str:
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
    found = {
        f"{one.of.engine.name}: no host time is known of it; its kernels' time alone"
        for one in loads
        if one.of.engine.name != "ideal" and not one.of.engine.fitted
    }
    classes = ["classes: milliseconds of a time between tokens"] if terms else []
    statistic = loads[0].statistic
    shown = [] if statistic == "mean" else [f"TTFT: {statistic} of the requests"]
    return ["TTFT and TPOT with their 80 % ranges", *shown, *classes, *sorted(found)]


def size_name(loads: Sequence[Served]) -> str:
    """The name of a load's size."""
    return {"static batch": "batch", "concurrency": "clients", "rate": "requests/s"}.get(
        loads[0].kind, "load"
    )


def _row(one: Served, *, terms: bool) -> Row:
    row = one.as_dict()
    if one.kind == "full":
        row["size"] = None
    by_kind = one.load.token.by_kind(one.place) if terms else {}
    row |= {f"token_{kind}_ms": seconds * 1e3 for kind, seconds in by_kind.items()}
    return row | ({"terms_us": one.terms()} if terms else {})


def _title(of: Sequence[Deployment]) -> str:
    """What is served, with the formats of weights and cache."""
    weights = " or ".join(dict.fromkeys(one.weights for one in of))
    caches = " or ".join(dict.fromkeys(one.cache_type for one in of))
    return f"{of[0].network.name}, weights {weights}, cache {caches}"


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
        lambda one, has, size: (fitting_batch(one, size, has=has), sequence_bytes(one, size)),
    )  # fmt: skip


def fitting_context_report(
    of: Sequence[Deployment], batches: Sequence[int], refused: Refused = ()
) -> Report:
    """Tokens of each sequence that fit, for each batch."""

    def answer(one: Deployment, has: Memory, size: int) -> tuple[int, float]:
        most = fitting_context(one, size, has=has)
        return most, size * sequence_bytes(one, most)

    return _fitting(of, batches, "batch", "context", refused, answer)


def _fitting(
    of: Sequence[Deployment],
    sizes: Sequence[int],
    given: str,
    asked: str,
    refused: Refused,
    answer: Callable[[Deployment, Memory, int], tuple[int, float]],
) -> Report:
    rows: list[Row] = []
    for one in of:
        has = memory(one)
        for size in sizes:
            found, cached = answer(one, has, size)
            rows.append({
                "network": one.network.name, "device": one.device.slug,
                "engine": one.engine.name, "weights": one.weights, "cache": one.cache_type,
                "tensor": one.tensor, "pipeline": one.pipeline,
                given: size, asked: found, "bytes_per_token": token_bytes(one),
                "cache_bytes": cached, "total_bytes": has.total_bytes,
                **{f"{name.replace(' ', '_')}_bytes": v for name, v in has.terms().items()},
            })  # fmt: skip
    apart = [key for key in _FORMS[2:] if len({row[key] for row in rows}) > 1]
    shown = [text(key, key) for key in (*_FORMS[:2], *apart)]
    shown += [_number(name, key) for name, key in _AXES if len({row.get(key) for row in rows}) > 1]
    shown += [
        _number(given, given),
        _number(asked, asked),
        _bytes("cache" if asked == "context" else "each", "cache_bytes"),
    ]
    shown += [
        _bytes("runtime" if name == "context" else name, f"{name.replace(' ', '_')}_bytes")
        for name in memory(of[0]).terms()
    ]
    each = " or ".join(dict.fromkeys(binary(token_bytes(one)) for one in of))
    title = f"{_title(of)}: {each} a token"
    return Report(
        "fits", rows, shown, title, head=head(refused, "deployment"), notes=lines(refused)
    )
