"""Reports of training steps: one step with its classes and memory, or one line for each plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from perfmodel import published
from perfmodel.columns import DIFFERS, columns_of
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.finetuning import FineTuning
from perfmodel.networks.loads import Loads
from perfmodel.render import trees
from perfmodel.render.bars import Bar, stacked
from perfmodel.render.chart import Chart
from perfmodel.render.page import Page
from perfmodel.render.refused import Refused, lines
from perfmodel.render.refused import head as refused_head
from perfmodel.render.report import Column, Report, Row, binary, micros, on_device, text
from perfmodel.render.spans import spans_chart
from perfmodel.training.plan import Plan
from perfmodel.training.planning import Found
from perfmodel.training.publishedsteps import nearest
from perfmodel.training.result import Step
from perfmodel.training.scaling import CAUSES, Scaled
from perfmodel.training.trainingrun import RunCost

_AXES = (
    "tensor", "pipeline", "chunks", "schedule", "data", "context", "expert", "expert_tensor",
    "zero", "reshard", "lora", "micro_batch", "offload", "recompute",
)  # fmt: skip
"""Fields of a plan that a grid varies."""
_FOLLOWING = ("data", "global_batch")
"""Axes that follow from the others."""
_ALWAYS = ("devices", "zero", "micro-batch", "global-batch", "recompute")
"""Axes that a title always includes."""
_USUAL = vars(Plan())
"""What a title does not say of other axes."""


def _axis(name: str) -> Column:
    """A column for a field that distinguishes plans."""
    path = f"plan.{name}" if name in _AXES else name
    rank = 2 if name in _FOLLOWING else 0
    number = name not in ("schedule", "reshard", "offload", "recompute")
    return Column(name.replace("_", "-"), path, "{}", number, rank=rank, when=DIFFERS)


_PLAN = tuple(map(_axis, ("devices", *_AXES[:-1], "global_batch", _AXES[-1])))
"""The columns of a plan."""
BY = ("class", "operator", "kernel")
"""What a line of one step is for."""


def single(step: Step, convention: str, costs: Sequence[RunCost] = (), by: str = "class") -> Report:
    """One step and what a run of such steps costs: a line for each class and then for each kind of
    memory, or one for each operator or kernel of the busiest stage (`by`)."""
    title = _title([step], step.as_dict())
    sentences = [*notes(step, convention), *map(spent, costs)]
    sentences += published.sentences([nearest(step)])
    if step.tree is not None and by != "class":
        report = trees.report([step.tree], by, "steps")
        return replace(report, title=title, notes=sentences)
    times = dict(sorted(step.classes.items(), key=lambda item: -item[1]))
    memory = step.memory
    sizes = {**memory.lines, "device": memory.peak_bytes}
    capacity = memory.capacity_bytes
    rows: list[Row] = [
        {"part": "time", "what": name, "time_us": seconds * 1e6, "share": seconds / step.seconds}
        for name, seconds in {**times, "step": step.seconds}.items()
    ]
    rows += [
        {
            "part": "memory",
            "what": name,
            "bytes": size,
            "share": size / capacity if capacity else None,
        }
        for name, size in sizes.items()
    ]
    columns = [
        text("of", "part"),
        text("part", "what"),
        Column("time", "time_us"),
        Column("bytes", "bytes", "binary"),
        Column("share", "share"),
    ]
    return Report(
        "step",
        rows,
        columns,
        title,
        notes=sentences,
        examples=rows,
    )


def _title(steps: Sequence[Step], row: Row, varying: Sequence[Column] = ()) -> str:
    """Network, device, and the fields that all plans share: those of the `row` of one that are not
    as usual, and some always."""
    plan = steps[0].plan
    common = [
        f"{axis.header}={axis.value(row)}"
        for axis in _PLAN
        if axis not in varying
        and (
            axis.header in _ALWAYS
            or axis.value(row) not in (None, _USUAL.get(axis.header.replace("-", "_"), 1))
        )
    ]
    fields = " ".join([*common, f"seq={plan.seq}", f"dtype={plan.dtype}", f"stack={plan.stack}"])
    devices = on_device(step.device for step in steps)
    return f"{steps[0].network.name}{devices}: {fields}{_tuning(plan)}"


def _tuning(plan: Plan) -> str:
    """Fields of fine-tuning, loads and packing that are not as usual, beside those of a grid."""
    names = {*vars(FineTuning()), *vars(Loads()), "fill", "packed"} - {*_AXES}
    values = {name: value for name, value in plan.settings.items() if name in names}
    return "".join(f" {name.replace('_', '-')}={value}" for name, value in values.items())


def notes(step: Step, convention: str) -> list[str]:
    """Time with its range, rate, MFU, main limiter, and whether it fits."""
    ends = f"{micros(step.low_seconds * 1e6)} to {micros(step.high_seconds * 1e6)}"
    rate = step.tokens_per_second_per_device
    sentences = [
        f"a step takes {micros(step.seconds * 1e6)} ({ends}): {rate:,.0f} tokens/s a device",
        f"MFU {_mfu(step, convention)}, of {step.peak_flops / 1e12:,.0f} TFLOP/s dense "
        f"{step.plan.dtype}",
        longest(step.limiter, step.classes[step.limiter] / step.seconds),
        *_trained(step),
        fit(step),
    ]
    return [*sentences, *(f"assumed: {line}" for line in step.assumptions)]


def longest(part: str, share: float) -> str:
    """The longest part with its share of a step; one longer than the step is hidden in part."""
    if share <= 1.0:
        return f"most of it is {part} ({share:.0%})"
    return (
        f"its longest part is {part}: {share:.0%} of the step, of which "
        f"{share - 1.0:.0%} or more is hidden beside other parts"
    )


def _trained(step: Step) -> list[str]:
    """Parameters that train, where not all do."""
    if step.plan.tuning is None:
        return []
    trained = step.trained_parameters
    total = parameter_count(step.network, step.plan.tuning)
    return [f"trains {trained:,} of {total:,} parameters ({trained / total:.2%})"]


def _mfu(step: Step, convention: str) -> str:
    """The MFU by a convention; by the causal one, beside that which counts masked scores too."""
    share = f"{step.mfu(convention):.1%} by {convention}"
    if convention != "causal":
        return share
    return f"{share} ({step.mfu('megatron'):.1%} by megatron, which counts masked scores)"


def fit(step: Step) -> str:
    """Whether it fits into the fullest device's memory, and what the host's memory keeps of it."""
    kept = "" if step.host_bytes is None else f", and {binary(step.host_bytes)} in the host's"
    memory = step.memory
    if memory.capacity_bytes is None:
        return f"holds {binary(memory.peak_bytes)}; the device's capacity is not in its spec"
    if memory.fits:
        return f"fits: {binary(memory.peak_bytes)} of {binary(memory.capacity_bytes)}{kept}"
    return f"does not fit by {binary(memory.lacking_bytes)}{kept}"


def spent(cost: RunCost) -> str:
    """What a run costs."""
    parts = [f"a run takes {cost.days:,.3g} days, {cost.device_hours:,.0f} device hours"]
    if cost.dollars is not None:
        parts.append(f"{cost.dollars:,.0f} dollars")
    if cost.energy_mwh is not None:
        parts.append(f"{cost.energy_mwh:,.3g} MWh")
    if cost.interval_seconds is None:
        return ", ".join(parts)
    return (
        f"{', '.join(parts)}; goodput {cost.goodput:.1%} of {cost.failures:,.0f} failures, with a "
        f"checkpoint of {binary(cost.checkpoint_bytes)} every "
        f"{cost.interval_seconds / 60:,.0f} minutes"
    )


def searched(found: Found, device: str, devices: int) -> str:
    """How a search ended, and what the next plan lacks."""
    text = (
        f"{devices:,} x {device}: of {found.legal:,} plans {found.too_large:,} do not fit, "
        f"{found.too_slow:,} cannot be faster, {found.timed:,} were timed"
    )
    if found.next is None:
        return text
    plan, lacking = found.next
    names = [*_AXES[:-1], "recompute"]
    sizes = [f"{name.replace('_', '-')} {getattr(plan, name)}" for name in names
             if name == "recompute" or getattr(plan, name) != _USUAL[name]]  # fmt: skip
    return f"{text}; nearest to fitting: {' '.join(sizes)} lacks {binary(lacking)}"


def several(
    steps: Sequence[Step],
    refused: Refused,
    convention: str,
    costs: Sequence[RunCost] = (),
    against: Sequence[Scaled] = (),
) -> Report:
    """One line for each plan in order; varying fields in columns, common ones in the title.

    `against` has how each scales. A single plan has the notes of its own. Impossible plans are
    listed below, with numbers that would work.
    """
    own = [column for column in columns_of(Step) if column.header != "network"]
    (device,) = (column for column in own if column.header == "device")
    own.remove(device)
    mfu = Column(f"MFU ({convention})", f"mfu.{convention}", "percent", rank=1)
    own.insert(1 + [column.key for column in own].index("tokens_per_s_per_device"), mfu)
    steps = [replace(step, nearest=nearest(step)) for step in steps]
    rows = [step.as_dict() for step in steps]
    if against:
        rows = [{**row, **each.as_dict()} for row, each in zip(rows, against, strict=True)]
        few: dict[str, dict[str, Any]] = {
            "step_us": {},
            "tokens_per_s_per_device": {"rank": 3},
            "fits": {"when": DIFFERS},
        }
        own = [replace(c, **few[c.key]) for c in own if c.key in few]
        own += [mfu, *columns_of(Scaled)]
        own += [
            Column(cause, f"lost.{cause}", _lost, when=partial(_loses, cause)) for cause in CAUSES
        ]
    if costs:
        rows = [{**row, **cost.as_dict()} for row, cost in zip(rows, costs, strict=True)]
        own += columns_of(RunCost)
    sentences = notes(steps[0], convention) if len(steps) == 1 else []
    if against:
        sentences = ["efficiency and what causes take of it add up to 100 %; below 0 is won"]
    sentences += published.sentences(step.nearest for step in steps)
    report = Report("steps", rows, [device, *_PLAN, *own], head=refused_head(refused, "plan"),
                    notes=[*sentences, *lines(refused)], examples=rows)  # fmt: skip
    return replace(report, title=_title(steps, rows[0], report.visible))


def _lost(share: float) -> str:
    """A share of the efficiency, without a sign where it rounds to nothing."""
    return f"{round(share, 3) or 0.0:.1%}"


def _loses(cause: str, rows: Sequence[Row]) -> bool:
    """Whether some row loses efficiency, or wins it, by a cause."""
    return any(round(row["lost"][cause], 3) for row in rows)


def scaling_chart(
    steps: Sequence[Step], against: Sequence[Scaled], way: str, page: Page | None = None
) -> Chart:
    """A bar for each number of devices: what takes the step, by cause."""
    bars = [
        Bar(
            f"{step.plan.devices:,} x {step.device}",
            {cause: max(share, 0.0) for cause, share in each.shares.items()},
            note=f"{step.tokens_per_second_per_device:,.0f} tokens/s a device, efficiency "
            f"{each.efficiency:.0%}",
        )
        for step, each in zip(steps, against, strict=True)
    ]
    title = f"{steps[0].network.name}: shares of a step, {way} scaling"
    return spans_chart(stacked(title, "percent", bars, ranked=False), page=page)
