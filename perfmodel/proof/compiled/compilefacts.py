"""Resources of the bundled kernels' binaries, from the table `kernels/compiled.csv`.

    facts = compilefacts.table()
    facts.of(kernel, problem, config, target)     # a row for each launch, or None

One row is one binary. Its key is a hash of everything that goes into the compiler: the function's
source, its constants, the types and divisibility of its arguments, warps and stages. Two problems
that compile to the same binary share a row. A kernel that was changed since has no row. The rows
are written by `python -m perfmodel.measured.compilesuite --write`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perfmodel.errors import TableError
from perfmodel.proof.compiled import binarycache
from perfmodel.proof.compiled.sources import fingerprint
from perfmodel.proof.compiled.targets import Target
from perfmodel.proof.kernel import BundledKernel, Launch

NAME = "compiled.csv"
PIPES = ("matrix", "special", "fma", "alu", "lsu", "issue", "valu", "lds", "vmem", "scalar")
"""Pipes of NVIDIA's and AMD's units; a binary has cycles for those of its target."""
FITS, UNFIT, REFUSED = "fits", "unfit", "refused"


@dataclass(frozen=True)
class LaunchFacts:
    """One binary. The numbers are 0 unless it fits.

    For specialised warps only spills inside a loop count: the few values that they store once at
    their start cost next to no time.
    """

    key: str
    """Hash of the compiler's inputs (`launch_key`)."""
    kernel: str
    """The bundled kernel."""
    launch: str
    """The schedule's kernel."""
    target: str
    """What it was compiled for."""
    triton: str
    """Version of Triton."""
    problem: str
    """A problem that compiles to this binary."""
    config: str
    """The config."""
    status: str
    """`fits`, `unfit` (a block needs more on-chip memory than there is) or `refused` (by the
    compiler)."""
    reason: str = ""
    """Why it was refused."""
    registers: int = 0
    """Registers of a thread."""
    spill_bytes: int = 0
    """Spilled bytes of a thread."""
    shared_bytes: int = 0
    """Bytes of shared memory of a block."""
    tensor_memory_columns: int = 0
    """Columns of tensor memory of a block."""
    threads: int = 0
    """Threads of a block."""
    blocks: int = 0
    """Blocks resident on one compute unit of the target's default device."""
    looped: bool = False
    """Whether there is a loop."""
    flops_per_pass: float = 0.0
    """Matrix operations of a block in one pass of the innermost loop; 0 without matrix
    instructions."""
    cycles: Mapping[str, float] = field(default_factory=dict)
    """Busy cycles of each pipe in one pass of the innermost loop; without a loop, in the whole
    listing."""

    @property
    def usable(self) -> bool:
        """Whether the binary fits and spills nothing."""
        return self.status == FITS and not self.spill_bytes

    def row(self) -> dict[str, str]:
        """The cells of the table."""
        cells = {name: str(getattr(self, name)) for name in _PLAIN}
        return cells | {f"{pipe}_cycles": _cell(self.cycles.get(pipe)) for pipe in PIPES}

    def says(self) -> dict[str, str]:
        """The cells that depend on the binary alone, not on the kernel and problem that it was made
        for."""
        return {name: cell for name, cell in self.row().items() if name not in _MADE_BY}


_MADE_BY = ("kernel", "problem", "config")
_PLAIN = tuple(item.name for item in fields(LaunchFacts) if item.name != "cycles")
COLUMNS = (*_PLAIN, *(f"{pipe}_cycles" for pipe in PIPES))


class Facts:
    """The table, indexed by the hash of the compiler's inputs."""

    def __init__(self, rows: Iterable[LaunchFacts]) -> None:
        self._by_key = {row.key: row for row in rows}

    def __len__(self) -> int:
        return len(self._by_key)

    def rows(self) -> tuple[LaunchFacts, ...]:
        """Every row."""
        return tuple(self._by_key.values())

    def of(
        self, kernel: BundledKernel, problem: Any, config: Any, target: Target
    ) -> tuple[LaunchFacts, ...] | None:
        """The facts of every launch; None where one of them is not in the table.

        Raises `ProblemError` for what the kernel cannot do.
        """
        rows = [
            self._by_key.get(launch_key(content(kernel, problem, config, launch, target)))
            for launch in kernel.launches(problem, config)
        ]
        return None if None in rows else tuple(item for item in rows if item is not None)


def content(
    kernel: BundledKernel, problem: Any, config: Any, launch: Launch, target: Target
) -> dict[str, Any]:
    """What goes into the compiler for a launch, specialised as Triton's launcher would do it.

    Pointers and sizes that are multiples of 16 are declared so, and a size of 1 is a constant.
    """
    signature, constants = dict(launch.signature), dict(launch.constexprs)
    sizes = {array.name: array.size_bytes for array in kernel.arrays(problem, config)}
    attributes: dict[str, list[list[Any]]] = {}
    for i, name in enumerate(launch.function.arg_names):
        value = launch.arguments.get(name)
        if isinstance(value, str):
            attributes[str(i)] = [["tt.divisibility", 16]]
            if not target.nvidia and sizes[value] < 2**31:
                attributes[str(i)].append(["tt.pointer_range", 32])
        elif isinstance(value, int) and value == 1:
            signature[name], constants[name] = "constexpr", 1
        elif isinstance(value, int) and value % 16 == 0:
            attributes[str(i)] = [["tt.divisibility", 16]]
    return {
        "signature": signature,
        "constexprs": constants,
        "attributes": attributes,
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
        "backend": target.backend,
        "arch": target.arch,
        "warp_size": target.warp_size,
        "source": fingerprint(launch.function),
    }


def launch_key(content: Mapping[str, Any]) -> str:
    """The key of a binary in the table. The compiler's version is a column and not part of the
    key."""
    return binarycache.key(content)[:16]


@cache
def table() -> Facts:
    """The table beside the bundled kernels; empty where there is none."""
    path = folder() / NAME
    return Facts(read(path) if path.is_file() else ())


def folder() -> Path:
    """The folder of the bundled kernels: as installed, else that of the checkout."""
    spec = find_spec("perfmodel_kernels")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    return Path(__file__).resolve().parents[3] / "kernels"


def read(path: Path) -> tuple[LaunchFacts, ...]:
    """The rows of a table file; raises `TableError` for a file that is not one."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise TableError(f"{path}: not a table of compile facts; make it anew")
        try:
            return tuple(_fact(row) for row in reader)
        except ValueError as error:
            raise TableError(f"{path}:{reader.line_num}: {error}; make it anew") from None


def dumped(rows: Sequence[LaunchFacts]) -> str:
    """The rows as CSV, in an order that does not depend on when they were made."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    order = sorted(rows, key=lambda row: (row.kernel, row.target, row.problem, row.config, row.key))
    writer.writerows(row.row() for row in order)
    return text.getvalue()


def _fact(row: Mapping[str, str]) -> LaunchFacts:
    values: dict[str, Any] = {
        item.name: _CELL[str(item.type)](row[item.name])
        for item in fields(LaunchFacts)
        if item.name != "cycles"
    }
    cycles = {pipe: float(cell) for pipe in PIPES if (cell := row[f"{pipe}_cycles"])}
    return LaunchFacts(**values, cycles=cycles)


_CELL: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda cell: cell == "True",
}


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
