"""Drafts and separate pools of a served network as tables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from perfmodel.render.refused import Refused, head, lines
from perfmodel.render.report import Column, Report, Row, integer, micros, percent, quantity, text
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.disaggregated import Pools
from perfmodel.serving.speculative import Speculation

_SPLITS = (("tp", "tensor"), ("pp", "pipeline"), ("ep", "expert"), ("dp", "data"))
_FORMS = ("device", "engine", "weights", "cache")


def drafts(
    found: Sequence[tuple[Deployment, int, float, Speculation]], draft: str, refused: Refused
) -> Report:
    """A line a batch, length and chance: the number of drafts that gains most, and its gain."""
    rows: list[Row] = [
        {
            **_identity(plan), "draft": draft, "batch": gain.batch, "past": past, "accept": chance,
            "drafts": gain.gamma, "tokens_per_pass": gain.tokens, "draft_step_share": gain.draft,
            "verify_steps": gain.verify, "tpot_us": _tpot(gain) * gain.speedup * 1e6,
            "drafted_tpot_us": _tpot(gain) * 1e6, "speedup": gain.speedup,
        }
        for plan, past, chance, gain in found
    ]  # fmt: skip
    columns = [
        *_columns(rows, ("past", "accept")),
        integer("batch", "batch"),
        integer("drafts", "drafts"),
        Column("tokens a pass", lambda row: row["tokens_per_pass"], lambda value: f"{value:.2f}"),
        percent("draft's step", "draft_step_share"),
        Column("pass", lambda row: row["verify_steps"], lambda value: f"{value:.2f} steps"),
        Column("TPOT", lambda row: row["tpot_us"], micros),
        Column("with drafts", lambda row: row["drafted_tpot_us"], micros),
        Column("speed-up", lambda row: row["speedup"], lambda value: f"{value:.2f}x"),
    ]
    notes = [
        "accept: the chance that a draft's token is accepted, which depends on networks and texts",
        *lines(refused),
    ]
    title = f"{_title(found[0][0], rows)}, draft {draft}"
    return Report("drafts", rows, columns, title, head=head(refused, "deployment"), notes=notes)


def _tpot(gain: Speculation) -> float:
    """Seconds a token with drafts; without any, of a plain step."""
    return gain.seconds / gain.tokens if gain.gamma else gain.step_seconds


def pools(found: Sequence[tuple[Deployment, int, int, Pools]], refused: Refused) -> Report:
    """A line a deployment and length: how devices are shared out, and what that gives."""
    rows: list[Row] = [
        {
            **_identity(plan), "isl": isl, "osl": osl, "prefill_share": split.prefill_share,
            "ttft_us": split.ttft_seconds * 1e6, "tpot_us": split.tpot_seconds * 1e6,
            "resident": split.resident, "transfer_us": split.transfer_seconds * 1e6,
            "requests_per_s": split.requests_per_s,
            "output_tokens_per_s_per_device": split.output_tokens_per_s_per_device,
        }
        for plan, isl, osl, split in found
    ]  # fmt: skip
    columns = [
        *_columns(rows, ("isl", "osl")),
        percent("for prompts", "prefill_share"),
        Column("TTFT", lambda row: row["ttft_us"], micros),
        Column("cache's way", lambda row: row["transfer_us"], micros),
        Column("TPOT", lambda row: row["tpot_us"], micros),
        integer("resident", "resident"),
        Column(
            "tokens/s a device", lambda row: row["output_tokens_per_s_per_device"], quantity("")
        ),
    ]
    notes = [
        "for prompts: share of the copies that only run prompts, with both pools busy; TTFT: of a "
        "prompt alone; TPOT: of a full copy that only decodes",
        *lines(refused),
    ]
    title = _title(found[0][0], rows)
    return Report("pools", rows, columns, title, head=head(refused, "deployment"), notes=notes)


def _identity(plan: Deployment) -> Row:
    return {
        "network": plan.network.name, "device": plan.device.slug, "engine": plan.engine.name,
        "weights": plan.weights, "cache": plan.cache_type, "tensor": plan.tensor,
        "pipeline": plan.pipeline, "expert": plan.expert, "data": plan.data,
    }  # fmt: skip


def _varies(rows: Sequence[Row], key: str) -> bool:
    return len({row[key] for row in rows}) > 1


def _columns(rows: Sequence[Row], sizes: Sequence[str]) -> list[Column]:
    """Columns of what sets rows apart."""
    words = [text(key, key) for key in _FORMS if _varies(rows, key)]
    numbers = [
        Column(name, itemgetter(key), lambda value: f"{value:g}")
        for name, key in (*_SPLITS, *((size, size) for size in sizes))
        if _varies(rows, key)
    ]
    return [*words, *numbers]


def _title(plan: Deployment, rows: Sequence[Row]) -> str:
    """The network, and what all rows have in common."""
    first = rows[0]
    parts = [plan.network.name]
    parts += [f"{key} {first[key]}" for key in _FORMS[2:] if not _varies(rows, key)]
    parts += [str(first[key]) for key in _FORMS[:2] if not _varies(rows, key)]
    parts += [
        f"{name} {first[key]}" for name, key in _SPLITS if not _varies(rows, key) and first[key] > 1
    ]
    parts += [
        f"{key} {first[key]:g}"
        for key in ("isl", "osl", "past", "accept")
        if key in first and not _varies(rows, key)
    ]
    return ", ".join(parts)
