"""`perfmodel list [KIND]`: every name that an option takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from perfmodel import operators
from perfmodel.algorithms.rowwise import MAPS
from perfmodel.analysis.usual import CASES, families, usual
from perfmodel.cli import completing, known
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown
from perfmodel.fieldoption import FieldOption
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.plaintext import opening
from perfmodel.render import Column, Report
from perfmodel.render.report import listed, text
from perfmodel.timing import stated
from perfmodel.timing.architectures import ARCHITECTURES
from perfmodel.timing.libraries import kernels
from perfmodel.timing.runs import HARNESSES

Row = dict[str, Any]
_COMPLETE = completing.of_list("perfmodel.cli.list_:KINDS")


def _read_kinds(text: str) -> list[str]:
    """The kinds in a list, in our own spelling. Raises `UnknownName`."""
    names = (_SPELLINGS.get(name, name) for name in known.names(text))
    return [known.named("kind of names", name, KINDS) for name in names]


def _read_operators(text: str) -> list[str]:
    return [known.named("operator", name, operators.names()) for name in known.names(text)]


@dataclass(frozen=True)
class Asked:
    """What `list` is asked for."""

    kind: Annotated[
        Sequence[str] | None,
        FieldOption(metavar="KINDS", argument=True, read=_read_kinds, complete=_COMPLETE),
    ] = None
    """Kinds to list, with commas: operators, implementations, schedules, harnesses, types,
    variants, algorithms, graphs, networks, engines, optimisers, precisions, levels, architectures,
    devices, systems."""
    operator: Annotated[
        Sequence[str] | None,
        FieldOption(metavar="NAMES", read=_read_operators, complete=completing.operators),
    ] = None
    """Only names that these operators take, with commas: attention,gemm."""


def list_(asked: Asked, shown: Shown) -> None:
    """List the names that options take, with their meanings.

    \b
    perfmodel list
    perfmodel list implementations --operator attention
    perfmodel list types --format json
    """
    choices = set(asked.operator or ())
    rows = [
        {"kind": name, **row}
        for name in asked.kind or KINDS
        for row in KINDS[name]()
        if not choices or row["operators"] is None or choices.intersection(row["operators"])
    ]
    columns = _columns(asked.kind or (), len(choices))
    shown.emit(Report("names", rows, columns, examples=_EXAMPLE))


def _columns(kinds: Sequence[str], operators: int) -> list[Column]:
    """Columns of the table for these kinds; `operators` is the number of operators listed."""
    if len(kinds) != 1:
        return [text("kind", "kind"), text("name", "name"), _OPERATORS, _about(28)]
    columns = _OWN.get(kinds[0], [text("name", "name"), _OPERATORS, _about(46)])
    return [column for column in columns if operators != 1 or column is not _OPERATORS]


_EXAMPLE: list[Row] = [
    {"kind": "", "name": "", "operators": [], "about": ""},
    {"library": "", "runs_on": [], "goes_by": [], "usual": dict.fromkeys(CASES, "")},
]


def _about(wrap: int) -> Column:
    """The meaning of a name: its first sentence."""

    def first(row: Mapping[str, Any]) -> str:
        return str(row["about"]).split(". ")[0].split("; ")[0]

    return Column("about", first, number=False, wrap=wrap, fold=24, rank=2)


def _all_operators() -> Iterator[Row]:
    for item in operators.every():
        yield _row(item.name, item.about, item.name)


def _row(name: str, about: str, *operators: str) -> Row:
    """A row for a name; without `operators` it applies to all of them."""
    return {"name": name, "operators": [*operators] or None, "about": about}


def _implementations() -> Iterator[Row]:
    rowwise = [name for name in BUILT_IN if name not in ("attention", "gemm")]
    for name, kernel in kernels().items():
        operators = rowwise if kernel.operator == "rowwise" else [kernel.operator]
        allowed = [a.name for a in ARCHITECTURES.values() if kernel.runs_on.allows(a)]
        yield {
            **_row(name, kernel.source, *operators),
            "library": stated.library_of(kernel),
            "runs_on": allowed,
            "goes_by": list(stated.goes_by(name)),
        }


def _architectures() -> Iterator[Row]:
    for name, devices in families().items():
        row = _row(name, ", ".join(device.slug for device in devices))
        yield {**row, "usual": usual(devices[0])}


def _schedules() -> Iterator[Row]:
    entries = list(operators.every())
    for name in dict.fromkeys(name for o in entries for name in o.schedules):
        takers = [o.name for o in entries if name in o.schedules]
        yield _row(name, _SCHEDULES.get(name, ""), *(takers if len(takers) < len(entries) else ()))


def _types() -> Iterator[Row]:
    from perfmodel.algorithms.matmul import FORMATS
    from perfmodel.elements import ELEMENTS

    others = [name for name in BUILT_IN if name != "gemm"]
    for name in dict.fromkeys((*ELEMENTS, *FORMATS)):
        products = ["gemm"] if name in FORMATS else []
        about = f"{float(ELEMENTS[name].bits):g} bits" if name in ELEMENTS else ""
        if name in FORMATS:
            form = FORMATS[name]
            about += f"{'; ' if about else ''}gemm: {form.activations} x {form.weights}"
        yield _row(name, about, *(others if name in ELEMENTS else []), *products)


def _variants() -> Iterator[Row]:
    for name in MAPS:
        yield _row(name, "an element-wise map", "pointwise")


def _harnesses() -> Iterator[Row]:
    for run in HARNESSES.values():
        yield _row(run.name, run.about)


def _entries(module: str) -> Callable[[], Iterator[Row]]:
    """The names that a module knows, with their descriptions."""

    def rows() -> Iterator[Row]:
        library = import_module(f"perfmodel.{module}")
        takers = ("explain", "map") if module == "algorithms.library" else ()
        for name in library.names():
            yield _row(name, library.load(name).about, *takers)

    return rows


def _networks() -> Iterator[Row]:
    from perfmodel.networks import library

    for entry in library.entries():
        yield _row(entry.network.name, ", ".join([entry.network.source, *entry.aliases]))


def _engines() -> Iterator[Row]:
    from perfmodel.serving import engine

    for name in engine.names():
        entry = engine.load(name)
        yield _row(name, "; ".join([entry.about, f"of {entry.version}", *entry.aliases]))


def _levels() -> Iterator[Row]:
    for name, about in _LEVELS.items():
        yield _row(name, about)


def _devices() -> Iterator[Row]:
    from perfmodel.hardware import specs

    for device in specs():
        yield _row(device.slug, ", ".join([device.name, *device.aliases]))


def _systems() -> Iterator[Row]:
    from perfmodel.hardware import systems

    for system in systems.every():
        levels = ", ".join(f"{level.name} {level.devices.value:,}" for level in system.levels)
        yield _row(system.slug, f"{system.name}: {levels}")


KINDS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "operators": _all_operators,
    "implementations": _implementations,
    "schedules": _schedules,
    "harnesses": _harnesses,
    "types": _types,
    "variants": _variants,
    "algorithms": _entries("algorithms.library"),
    "graphs": _entries("graph"),
    "networks": _networks,
    "engines": _engines,
    "optimisers": _entries("training.optimisers"),
    "precisions": _entries("training.precision"),
    "levels": _levels,
    "architectures": _architectures,
    "devices": _devices,
    "systems": _systems,
}
"""Kinds that can be listed."""


def singular(kind: str) -> str:
    """A kind of names as `perfmodel show` takes it: a single one."""
    return "harness" if kind == "harnesses" else kind.removesuffix("s")


_SPELLINGS = {
    **{singular(kind): kind for kind in KINDS},
    "gpu": "devices",
    "gpus": "devices",
    "hardware": "devices",
    "models": "networks",
    "ops": "operators",
    "kernels": "implementations",
    "dtypes": "types",
    "optimizers": "optimisers",
}
"""What kinds are also called."""

_SCHEDULES = {
    "auto": "the usual one of the implementation; of a declared algorithm, the fastest found",
    "fused": "all steps in one kernel",
    "unfused": "a kernel for each step",
    "standard": "unfused: scores and weights go through memory",
    "tiled": "fused and tiled; of a product: without slices of k",
    "tiled-1": "FlashAttention-1's loop order: keys outside",
    "tiled-2": "FlashAttention-2's: queries outside",
    "tiled-3": "FlashAttention-3's: queries outside, warp-specialised",
    "split-kv": "keys cut into slices that are added up afterwards",
    "split-k": "tiled, k cut into slices where that is faster",
}
_LEVELS = {
    "shared": "memory next to a unit: shared memory, LDS",
    "l2": "the cache in front of memory; L3 on a CPU",
    "llc": "a memory-side cache: Infinity Cache",
    "hbm": "the device's own memory, whatever it is made of",
    "host": "host memory, over PCIe or NVLink-C2C (--place kv=host)",
    "peer": "memory of devices in the node, over NVLink or xGMI",
    "network": "memory of other nodes, over a NIC",
}
_OPERATORS = Column(
    "operators", lambda row: listed(row["operators"] or ["all"], 24), number=False, rank=1
)


def _runs_on(row: Mapping[str, Any]) -> str:
    """Architectures that a kernel exists for, shortened to the column."""
    names = row["runs_on"]
    return "all" if len(names) == len(ARCHITECTURES) else listed(names, 22)


def _source(row: Mapping[str, Any]) -> str:
    """The source of a kernel's facts, without the list of facts."""
    return opening(row["about"]).split(", recalled")[0]


def _library(row: Mapping[str, Any]) -> str:
    """A library's own name, without the rest of its file's description."""
    return str(row["library"]).split(", ")[0]


def _usual(case: str) -> Column:
    header = case.removesuffix(" fp16") if case.startswith("attention") else case
    return Column(header, lambda row: row["usual"][case], number=False)


_OWN: Mapping[str, list[Column]] = {
    "implementations": [
        text("name", "name"),
        _OPERATORS,
        Column("library", _library, number=False, wrap=13, fold=12),
        Column("runs on", _runs_on, number=False, wrap=15, fold=12, rank=1),
        Column("source", _source, number=False, wrap=22, fold=20, rank=2),
    ],
    "architectures": [text("name", "name"), *map(_usual, CASES)],
}
"""Columns of the kinds that have additional ones."""

app = command(list_, "list")
