"""Tables of served networks: loads, what fits, drafts, plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from perfmodel import published
from perfmodel.columns import DIFFERS, columns_of, row_of
from perfmodel.errors import ProblemError
from perfmodel.render.refused import Refused, head, lines
from perfmodel.render.report import Column, Report, Row, binary, ratio
from perfmodel.serving.cachememory import (
    fitting_batch,
    fitting_context,
    memory,
    sequence_bytes,
    token_bytes,
)
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.publishedruns import nearest
from perfmodel.serving.queue.outcome import Outcome
from perfmodel.serving.search import Demand, Miss, Option
from perfmodel.serving.served import Served
from perfmodel.serving.speculative import Speculation
from perfmodel.serving.targets import Targets

KINDS = ("matmul", "attention", "norm", "pointwise", "embedding", "communication", "host")
"""Classes of operations that the time between tokens is shown by."""
_DEPLOYMENT = columns_of(Deployment)

_SIZES = {"static batch": "batch", "concurrency": "clients", "rate": "requests/s"}
"""Names of the size of each kind of load."""


def report(loads: Sequence[Served], refused: Refused = (), *, terms: bool) -> Report:
    """One row for each load; with `terms` the time between tokens by class.

    Values that all rows share are in the title. Classes below a hundredth of the time have no
    column.
    """
    loads = [replace(load, nearest=nearest(load)) for load in loads]
    rows = [_row(load, terms=terms) for load in loads]
    columns = [
        replace(column, header=size_name(loads)) if column.key == "size" else column
        for column in columns_of(Served)
        if not (terms and column.key == "limiter")
    ]
    for kind in KINDS:
        key = f"token_{kind}_ms"
        if any(row.get(key, 0.0) >= 0.01 * row["tpot_ms"] for row in rows):
            columns.append(Column(kind, key, ratio))
    notes = [*_notes(loads, terms=terms), *published.sentences(load.nearest for load in loads)]
    return _report("loads", rows, columns, notes, refused)


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
    drafts = dict.fromkeys(
        f"assumed: a pass with {load.of.drafted} drafts makes "
        f"{load.of.pass_tokens:.2f} tokens, as DeepSeek-V3's module; --accepted states it"
        for load in loads
        if load.of.drafted and not load.of.accepted
    )
    return ["TTFT and TPOT with their 80 % ranges", *ttft, *classes, *drafts, *sorted(engines)]


def size_name(loads: Sequence[Served]) -> str:
    """The name of a load's size."""
    return _SIZES.get(loads[0].kind, "load")


def fitting(
    deployments: Sequence[Deployment], what: str, sizes: Sequence[int], refused: Refused
) -> Report:
    """The largest that fits: with `batch` sequences of each length in tokens, with `context` tokens
    of each sequence for each batch."""
    batches = what == "batch"
    axis, most, cache = (
        ("tokens", "sequences", "each") if batches else ("batch", "context", "cache")
    )
    rows: list[Row] = []
    for plan, size in product(deployments, sizes):
        has = memory(plan)
        if batches:
            kept, tokens = plan.reading(size)
            number = fitting_batch(kept, tokens, has=has)
            cached = sequence_bytes(kept, tokens)
        else:
            number = fitting_context(plan, size, has=has)
            cached = size * sequence_bytes(*plan.reading(number))
        terms = {f"{name.replace(' ', '_')}_bytes": part for name, part in has.terms().items()}
        rows.append({
            **plan.as_dict(), axis: size, most: number, "bytes_per_token": token_bytes(plan),
            "cache_bytes": cached, "total_bytes": has.total_bytes, **terms,
        })  # fmt: skip
    columns = [
        *_DEPLOYMENT,
        Column(axis, axis),
        Column(most, most),
        Column(cache, "cache_bytes"),
    ]
    for name in memory(deployments[0]).terms():
        header = "runtime" if name == "context" else name
        columns.append(Column(header, f"{name.replace(' ', '_')}_bytes", "binary"))
    each = " or ".join(dict.fromkeys(binary(token_bytes(plan)) for plan in deployments))
    return _report("fits", rows, columns, [], refused, f": {each} a token")


_DRAFTED = (
    Column("past", "past", when=DIFFERS),
    Column("accept", "accept", when=DIFFERS),
    Column("batch", "batch"),
    Column("drafts", "drafts", of="gamma"),
    Column("tokens a pass", "tokens_per_pass", "{:.2f}", of="tokens"),
    Column("draft's step", "draft_step_share", of="draft"),
    Column("pass", "verify_steps", "{:.2f} steps", of="verify"),
    Column("TPOT", "tpot_us", of=lambda gain: _tpot(gain) * gain.speedup, scale=1e6),
    Column("with drafts", "drafted_tpot_us", of=lambda gain: _tpot(gain), scale=1e6),
    Column("speed-up", "speedup", "{:.2f}x"),
)


def _tpot(gain: Speculation) -> float:
    """Seconds a token with drafts; without any, of a plain step."""
    return gain.seconds / gain.tokens if gain.gamma else gain.step_seconds


def drafts(
    answers: Sequence[tuple[Deployment, int, float, Speculation]], draft: str, refused: Refused
) -> Report:
    """A line a batch, length and chance: the number of drafts that gains most, and its gain."""
    rows = [
        {**plan.as_dict(), "draft": draft, "past": past, "accept": chance,
         **row_of(gain, _DRAFTED[2:])}
        for plan, past, chance, gain in answers
    ]  # fmt: skip
    note = (
        "accept: the chance that a draft's token is accepted, which depends on networks and texts"
    )
    columns = [*_DEPLOYMENT, *_DRAFTED]
    return _report("drafts", rows, columns, [note], refused, f", draft {draft}")


def simulated(
    answers: Sequence[tuple[Deployment, float, Outcome]],
    kind: str,
    targets: Targets,
    refused: Refused,
) -> Report:
    """A line a simulation: latencies with their quantiles, rates, and what meets the targets."""
    rows: list[Row] = []
    for plan, size, outcome in answers:
        share = outcome.good_share(targets)
        rows.append({
            **plan.as_dict(), "size": size, **outcome.as_dict(),
            "output_tokens_per_s_per_device": outcome.output_tokens_per_s / plan.devices,
            "good_share": share, "goodput_per_s": share * outcome.requests_per_s,
        })  # fmt: skip
    columns = [*_DEPLOYMENT, *([Column(_SIZES[kind], "size")] if kind in _SIZES else [])]
    columns += columns_of(Outcome)
    notes = [
        "TTFT, TPOT, E2E: mean (p50 p90 p99) of the requests; loads without --requests have ranges",
    ]
    if targets.given:
        columns[-3:-3] = Column("in targets", "good_share"), Column("goodput/s", "goodput_per_s")
        notes += ["in targets: share of requests that meet them; goodput: those of a second"]
    notes += ["cache: largest share that requests held at once"]
    suffix = f", {rows[0]['requests']:,} requests"
    return _report("simulations", rows, columns, notes, refused, suffix)


_BEST = 6
"""Plans that a search shows, beside the best of each device."""
_LATENCIES = [column for column in columns_of(Served) if column.header in ("TTFT ms", "TPOT ms")]


def options(
    plans: Sequence[Option], misses: Sequence[Miss], demand: Demand, gpus: int, count: int
) -> Report:
    """A line a plan: the best ones, and the best of each device; under them why the next fails."""
    firsts = {option.of.device.slug: option for option in reversed(plans)}.values()
    best = [o for i, o in enumerate(plans) if i < _BEST or any(o is first for first in firsts)]
    if not best:
        number = f"{gpus} device{'s' * (gpus > 1)}"
        raise ProblemError(f"no plan meets the targets on {number}: {_nearest(misses)}")
    served = [replace(option.served, nearest=nearest(option.served)) for option in best]
    rows = [
        {**load.as_dict(), **option.as_dict()} for option, load in zip(best, served, strict=True)
    ]
    ranks = {"devices": 0, "copies": 2} if demand.users or demand.rate else {}
    copies, devices, *rates = (
        replace(each, rank=ranks.get(each.key, each.rank)) for each in columns_of(Option)
    )
    users = Column("users", "size")
    columns = [*_DEPLOYMENT, copies, devices, users, *_LATENCIES, *rates]
    notes = [
        f"{count:,} deployments of {len(plans) + len(misses):,} plans; users, TTFT and TPOT: of a "
        "copy, with 80 % ranges; stop: what more users would break",
        f"first tokens: {demand.statistic}; answers vary by {demand.vary:g} of their mean (--vary)",
    ]
    if any(row["pools"] for row in rows):
        notes += ["pools: copies that only run prompts, with their shards, and those for tokens"]
    notes += [f"next: {_nearest(misses)}"] if misses else []
    notes += [f"best: {best[0].launch}"] if best[0].launch else []
    notes += published.sentences([served[0].nearest])
    limits = (("TTFT", demand.targets.ttft), ("TPOT", demand.targets.tpot))
    words = [f", {name} {ratio(limit * 1e3)} ms" for name, limit in limits if limit]
    suffix = f", isl {demand.isl}, osl {demand.osl}, {gpus} devices at most{''.join(words)}"
    return _report("plans", rows, columns, notes, (), suffix)


def _nearest(misses: Sequence[Miss]) -> str:
    """The nearest plan that fails, and why."""
    plan, reason = misses[0].of, misses[0].reason
    row = plan.as_dict()
    sizes = [f"{name} {row[name]}" for name in ("tensor", "pipeline", "expert", "data")]
    words = [size for size in sizes if not size.endswith(" 1")]
    return ", ".join([plan.device.slug, plan.weights, *words]) + f": {reason}"


def _report(
    name: str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    notes: Sequence[str],
    refused: Refused,
    suffix: str = "",
) -> Report:
    """A report with the impossible deployments under it; what all rows share is its title."""
    title = f"{', '.join(_common(rows, columns))}{suffix}"
    sentences = [*notes, *lines(refused)]
    more: dict[str, Any] = {"head": head(refused, "deployment"), "notes": sentences}
    return Report(name, rows, columns, title, examples=rows, **more)


def _common(rows: Sequence[Row], columns: Iterable[Column]) -> Iterable[str]:
    """What all rows share of what may set them apart; numbers of 1 or less go without saying."""
    for column in columns:
        value = column.value(rows[0]) if column.when == DIFFERS else None
        if not (value is None or column.visible(rows) or value in (False, 0, 1, "")):
            bare = column.key in ("network", "device", "engine")
            yield column.cell(rows[0]) if bare else f"{column.header} {column.cell(rows[0])}"
