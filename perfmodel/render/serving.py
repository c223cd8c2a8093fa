"""Tables of served networks: loads, what fits, drafts, separate pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from perfmodel.errors import ProblemError
from perfmodel.render.refused import Refused, head, lines
from perfmodel.render.report import (
    Column,
    Report,
    Row,
    binary,
    integer,
    keyed,
    micros,
    percent,
    quantity,
    ratio,
    several,
    text,
    times,
)
from perfmodel.serving.cachememory import (
    Memory,
    fitting_batch,
    fitting_context,
    memory,
    sequence_bytes,
    token_bytes,
)
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import Pools
from perfmodel.serving.queue.outcome import STATISTICS, Outcome
from perfmodel.serving.search import Demand, Miss, Option
from perfmodel.serving.served import Served
from perfmodel.serving.speculative import Speculation
from perfmodel.serving.targets import Targets

KINDS = ("matmul", "attention", "norm", "pointwise", "embedding", "communication", "host")
"""Classes of operations that the time between tokens is shown by."""
_FORMS = ("device", "engine", "weights", "cache")
_NUMBERS = {
    "tp": "tensor", "pp": "pipeline", "ep": "expert", "dp": "data", "isl": "isl", "osl": "osl",
    "cached": "cached", "past": "past", "accept": "accept",
}  # fmt: skip
"""Numbers that a row may have, with their names in a table."""
_ABOVE_ONE = ("tp", "pp", "ep", "dp", "cached")
"""Those that a title leaves out where they are 1 or less."""

_SIZES = {"static batch": "batch", "concurrency": "clients", "rate": "requests/s"}
"""Names of the size of each kind of load."""


def report(loads: Sequence[Served], refused: Refused = (), *, terms: bool) -> Report:
    """One row for each load; with `terms` the time between tokens by class.

    Values that all rows share are in the title. Classes below a hundredth of the time have no
    column.
    """
    rows = [_row(load, terms=terms) for load in loads]
    columns = [*_varying(rows), _short("size", size_name(loads))]
    if any(row["resident"] != row["size"] for row in rows):
        columns += [_short("resident")]
    columns += [
        _ranged("TTFT ms", "ttft_ms"),
        _ranged("TPOT ms", "tpot_ms"),
        _short("output_tokens_per_s", "tokens/s"),
    ]
    if any(load.of.devices > 1 for load in loads):
        columns += [_short("output_tokens_per_s_per_device", "a device")]
    for kind in KINDS:
        key = f"token_{kind}_ms"
        if any(row.get(key, 0.0) >= 0.01 * row["tpot_ms"] for row in rows):
            columns += [_short(key, kind)]
    columns += [] if terms else [text("limiter", "limiter")]
    title = f"{_title(rows)}{', overlap' if all(row['overlap'] for row in rows) else ''}"
    notes = _notes(loads, terms=terms)
    return _report("loads", rows, columns, title, notes, refused)


def _row(load: Served, *, terms: bool) -> Row:
    row = load.as_dict()
    if load.kind == "full":
        row["size"] = None
    if not terms:
        return row
    kinds = load.load.token.by_kind(load.place)
    milliseconds = {f"token_{kind}_ms": seconds * 1e3 for kind, seconds in kinds.items()}
    return {**row, **milliseconds, "terms_us": load.terms()}


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
    return _SIZES.get(loads[0].kind, "load")


def fitting_batches(
    deployments: Sequence[Deployment], tokens: Sequence[int], refused: Refused
) -> Report:
    """Sequences of each length that fit."""

    def answer(plan: Deployment, has: Memory, size: int) -> tuple[int, float]:
        return fitting_batch(plan, size, has=has), sequence_bytes(plan, size)

    return _fitting(deployments, tokens, ("tokens", "sequences", "each"), refused, answer)


def fitting_contexts(
    deployments: Sequence[Deployment], batches: Sequence[int], refused: Refused
) -> Report:
    """Tokens of each sequence that fit, for each batch."""

    def answer(plan: Deployment, has: Memory, size: int) -> tuple[int, float]:
        most = fitting_context(plan, size, has=has)
        return most, size * sequence_bytes(plan, most)

    return _fitting(deployments, batches, ("batch", "context", "cache"), refused, answer)


def _fitting(
    deployments: Sequence[Deployment],
    sizes: Sequence[int],
    names: tuple[str, str, str],
    refused: Refused,
    answer: Callable[[Deployment, Memory, int], tuple[int, float]],
) -> Report:
    axis, most, cache = names
    rows = []
    for plan in deployments:
        has = memory(plan)
        terms = {f"{name.replace(' ', '_')}_bytes": size for name, size in has.terms().items()}
        identity = _identity(plan)
        del identity["expert"], identity["data"]
        for size in sizes:
            number, cached = answer(plan, has, size)
            row = {
                **identity, axis: size, most: number, "bytes_per_token": token_bytes(plan),
                "cache_bytes": cached, "total_bytes": has.total_bytes, **terms,
            }  # fmt: skip
            rows.append(row)
    columns = [text(key, key) for key in _FORMS[:2]]
    columns += [each for each in _varying(rows) if each.header not in _FORMS[:2]]
    columns += [_short(axis), _short(most), keyed(cache, "cache_bytes", binary)]
    for name in memory(deployments[0]).terms():
        header = "runtime" if name == "context" else name
        columns.append(keyed(header, f"{name.replace(' ', '_')}_bytes", binary))
    weights, caches, tokens = (
        " or ".join(dict.fromkeys(texts))
        for texts in (
            (plan.weights for plan in deployments),
            (plan.cache_type for plan in deployments),
            (binary(token_bytes(plan)) for plan in deployments),
        )
    )
    network = deployments[0].network.name
    title = f"{network}, weights {weights}, cache {caches}: {tokens} a token"
    return _report("fits", rows, columns, title, [], refused)


def drafts(
    answers: Sequence[tuple[Deployment, int, float, Speculation]], draft: str, refused: Refused
) -> Report:
    """A line a batch, length and chance: the number of drafts that gains most, and its gain."""
    rows: list[Row] = [
        {
            **_identity(plan), "draft": draft, "batch": gain.batch, "past": past, "accept": chance,
            "drafts": gain.gamma, "tokens_per_pass": gain.tokens, "draft_step_share": gain.draft,
            "verify_steps": gain.verify, "tpot_us": _tpot(gain) * gain.speedup * 1e6,
            "drafted_tpot_us": _tpot(gain) * 1e6, "speedup": gain.speedup,
        }
        for plan, past, chance, gain in answers
    ]  # fmt: skip
    columns = [
        *_varying(rows),
        integer("batch", "batch"),
        integer("drafts", "drafts"),
        keyed("tokens a pass", "tokens_per_pass", lambda value: f"{value:.2f}"),
        percent("draft's step", "draft_step_share"),
        keyed("pass", "verify_steps", lambda value: f"{value:.2f} steps"),
        keyed("TPOT", "tpot_us", micros),
        keyed("with drafts", "drafted_tpot_us", micros),
        keyed("speed-up", "speedup", times),
    ]
    note = (
        "accept: the chance that a draft's token is accepted, which depends on networks and texts"
    )
    return _report("drafts", rows, columns, f"{_title(rows)}, draft {draft}", [note], refused)


def _tpot(gain: Speculation) -> float:
    """Seconds a token with drafts; without any, of a plain step."""
    return gain.seconds / gain.tokens if gain.gamma else gain.step_seconds


def pools(answers: Sequence[tuple[Deployment, int, int, Pools]], refused: Refused) -> Report:
    """A line a deployment and length: how devices are shared out, and what that gives."""
    rows: list[Row] = [
        {
            **_identity(plan), "isl": isl, "osl": osl, "prefill_share": split.prefill_share,
            "ttft_us": split.ttft_seconds * 1e6, "tpot_us": split.tpot_seconds * 1e6,
            "resident": split.resident, "transfer_us": split.transfer_seconds * 1e6,
            "requests_per_s": split.requests_per_s,
            "output_tokens_per_s_per_device": split.output_tokens_per_s_per_device,
        }
        for plan, isl, osl, split in answers
    ]  # fmt: skip
    columns = [
        *_varying(rows),
        percent("for prompts", "prefill_share"),
        keyed("TTFT", "ttft_us", micros),
        keyed("cache's way", "transfer_us", micros),
        keyed("TPOT", "tpot_us", micros),
        integer("resident", "resident"),
        keyed("tokens/s a device", "output_tokens_per_s_per_device", quantity("")),
    ]
    note = (
        "for prompts: share of the copies that only run prompts, with both pools busy; TTFT: of a "
        "prompt alone; TPOT: of a full copy that only decodes"
    )
    return _report("pools", rows, columns, _title(rows), [note], refused)


def simulated(
    answers: Sequence[tuple[Deployment, float, Outcome]], kind: str, targets: Targets,
    refused: Refused,
) -> Report:  # fmt: skip
    """A line a simulation: latencies with their quantiles, rates, and what meets the targets."""
    rows = [_simulated_row(plan, size, outcome, targets) for plan, size, outcome in answers]
    columns = _varying(rows)
    columns += [_short("size", _SIZES[kind])] if kind in _SIZES else []
    columns += [_quantiles("TTFT ms", "ttft_ms"), _quantiles("TPOT ms", "tpot_ms")]
    columns += [_short("e2e_s_mean", "E2E s"), _short("output_tokens_per_s", "tokens/s")]
    if targets.given:
        columns += [percent("in targets", "good_share"), _short("goodput_per_s", "goodput/s")]
    if any(row["cached_share"] for row in rows):
        columns += [percent("prefix hits", "cached_share", rank=3)]
    if any(row["preemptions"] for row in rows):
        columns += [_short("preemptions")]
    columns += [percent("cache", "fullest", rank=3)]
    notes = [
        "TTFT, TPOT: mean (p50 p90 p99) of the requests; loads without --requests have ranges",
    ]
    if targets.given:
        notes += ["in targets: share of requests that meet them; goodput: those of a second"]
    notes += ["cache: largest share that requests held at once"]
    count = rows[0]["requests"]
    return _report(
        "simulations", rows, columns, f"{_title(rows)}, {count:,} requests", notes, refused
    )


def _simulated_row(plan: Deployment, size: float, outcome: Outcome, targets: Targets) -> Row:
    arrivals, share = outcome.arrivals, outcome.good_share(targets)
    units = {"ttft": ("ms", 1e3), "tpot": ("ms", 1e3), "e2e": ("s", 1.0)}
    return {
        **_identity(plan), "size": size, "requests": len(arrivals),
        "isl": round(float(arrivals.inputs.mean())), "osl": round(float(arrivals.outputs.mean())),
        **{
            f"{metric}_{unit}_{name}": outcome.statistic(metric, name) * scale
            for metric, (unit, scale) in units.items() for name in STATISTICS
        },
        "requests_per_s": outcome.requests_per_s,
        "output_tokens_per_s": outcome.output_tokens_per_s,
        "output_tokens_per_s_per_device": outcome.output_tokens_per_s / plan.devices,
        "good_share": share, "goodput_per_s": share * outcome.requests_per_s,
        "cached_share": outcome.hit_share, "preemptions": outcome.preemptions,
        "fullest": outcome.fullest,
    }  # fmt: skip


def _quantiles(header: str, key: str) -> Column:
    def show(row: Row) -> str:
        mean, *quantiles = (ratio(row[f"{key}_{name}"]) for name in STATISTICS)
        return f"{mean} ({' '.join(quantiles)})"

    return Column(header, lambda row: row, show)


_BEST = 6
"""Plans that a search shows, beside the best of each device."""


def options(
    found: Sequence[Option], misses: Sequence[Miss], demand: Demand, gpus: int, count: int
) -> Report:
    """A line a plan: the best ones, and the best of each device; under them why the next fails."""
    firsts = {option.of.device.slug: option for option in reversed(found)}.values()
    best = [o for i, o in enumerate(found) if i < _BEST or any(o is first for first in firsts)]
    if not best:
        raise ProblemError(f"no plan meets the targets on {gpus} devices: {_next(misses)}")
    rows = [_option_row(option) for option in best]
    columns = [
        *_varying(rows), *several("pools", rows), _short("copies"),
        replace(_short("devices"), rank=0 if demand.users or demand.rate else 2), _short("size", "users"),
        _ranged("TTFT ms", "ttft_ms"), _ranged("TPOT ms", "tpot_ms"),
        replace(_short("output_tokens_per_s", "tokens/s"), rank=3),
        _short("output_tokens_per_s_per_device", "a device"),
        replace(_short("output_tokens_per_joule", "tokens/J"), rank=4),
        text("stops at", "stops_at", rank=1),
    ]  # fmt: skip
    notes = [
        f"{count:,} deployments of {len(found) + len(misses):,} plans; users, TTFT and TPOT: of a "
        "copy, with 80 % ranges; stops at: what more users would break",
        f"first tokens: {demand.statistic}; answers vary by {demand.vary:g} of their mean (--vary)",
    ]
    if any(row["pools"] for row in rows):
        notes += ["pools: copies that only run prompts, beside `copies` that only make tokens"]
    if misses:
        notes += [f"next: {_next(misses)}"]
    if best[0].launch:
        notes += [f"best: {best[0].launch}"]
    limits = (("TTFT", demand.targets.ttft), ("TPOT", demand.targets.tpot))
    words = [f"{name} {ratio(limit * 1e3)} ms" for name, limit in limits if limit]
    title = ", ".join([_title(rows), f"on {gpus} devices at most", *words])
    return Report("plans", rows, columns, title, notes=notes)


def _next(misses: Sequence[Miss]) -> str:
    """The nearest plan that fails, and why."""
    of, reason = misses[0].of, misses[0].reason
    numbers = {name: getattr(of, key) for name, key in _NUMBERS.items() if hasattr(of, key)}
    words = [f"{name} {size}" for name, size in numbers.items() if size > 1]
    return ", ".join([of.device.slug, of.weights, *words]) + f": {reason}"


def _option_row(option: Option) -> Row:
    served, pools = option.served, option.pools
    row = {**served.as_dict(), **_identity(option.of)}
    if pools is not None:
        row |= _identity(pools.decode)
        row |= {
            "size": pools.resident, "ttft_ms": pools.ttft_seconds * 1e3,
            "tpot_ms": pools.tpot_seconds * 1e3, "copies": pools.decode_copies,
        }  # fmt: skip
        for key in ("ttft_ms", "tpot_ms"):
            value = served.metric(key)
            row |= {f"low_{key}": row[key] * value.low / value.value,
                    f"high_{key}": row[key] * value.high / value.value}  # fmt: skip
    return {
        **row,
        "copies": option.copies if pools is None else pools.decode_copies,
        "pools": pools and f"{pools.prefill_copies} x tp{pools.prefill.tensor}",
        "devices": option.devices, "requests_per_s": option.requests_per_s,
        "output_tokens_per_s": option.output_tokens_per_s,
        "output_tokens_per_s_per_device": option.per_device,
        "output_tokens_per_joule": option.tokens_per_joule,
        "stops_at": option.stops, "launch": option.launch,
    }  # fmt: skip


def _identity(plan: Deployment) -> dict[str, object]:
    return {
        "network": plan.network.name, "device": plan.device.slug, "engine": plan.engine.name,
        "weights": plan.weights, "cache": plan.cache_type, "tensor": plan.tensor,
        "pipeline": plan.pipeline, "expert": plan.expert, "data": plan.data,
    }  # fmt: skip


def _varying(rows: Sequence[Row]) -> list[Column]:
    """Columns of what sets deployments and lengths apart."""
    columns = [column for key in _FORMS for column in several(key, rows)]
    numbers = {name: {row.get(key) for row in rows} for name, key in _NUMBERS.items()}
    return columns + [
        _short(_NUMBERS[name], name) for name, values in numbers.items() if len(values) > 1
    ]


def _title(rows: Sequence[Row]) -> str:
    """The network, and what all rows have in common."""
    first = rows[0]
    common = {key for key in first if all(row[key] == first[key] for row in rows)}
    words = [first["network"]]
    words += [f"{key} {first[key]}" for key in _FORMS[2:] if key in common]
    words += [first[key] for key in _FORMS[:2] if key in common]
    words += [
        f"{name} {ratio(first[key])}"
        for name, key in _NUMBERS.items()
        if key in common and (first[key] > 1 or name not in _ABOVE_ONE)
    ]
    return ", ".join(words)


def _report(
    name: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    title: str,
    notes: Sequence[str],
    refused: Refused,
) -> Report:
    """A report with the impossible deployments under it."""
    sentences = [*notes, *lines(refused)]
    return Report(name, rows, columns, title, head=head(refused, "deployment"), notes=sentences)


def _short(key: str, header: str = "") -> Column:
    return keyed(header or key, key, ratio)


def _ranged(header: str, key: str) -> Column:
    def show(row: Row) -> str:
        low, high = (ratio(row[f"{end}_{key}"]) for end in ("low", "high"))
        return f"{ratio(row[key])} ({low}-{high})"

    return Column(header, lambda row: row, show)
