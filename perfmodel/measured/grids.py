"""Named grids of cases to measure, each a table of `cases/`, and tables of a user's own.

Grids are stratified: they cover every axis with a few points. The grids of a CPU and `quick` are
ordered by work, least first. `proof` and `full` are ordered by importance, so that a run cut short
on a GPU has measured the most important cases:

    proof   61 cases that compare the bundled kernels with their rivals, in turn by family
    full    proof, then attention over lengths (16,384 tokens a prefill, as in published sweeps),
            products, decode steps, backward passes, and rows from tensors that stay in L2 to
            tensors of several GB
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from perfmodel import casefile
from perfmodel.cases import Case
from perfmodel.errors import UnknownName

OPS = ("attention", "gemm", "softmax", "layernorm", "rmsnorm", "pointwise")
GRIDS = {
    "cpu-quick": ("cpu-quick",), "cpu-full": ("cpu-full",), "quick": ("quick",),
    "proof": ("proof",), "full": ("proof", "full"),
}  # fmt: skip
"""Each grid with its tables, one after another."""


def grid(name: str) -> tuple[Case, ...]:
    """The cases of a grid or of a table of cases (.csv), in the order to measure them.

    Raises `UnknownName` for another name, `TableError` for a table that holds none.
    """
    paths = [Path(name)]
    if not name.endswith(".csv"):
        if name not in GRIDS:
            raise UnknownName("grid of cases", name, GRIDS, "(or name a .csv file)")
        folder = Path(str(resources.files("perfmodel.measured"))) / "cases"
        paths = [folder / f"{table}.csv" for table in GRIDS[name]]
    return tuple(dict.fromkeys(entry.case for path in paths for entry in casefile.read(path)))


def only(cases: tuple[Case, ...], ops: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of some operations; raises `UnknownName` for an operation there is not."""
    for op in ops:
        if op not in OPS:
            raise UnknownName("operation", op, OPS)
    return tuple(case for case in cases if not ops or case.op in ops)
