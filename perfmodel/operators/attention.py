"""Attention as an operator: MHA, GQA, MQA; prefill, decode and backward; fused and unfused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Problem
from perfmodel.count.executed import next_extent
from perfmodel.elements import ELEMENTS
from perfmodel.hardware import Device
from perfmodel.operators.library import Chosen, LibraryOperator, multiplied_as
from perfmodel.operators.operator import Request
from perfmodel.operators.options import DIRECTION, DTYPE, Choice, Flag, Multiple, size
from perfmodel.timing import attention, attention_backward, attention_style, unfused
from perfmodel.timing.libraries import AttentionFacts, caller_of, resolve, usual
from perfmodel.timing.machine import Machine, machine
from perfmodel.timing.plan import Plan
from perfmodel.timing.routing import routed, routes
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Style

_BY_SCHEDULE = {"standard": "eager", "tiled-1": "flash1", "tiled-2": "flash2", "tiled-3": "flash3"}
# Words that the variant of a measured run may have, joined by +.
_VARIANTS = ("padding_mask", "dropout", "keys_only")


class AttentionOperator(LibraryOperator):
    """Scaled dot-product attention."""

    name = "attention"
    about = "Scaled dot-product attention: MHA, GQA, MQA; prefill and decode."
    schedules = ("auto", "standard", "tiled", "tiled-1", "tiled-2", "tiled-3", "split-kv")
    tile = ("rows", "keys", "splits")
    own_tile = ("rows", "keys", "warps", "stages")
    fits_by = ("head_dim", "head_dim_v")
    multiples = (Multiple("heads_q", "heads_kv", "query heads", "key-value heads"),)
    smaller = "a smaller head dimension"
    needed = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim")
    free_sizes = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "window")
    options = (
        size("batch", default="1", help="Sequences: {size}."),
        size("heads_q", "--heads", default="32", help="Query heads: {size}."),
        size("head_dim", default="128", help="Dimension of a head: 64, 128, 256."),
        size(
            "heads_kv",
            "--kv-heads",
            default=None,
            follows="heads_q",
            help="Key-value heads [default: as --heads].",
        ),
        size("seq", default="4096", argument=False, help="Queries, and as many keys: {size}."),
        size("seq_q", default=None, source="seq", help="Queries, where they differ; 1 is decode."),
        size(
            "seq_kv", default=None, source="seq", follows="seq_q", help="Keys, where they differ."
        ),
        size("head_dim_v", default=None, help="Dimension of values, where it differs."),
        size(
            "window",
            default=None,
            least=0,
            help="A query sees its own key and the SIZE - 1 before it, and as many after it unless "
            "--causal; 0: all.",
        ),
        Flag("causal", ("--causal",), "A query does not see keys after its own.", always=True),
        DTYPE,
        Choice(
            "kv_dtype",
            ("--kv-dtype",),
            None,
            f"Types of keys and values, with commas: {', '.join(ELEMENTS)} [default: as --dtype].",
        ),
        DIRECTION,
        Flag("padding_mask", ("--padding-mask",), "Keys beyond each sequence's end are masked."),
        Flag("dropout", ("--dropout",), "Scores are dropped at random, as in training."),
        Flag(
            "keys_only",
            ("--keys-only",),
            "Values are the first columns of the keys (absorbed MLA): read once.",
        ),
    )

    def problem(self, **given: Any) -> Attention:
        """An `Attention`; a window that is 0 everywhere means no window."""
        if "window" in given and not np.any(given["window"]):
            del given["window"]
        return Attention(**given)

    def same_call(self, sizes: Mapping[str, Any]) -> np.ndarray:
        """A code for each head dimension, with decode, windowed problems and single tokens
        apart."""
        window = sizes.get("window")
        windowed = np.asarray(0 if window is None else window) > 0
        decode = np.asarray(sizes["seq_q"]) == 1
        single = decode & (np.asarray(sizes["seq_kv"]) == 1)
        return np.asarray(8 * np.asarray(sizes["head_dim"]) + 4 * single + 2 * decode + windowed)

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """One attention; mask, dropout and shared memory are in the row's variant."""
        optional = ["head_dim_v"] if "head_dim_v" in sizes else []
        optional += ["window"] if np.any(sizes["window"]) else []
        values: dict[str, Any] = {name: sizes[name] for name in (*self.needed, *optional)}
        words = str(row["variant"]).split("+")
        return [
            Attention(
                **values,
                causal=bool(row["causal"]),
                dtype=row["dtype"],
                kv_dtype=row["kv_dtype"] or None,
                direction=row["direction"],
                **{name: name in words for name in _VARIANTS},
            )
        ]

    def family(self, problem: Any) -> str:
        """The family by direction; of the forward pass by phase."""
        phase = problem.phase if problem.direction == "fwd" else problem.direction
        return f"attention-{phase}"

    def kernels(self, problem: Attention, request: Request, here: Machine) -> Chosen:
        """The requested class, the class of a requested schedule, or the usual one."""
        implementation = request.implementation or _BY_SCHEDULE.get(request.schedule)
        dtype, widening = multiplied_as(problem.dtype, problem.dtype, here)
        if request.schedule in ("tiled", "split-kv") and implementation is None:
            return usual("attention", dtype, here), widening
        caller = caller_of("attention", implementation, dtype, here.architecture.instruction)
        decode = attention.decoding(problem, caller)
        dim = int(np.max(problem.head_dim))
        kernel, notes = resolve(
            "attention", implementation, dtype, here, decode=decode, head_dim=dim
        )
        kernel = replace(routed(problem, kernel, here), caller=kernel.caller)
        wide = next_extent(dim, kernel.head_dims) if kernel.head_dims else dim
        if wide != dim:
            padding = f"{kernel.name} has code for heads of {wide}: those of {dim} are padded"
            notes = (*notes, padding)
        return kernel, (*widening, *notes)

    def routes(self, problem: Attention, device: Device, request: Request) -> np.ndarray | None:
        """Routes of the kernel that is asked for."""
        chip, name = machine(device), request.implementation or _BY_SCHEDULE.get(request.schedule)
        dtype, _ = multiplied_as(problem.dtype, problem.dtype, chip)
        decode = attention.decoding(
            problem, caller_of("attention", name, dtype, chip.architecture.instruction)
        )
        kernel, _ = resolve("attention", name, dtype, chip, decode=decode)
        return routes(problem, kernel, chip) if kernel.where else None

    def style(
        self,
        problem: Attention,
        kernel: AttentionFacts,
        setting: Setting,
    ) -> Style:
        """The style of the tiled kernel, for prefill and decode."""
        return attention_style.style(problem, kernel, setting)

    def plans(
        self,
        problem: Attention,
        schedule: str,
        kernel: AttentionFacts,
        setting: Setting,
    ) -> list[Plan]:
        """The unfused chain, or the fused forward kernel, backward kernels, or both."""
        if kernel.schedule == "standard":
            return unfused.plans(problem, setting)
        plans = []
        if problem.direction in ("fwd", "fwdbwd"):
            split = schedule == "split-kv"
            plans.append(attention.forward_plan(problem, kernel, setting, split=split))
        if problem.direction in ("bwd", "fwdbwd"):
            plans.append(attention_backward.backward_plan(problem, kernel, setting))
        return plans
