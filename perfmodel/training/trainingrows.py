"""A row of a training-run table as a plan of a network (runnetwork.py).

Empty cells take the stack's defaults, which are listed as assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.networks.network import Network
from perfmodel.networks.stack import load as load_stack
from perfmodel.networks.stack import of_program
from perfmodel.training.plan import Plan
from perfmodel.training.runnetwork import Cells, Row, network_of


@dataclass(frozen=True)
class Asked:
    """The network and plan of a row."""

    network: Network
    """The network."""
    plan: Plan
    """The step."""
    assumed: tuple[str, ...]
    """Assumptions for empty cells, a few words each."""

    @property
    def in_turn(self) -> Plan | None:
        """The plan with one chunk a stage, where its chunks are an assumption."""
        guessed = any(each.startswith("chunks ") for each in self.assumed)
        return replace(self.plan, chunks=1) if guessed else None


def plan_of(row: Row) -> Asked:
    """Network, plan and assumptions of a row. Raises `ProblemError` for missing cells."""
    cells = Cells(row)
    network = network_of(cells)
    stack = _stack(cells)
    mesh = _mesh(cells)
    at_once = (load_stack(stack).like or stack) in _AT_ONCE
    micro, accumulation = _batches(
        cells, mesh["data"], at_once=at_once, least=_least_micro(cells, network, stack)
    )
    trains, is_pass = row["pass"] == "train", row["metric"] in _PASSES
    plan = Plan(
        seq=cells.needed("seq"),
        micro_batch=micro,
        accumulation=1 if is_pass else accumulation,
        sequence=mesh["tensor"] > 1 and _splits_sequence(cells, stack),
        chunks=cells.whole("chunks") or _chunks(cells, network, stack, mesh["pipeline"]),
        zero=_zero(cells, stack, mesh["data"] * mesh["context"]),
        reshard="" if cells.missing("reshard") else str(cells.row["reshard"]),
        recompute=str(cells.usual("recompute", "none", "not said")),
        dtype=_DTYPES.get(str(row["dtype"]), str(row["dtype"])),
        stack=stack,
        attention=_kernel(cells),
        dropout=None if cells.missing("dropout") else float(row["dropout"]),
        optimiser=_optimiser(cells, trains=trains and not is_pass),
        loss=not is_pass,
        ends="one transformer layer" not in str(row.get("convention") or ""),
        training=trains,
        **mesh,
    )
    return Asked(network, plan, tuple(cells.assumed))


# Passes that are timed alone, without optimiser and loss (NeuSight's iterations).
_PASSES = ("forward_ms", "backward_ms", "iteration_ms")


def _mesh(cells: Cells) -> dict[str, Any]:
    """Devices by mesh axis; the rest are copies. Raises `ProblemError` if they do not multiply
    out."""
    axes = {name: cells.whole(name) or 1 for name in ("tensor", "pipeline", "context", "expert")}
    devices = cells.needed("devices")
    copy = axes["tensor"] * axes["pipeline"] * axes["context"]
    data = cells.whole("data") or max(devices // copy, 1)
    if data * copy != devices:
        raise ProblemError(
            f"{devices} devices are not data {data} x tensor {axes['tensor']} x pipeline "
            f"{axes['pipeline']} x context {axes['context']}; mend one of them"
        )
    return axes | {"data": data}


_DEEP = 8  # stages from which a pipeline is deep


def _chunks(cells: Cells, network: Network, stack: str, stages: int) -> int:
    """Chunks of a stage where the stack interleaves deep pipelines: the most that are even and have
    two layers, as in NVIDIA's recipes (GPT-3 175B, 8 stages: 6; Llama 3.1 405B, 8 stages: 8)."""
    first_year = load_stack(stack).interleaves_since
    if not first_year or stages < _DEEP or (cells.whole("year") or 0) < first_year:
        return 1
    # The parts with the embedding and the head may have a layer less each (2407.21783, 3.3.2).
    depths = {(network.layers + less) / stages for less in (0, 2)}
    fits = [
        n for n in range(1, network.layers // stages + 1) if any(e % (2 * n) == 0 for e in depths)
    ]
    return int(cells.usual("chunks", max(fits, default=1), "two layers each"))


# Stacks whose frameworks run all sequences of a device in one pass by default.
_AT_ONCE = ("eager", "compile", "compile-2024", "liger")


def _least_micro(cells: Cells, network: Network, stack: str) -> int:
    """The least micro-batch that the stack's fused softmax takes."""
    heads = network.blocks[-1].attention.heads // (cells.whole("tensor") or 1)
    multiple = load_stack(stack).softmax_multiple
    return multiple // gcd(multiple, max(heads, 1))


def _batches(cells: Cells, data: int, *, at_once: bool, least: int) -> tuple[int, int]:
    """Sequences of a micro-batch, and micro-batches of a step; where a row does not say, the
    `least` micro-batch that divides them."""
    micro, total = cells.whole("micro_batch"), cells.whole("global_batch")
    if micro is None:
        size = (total or 1) // data if at_once and (cells.whole("pipeline") or 1) == 1 else least
        size = gcd(size, (total or size) // data) if total else size
        micro = int(cells.usual("micro_batch", max(size, 1), "not said"))
    if total is None:
        return micro, 1
    if total % (micro * data):
        raise ProblemError(
            f"global batch {total} does not divide by micro-batch {micro} x data {data}; "
            f"{-(-total // (micro * data)) * micro * data} would"
        )
    return micro, total // (micro * data)


_FUSED_SINCE = 2023
_LONG = 4096  # tokens; above, nobody keeps the scores in memory
_CHANGED = {"compile": (2025, "compile-2024"), "megatron": (2022, "megatron-2021")}
"""Stacks that changed, with the first year of the change and the stack before it."""

# Formats with other scales than the package's own.
_DTYPES = {"mxfp8": "fp8", "fp8_block": "fp8", "fp16-amp": "fp16", "bf16-amp": "bf16"}

# How tables name attention, and the package's name; any other name is a kernel's.
_ATTENTION = {
    "unfused": "unfused",
    "flash": "flash",
    "sdpa": "flash",
    "flash-triton": "flash-triton",
}


def _splits_sequence(cells: Cells, stack: str) -> bool:
    """Whether the devices of a layer split its rows: the row's cell, or the stack's default."""
    if not cells.missing("sequence_parallel"):
        return bool(cells.row["sequence_parallel"])
    default = load_stack(stack).splits_sequence
    return bool(cells.usual("sequence_parallel", default, f"as {stack} does")) if default else False


def _zero(cells: Cells, stack: str, copies: int) -> int:
    """The ZeRO stage of a row, or that of the stack's recipes where there are copies."""
    default = load_stack(stack).zero if copies > 1 else 0
    if not default or not cells.missing("zero"):
        return cells.whole("zero") or 0
    return int(cells.usual("zero", default, f"as {stack}'s recipes"))


def _kernel(cells: Cells) -> str:
    """The attention of a row; empty: the stack's own.

    Frameworks have had one fused kernel since 2023 (PyTorch 2.0, SDPA), which long sequences need.
    """
    if cells.missing("attention"):
        year, seq = cells.whole("year") or 0, cells.whole("seq") or 0
        if year > _FUSED_SINCE or (year == _FUSED_SINCE and seq > _LONG):
            return str(
                cells.usual(
                    "attention",
                    "flash",
                    f"after {_FUSED_SINCE}" if year > _FUSED_SINCE else f"{seq} tokens",
                )
            )
        return ""
    name = str(cells.row["attention"])
    return _ATTENTION.get(name, name)


def _stack(cells: Cells) -> str:
    """The row's stack, or that of the program which its software or its source names;
    torch.compile excluded the loss before 2025."""
    for column in ("software", "source"):
        named = of_program("" if cells.missing(column) else str(cells.row[column]))
        if cells.missing("stack") and named:
            return str(cells.usual("stack", named, f"by its {column}"))
    software = "" if cells.missing("software") else str(cells.row["software"])
    stack = str(cells.usual("stack", "megatron", "not said"))
    year = cells.whole("year") or 0
    first_year, early = _CHANGED.get(stack, (0, stack))
    return early if 0 < year < first_year else of_program(software, stack)


def _optimiser(cells: Cells, *, trains: bool) -> str:
    if not trains:
        return "none"
    return "adamw" if cells.missing("optimiser") else str(cells.row["optimiser"])
