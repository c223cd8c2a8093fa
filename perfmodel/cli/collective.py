"""`perfmodel collective OP`: an exchange among devices; `collective wall`: roofs of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from click import Command

from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import ranges
from perfmodel.cli.arguments import TypeName
from perfmodel.cli.build import Group, command
from perfmodel.cli.leftout import possible
from perfmodel.cli.networkoptions import SYSTEM
from perfmodel.collectives import OPS, Collective, predict_collective
from perfmodel.collectives.collectivetime import libraries
from perfmodel.collectives.wall import Layer, wall
from perfmodel.fieldoption import FieldOption
from perfmodel.hardware import System
from perfmodel.render import Report
from perfmodel.render import collectives as render

MOST = 50_000
"""Limit on cases: what is printed in a few seconds."""
_BYTES = ranges.read("1k:1G:x16", "")
Machines = Annotated[
    Sequence[System],
    replace(
        SYSTEM,
        help="Systems, with commas or repeated: slugs, aliases, spec files, or devices "
        "(perfmodel list systems).",
    ),
]


@dataclass(frozen=True)
class Asked:
    """What is asked of a collective."""

    system: Machines
    """The systems."""
    bytes: Annotated[ranges.Values, FieldOption(None, "BYTES", ("--bytes", "-b"))] = _BYTES
    """Bytes of the full tensor; for an all-to-all, of one rank's buffer: a size, list (1k,1M) or
    range (1k:1G:x4)."""
    ranks: Annotated[ranges.Values | None, FieldOption(None, "RANKS", ("--ranks", "-n"))] = None
    """Number of devices: a size, list (8,64) or range (8:64:x2) [default: 8; 2 that send and
    receive]."""
    ranks_per_node: Annotated[int | None, FieldOption(metavar="RANKS", single=True)] = None
    """Devices in one node [default: full nodes]."""
    library: Annotated[str, FieldOption(None, "NAME", single=True, names=libraries())] = "nccl"
    """Library."""
    dtype: TypeName = "bf16"
    """Type of the elements."""
    terms: bool = False
    """Show every term (JSON and CSV always do)."""


def exchange(op: str, asked: Asked) -> Report:
    """Predict a collective over sizes and numbers of ranks."""
    ranks = list(asked.ranks or [2 if op == "send-receive" else 8])
    check_cases(len(asked.system) * len(asked.bytes) * len(ranks), MOST, "narrow a range")

    def rows_of(machine: System, count: int) -> list[dict[str, Any]]:
        problem = Collective(op, asked.bytes.array, count, asked.ranks_per_node, asked.dtype)
        answers = predict_collective(problem, machine, library=asked.library)
        return [answers.one(i).as_dict() for i in range(len(answers))]

    parts = possible(
        (f"{machine.slug}, {count:,} ranks", partial(rows_of, machine, count))
        for machine in asked.system
        for count in ranks
    )
    return render.report([row for part in parts for row in part], terms=asked.terms)


def wall_(system: Machines, layer: Layer) -> Report:
    """Show how far each parallelism scales before communication takes longer than computing.

    \b
    perfmodel collective wall --system dgx-h100 --hidden 8k
    perfmodel collective wall -s dgx-h100 --hidden 16k --heads 128 --dtype fp8
    """
    rows = [
        {"system": machine.slug, **ridge.as_dict()}
        for machine in system
        for ridge in wall(machine, layer)
    ]
    return render.wall(rows, f"hidden {layer.hidden}, {layer.dtype}, documented rates")


def _collective(op: str) -> Command:
    """The command of a kind of collective; send-receive is between two devices."""
    ranks = "2" if op == "send-receive" else "8:64:x2"
    text = f"""Predict {op} over sizes and numbers of ranks.

    \b
    perfmodel collective {op} -s dgx-h100 --bytes 1k:1G:x4 --ranks {ranks}
    perfmodel collective {op} -s dgx-h100,dgx-b200 -b 64M -n {ranks} --terms
    """
    return command(partial(exchange, op), op, help=text)


_HELP = """Predict exchanges among devices, with the library's choice of algorithm and protocol.

\b
perfmodel collective all-reduce --system dgx-h100 --bytes 1k:1G:x4 --ranks 8,64
perfmodel collective all-to-all -s dgx-h100,dgx-b200 -b 64M -n 64 --terms
perfmodel collective wall --system dgx-h100 --hidden 8k
"""
_COMMANDS = {op: _collective(op) for op in OPS}
app = Group(commands={**_COMMANDS, "wall": command(wall_, "wall")}, help=_HELP)
