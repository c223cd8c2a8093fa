"""`perfmodel list [KIND]`: every name that an option takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from perfmodel import operators
from perfmodel.algorithms.matmul import FORMATS
from perfmodel.algorithms.rowwise import MAPS
from perfmodel.analysis.usual import CASES, families, usual
from perfmodel.cli import spellings
from perfmodel.cli.build import command
from perfmodel.elements import ELEMENTS
from perfmodel.fieldoption import FieldOption
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.plaintext import listed, opening
from perfmodel.render import Column, Report
from perfmodel.render.report import text
from perfmodel.timing import stated
from perfmodel.timing.architectures import ARCHITECTURES
from perfmodel.timing.libraries import kernels
from perfmodel.timing.libraries.facts import ROW_OPERATORS
from perfmodel.timing.runs import HARNESSES

Row = dict[str, Any]
KINDS = (
    "operators", "implementations", "schedules", "harnesses", "types", "variants", "algorithms",
    "graphs", "networks", "engines", "optimisers", "precisions", "levels", "architectures",
    "devices", "systems", "words",
)  # fmt: skip
"""Kinds that can be listed; words of tables are no names that options take."""
_CATALOGUES = {
    "algorithms": "algorithms.library",
    "graphs": "graph",
    "optimisers": "training.optimisers",
    "precisions": "training.precision",
    "words": "glossary",
}
"""Modules that know names, and load what stands for one."""
SCHEDULES = {
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
LEVELS = {
    "shared": "memory next to a unit: shared memory, LDS",
    "l2": "the cache in front of memory; L3 on a CPU",
    "llc": "a memory-side cache: Infinity Cache",
    "hbm": "the device's own memory, whatever it is made of",
    "host": "host memory, over PCIe or NVLink-C2C (--place kv=host)",
    "peer": "memory of devices in the node, over NVLink or xGMI",
    "network": "memory of other nodes, over a NIC",
}


def singular(kind: str) -> str:
    """A kind of names as `perfmodel show` takes it: a single one."""
    return "harness" if kind == "harnesses" else kind.removesuffix("s")


_SPELLINGS = {
    **{singular(kind): kind for kind in KINDS},
    **dict.fromkeys(("gpu", "gpus", "hardware"), "devices"),
    "models": "networks",
    "ops": "operators",
    "kernels": "implementations",
    "dtypes": "types",
    "optimizers": "optimisers",
}
"""What kinds are also called."""


def _read_kinds(text: str) -> list[str]:
    """The kinds in a list, in our own spelling. Raises `UnknownName`."""
    names = (_SPELLINGS.get(name, name) for name in spellings.names(text))
    return [spellings.named("kind of names", name, KINDS) for name in names]


def _read_operators(text: str) -> list[str]:
    return [spellings.named("operator", name, operators.names()) for name in spellings.names(text)]


@dataclass(frozen=True)
class Asked:
    """What `list` is asked for."""

    kind: Annotated[
        Sequence[str],
        FieldOption(
            metavar="KINDS", argument=True, read=_read_kinds, names="perfmodel.cli.list_:KINDS"
        ),
    ] = KINDS[:-1]
    """Kinds to list, with commas: operators, implementations, schedules, harnesses, types,
    variants, algorithms, graphs, networks, engines, optimisers, precisions, levels, architectures,
    devices, systems, words (the glossary)."""
    operator: Annotated[
        Sequence[str],
        FieldOption(metavar="NAMES", read=_read_operators, names="perfmodel.operators:names"),
    ] = ()
    """Only names that these operators take, with commas: attention,gemm."""


def list_(asked: Asked) -> Report:
    """List the names that options take, with their meanings.

    \b
    perfmodel list
    perfmodel list implementations --operator attention
    perfmodel list types --format json
    """
    choices = set(asked.operator)
    rows = [
        {"kind": kind, **row}
        for kind in asked.kind
        for row in names_of(kind)
        if not choices or row["operators"] is None or choices.intersection(row["operators"])
    ]
    if len(asked.kind) == 1:
        columns = _OWN.get(asked.kind[0], [text("name", "name"), _OPERATORS, _about(46)])
        columns = [each for each in columns if len(choices) != 1 or each.header != "operators"]
    else:
        columns = [text("kind", "kind"), text("name", "name"), _OPERATORS, _about(28)]
    return Report("names", rows, columns, examples=_EXAMPLE)


def names_of(kind: str) -> Iterator[Row]:
    """The names of a kind, each with its meaning and the operators that take it; None: all."""

    def row(name: str, about: str, *takers: str, **more: Any) -> Row:
        return {"name": name, "operators": [*takers] or None, "about": about, **more}

    if kind in _CATALOGUES:
        library = import_module(f"perfmodel.{_CATALOGUES[kind]}")
        takers = ["explain", "map"] if kind == "algorithms" else []
        yield from (row(name, library.load(name).about, *takers) for name in library.names())
    elif kind == "operators":
        yield from (row(each.name, each.about, each.name) for each in operators.every())
    elif kind == "implementations":
        rowwise = [name for name in ROW_OPERATORS if name != "rowwise"]
        for name, kernel in kernels().items():
            takers = rowwise if kernel.operator == "rowwise" else [kernel.operator]
            allowed = [a.name for a in ARCHITECTURES.values() if kernel.runs_on.allows(a)]
            own = {"library": stated.library_of(kernel), "goes_by": list(stated.goes_by(name))}
            own |= {"source": kernel.source, "runs_on": allowed}
            yield row(name, kernel.about or kernel.source, *takers, **own)
    elif kind == "schedules":
        entries = list(operators.every())
        for name in dict.fromkeys(name for each in entries for name in each.schedules):
            takers = [each.name for each in entries if name in each.schedules]
            all_take = len(takers) == len(entries)
            yield row(name, SCHEDULES.get(name, ""), *([] if all_take else takers))
    elif kind == "harnesses":
        yield from (row(run.name, run.about) for run in HARNESSES.values())
    elif kind == "types":
        others = [name for name in BUILT_IN if name != "gemm"]
        for name in dict.fromkeys((*ELEMENTS, *FORMATS)):
            parts, takers = [], list[str]()
            if name in ELEMENTS:
                parts, takers = [f"{float(ELEMENTS[name].bits):g} bits"], others
            if name in FORMATS:
                form, takers = FORMATS[name], [*takers, "gemm"]
                parts.append(f"gemm: {form.activations} x {form.weights}")
            yield row(name, "; ".join(parts), *takers)
    elif kind == "variants":
        yield from (row(name, "an element-wise map", "pointwise") for name in MAPS)
    elif kind == "levels":
        yield from (row(name, about) for name, about in LEVELS.items())
    elif kind == "architectures":
        for name, devices in families().items():
            slugs = ", ".join(device.slug for device in devices)
            yield row(name, slugs, usual=usual(devices[0]))
    elif kind == "networks":
        from perfmodel.networks import library as networks

        for entry in networks.entries():
            yield row(entry.network.name, ", ".join([entry.network.source, *entry.aliases]))
    elif kind == "engines":
        from perfmodel.serving import engine as engines

        for engine in map(engines.load, engines.names()):
            about = [engine.about, f"of {engine.version}", *engine.aliases]
            yield row(engine.name, "; ".join(about))
    elif kind == "devices":
        from perfmodel.hardware import specs

        for device in specs():
            yield row(device.slug, ", ".join([device.name, *device.aliases]))
    elif kind == "systems":
        from perfmodel.hardware import systems

        for system in systems.every():
            levels = ", ".join(f"{level.name} {level.devices.value:,}" for level in system.levels)
            yield row(system.slug, f"{system.name}: {levels}")


_EXAMPLE: list[Row] = [
    {"kind": "", "name": "", "operators": [], "about": ""},
    {"library": "", "source": "", "runs_on": [], "goes_by": [], "usual": dict.fromkeys(CASES, "")},
]


def _about(wrap: int) -> Column:
    """The meaning of a name: its first sentence."""

    def first(row: Mapping[str, Any]) -> str:
        return str(row["about"]).split(". ")[0].split("; ")[0]

    return Column("about", first, number=False, wrap=wrap, fold=24, rank=2)


def _runs_on(row: Mapping[str, Any]) -> str:
    """Architectures that a kernel exists for, shortened to the column."""
    names = row["runs_on"]
    return "all" if len(names) == len(ARCHITECTURES) else listed(names, 22)


def _usual(case: str) -> Column:
    header = case.removesuffix(" fp16") if case.startswith("attention") else case
    return text(header, f"usual.{case}")


_OPERATORS = Column(
    "operators", lambda row: listed(row["operators"] or ["all"], 24), number=False, rank=1
)
_OWN: Mapping[str, list[Column]] = {
    "implementations": [
        text("name", "name"),
        Column("operators", lambda row: listed(row["operators"], 15), number=False, rank=1),
        Column("library", lambda row: row["library"].split(", ")[0], number=False, wrap=13,
               fold=12),
        Column("runs on", _runs_on, number=False, wrap=14, fold=12, rank=1),
        Column("about", lambda row: opening(row["about"]).split(", recalled")[0], number=False,
               wrap=17, fold=17, rank=2),
    ],
    "architectures": [text("name", "name"), *map(_usual, CASES)],
}  # fmt: skip
"""Columns of the kinds that have additional ones."""

app = command(list_, "list")
