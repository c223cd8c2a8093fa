"""Families of kernels as discrete facts: which schedule, tiles and instructions they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, Literal

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.timing.architectures import architectures
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.rules import EvenRule, GraphRule, HeadRule, SplitRule, WaveRule

Instruction = Literal["register", "native", "vector"]
TileRow = tuple[int, int, int]


@dataclass(frozen=True)
class Chain:
    """An operator as a chain of framework operators: `kernels` of them, `streams` tensors read."""

    kernels: int
    streams: int


@dataclass(frozen=True)
class Rows:
    """How a row-wise kernel lays out a row. Operations beyond the algorithm's are the forward
    pass's."""

    held_columns: int
    """Longest row that stays in registers; longer ones are streamed."""
    elements_per_thread: int
    """Elements of a row for which one more thread is taken."""
    most_threads: int
    """Most threads of a row."""
    passes: int
    """Times that a streamed row is read."""
    load: int
    """Elements of one load of a thread; what is left of a streamed row goes one at a time."""
    held_load: int = 4
    """Elements of one load where the row stays in registers."""
    wide: bool = False
    """Whether loads have a fixed width in bytes: `load` is stated for fp32, and narrower types have
    more elements in one."""
    power_of_two: bool = False
    """Whether the number of threads is rounded up to a power of two."""
    least_threads: int = 32
    """Fewest threads of a row."""
    stages: int = 3
    """One more than the loads of a thread that are in flight."""
    waits: float = 0.0
    """Further loads that a row waits for, one after another."""
    dependent_ops: float = 0.0
    """Operations of a round of loads that wait for each other."""
    vector_ops: float = 0.0
    """Vector operations of an element beyond the algorithm's own."""
    special_ops: float = 0.0
    """Special-function operations of an element beyond the algorithm's own."""
    again_vector_ops: float = 0.0
    """Further vector operations of an element of a streamed row."""
    again_special_ops: float = 0.0
    """Further special-function operations of an element of a streamed row."""
    folded_vector_ops: float = 0.0
    """Vector operations of a thread and row in each of the five steps of a warp reduction."""
    folded_special_ops: float = 0.0
    """Special-function operations of a thread and row in each step of a warp reduction."""


@dataclass(frozen=True)
class KernelClass:
    """One implementation family; fields as in `classes.yaml`, tiles as (rows, columns, threads)."""

    name: str
    op: str
    source: str
    instruction: Instruction = "vector"
    overlap: str | None = None
    tiles: Mapping[int, tuple[TileRow, ...]] = field(default_factory=dict)
    rows: Rows | None = None
    chain: Chain | None = None
    batched: str | None = None
    share: float | None = None
    start_seconds: float | None = None
    few_start_seconds: float | None = None
    backward: float | None = None
    host_seconds: float | None = None
    one_copy: bool = False
    schedule: str = "tiled"
    decode: Mapping[int, tuple[TileRow, ...]] | None = None
    narrow: Mapping[int, tuple[TileRow, ...]] | None = None
    windowed: Mapping[int, tuple[TileRow, ...]] | None = None
    narrow_decode: Mapping[int, tuple[TileRow, ...]] | None = None
    splits: tuple[int, ...] = (1,)
    sliced_waves: float = inf
    formats: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()
    fallback: str | None = None
    promoted: bool = False
    cluster: int = 1
    few_rows: int = 0
    slim_columns: int = 0
    few_load: int = 0
    swizzles: bool = True
    specialises: bool = True
    by_name: bool = False
    packs: bool = False
    ping_pong: bool = False
    quantises: bool = False
    gradient_product: bool = False
    tensors: Mapping[str, int] = field(default_factory=dict)
    accurate: bool = False
    compiled: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    resident: int | None = None
    split_rule: SplitRule | None = None
    even_rule: EvenRule | None = None
    head_rule: HeadRule | None = None
    graph_rule: GraphRule | None = None
    wave_rule: WaveRule | None = None
    combines_ahead: bool = False
    combine_loads: int = 0
    combines_inside: bool = False
    decoder: str | None = None
    prepares: int = 0
    price: str = "chained_block_price"
    regroups: bool = False
    packed: bool = False
    paged: bool = False
    graphed: bool = False
    pages_by_decode: bool = False
    narrow_pages_to: int | None = None
    aligned_windows: bool = False
    few_queries: int = 0
    transposes: bool = False
    passed_bytes: float = 0.0
    head_dims: tuple[int, ...] = ()
    stages: int = 2
    matches: tuple[str, ...] = ()

    def runs(self, machine: Machine) -> bool:
        """Whether the device has the instructions this class needs."""
        return not self.runs_on or machine.architecture.name in self.runs_on

    def menu(
        self, head_dim: int, *, decode: bool, narrow: bool = False, windowed: bool = False
    ) -> tuple[TileRow, ...]:
        """Tiles for the smallest listed head dimension that holds `head_dim` (0 for matmul).

        `narrow` asks for those of 8-bit keys and values, `windowed` for those where a window hides
        keys: the usual ones where the library has no others.
        """
        table = self.tiles
        if decode and narrow and not windowed and self.narrow_decode is not None:
            table = self.narrow_decode
        elif narrow and self.narrow is not None:
            table = self.narrow
        elif windowed and self.windowed is not None:
            table = self.windowed
        elif decode and self.decode is not None:
            table = self.decode
        fitting = [dim for dim in sorted(table) if dim >= head_dim]
        return table[fitting[0]] if fitting else table[max(table)]

    def first_fitting(
        self, menu: tuple[TileRow, ...], held: Callable[[TileRow], float], capacity: float
    ) -> TileRow:
        """The first tile of a menu whose footprint fits (libraries dispatch so); else the last."""
        return next((tile for tile in menu if held(tile) <= capacity), menu[-1])


def _tiles(entry: Any) -> dict[int, tuple[TileRow, ...]]:
    """Menus by head dimension; a plain list is a menu for all."""
    menus = entry if isinstance(entry, dict) else {0: entry}
    return {int(dim): tuple((int(a), int(b), int(t)) for a, b, t in m) for dim, m in menus.items()}


_PARTS = {
    "rows": Rows,
    "chain": Chain,
    "split_rule": SplitRule,
    "even_rule": EvenRule,
    "head_rule": HeadRule,
    "graph_rule": GraphRule,
    "wave_rule": WaveRule,
}


# Which runs an entry of the list `timed` speaks of, and who says so.
_WHICH = ("names", "formats", "source")
# Lists of names in the table's head, each a flag of a class.
_BATCHING = ("packed", "paged", "graphed")


_PATH = Path(__file__).with_name("classes.yaml")


@lru_cache(maxsize=1)
def _document() -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = yamltable.read(_PATH)
    except (OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{_PATH}: no table of classes ({line}); reinstall perfmodel"
        ) from None
    return found


@lru_cache(maxsize=1)
def classes() -> Mapping[str, KernelClass]:
    """All classes by name, in file order."""
    found = {}
    for name, entry in _document()["classes"].items():
        entry = dict(entry, tiles=_tiles(entry.get("tiles", {})))
        for key, kind in _PARTS.items():
            if key in entry:
                entry[key] = _made(kind, f"{name}, {key}", entry[key])
        if "runs_on" in entry:
            entry["runs_on"] = _runs_on(name, entry["runs_on"])
        for key in ("splits", "formats", "variants", "matches", "head_dims"):
            if key in entry:
                entry[key] = tuple(entry[key])
        for key in ("decode", "narrow", "windowed", "narrow_decode"):
            if key in entry:
                entry[key] = _tiles(entry[key])
        found[name] = _made(KernelClass, name, {"name": name, **entry})
    return found


def _runs_on(name: str, entry: Any) -> tuple[str, ...]:
    """Names of architectures; raises `PerfmodelError` for one that the table does not have."""
    listed = entry if isinstance(entry, list) else [entry]
    unknown = [each for each in listed if str(each) not in architectures()]
    if unknown or not listed:
        raise PerfmodelError(
            f"classes.yaml: {name}: runs_on {entry!r} is no list of architectures; known: "
            f"{', '.join(architectures())}"
        )
    return tuple(listed)


def _made(kind: type[Any], where: str, entry: Mapping[str, Any]) -> Any:
    """An entry of the table as its type; raises `PerfmodelError` for a key it does not have."""
    unknown = entry.keys() - {known.name for known in fields(kind)}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise PerfmodelError(f"classes.yaml: {where}: no such key as {names}; see its header")
    try:
        return kind(**entry)
    except TypeError as reason:
        raise PerfmodelError(f"classes.yaml: {where}: {reason}") from None


def kernel_class(name: str) -> KernelClass:
    """The class called `name`; raises `UnknownName` with the nearest ones."""
    try:
        return classes()[name]
    except KeyError:
        raise UnknownName("implementation class", name, classes()) from None


def implementations(op: str) -> Mapping[str, KernelClass]:
    """The classes of kernels that compute an operator."""
    return {name: found for name, found in classes().items() if found.op in _ops(op)}


def _ops(op: str) -> tuple[str, ...]:
    """What classes that compute an operator call it: kernels of rows serve each row-wise one."""
    return (op,) if op in ("attention", "gemm") else (op, "rowwise")


def is_known(op: str, name: str) -> bool:
    """Whether a name is a class of the operator or one that such a class stands for."""
    known = implementations(op)
    return name in known or any(_named(found.matches, name) for found in known.values())


def resolve(
    op: str,
    implementation: str | None,
    dtype: str,
    machine: Machine,
    *,
    batched: bool = False,
    decode: bool = False,
    variant: str = "",
) -> tuple[KernelClass, tuple[str, ...]]:
    """The class that stands for an implementation on a device, and what was assumed.

    Unknown names get the nearest class; a class without its instructions falls back as its library
    does. Raises `PerfmodelError` where no class computes the operator.
    """
    said: list[str] = []
    chosen = None
    if implementation:
        chosen = classes().get(implementation) or _matching(op, implementation, dtype, variant)
        if chosen is not None and chosen.name != implementation and is_known(op, implementation):
            said.append(f"implementation {implementation!r} modelled as {chosen.name}")
    if chosen is None or chosen.op not in _ops(op):
        chosen = usual(op, dtype, machine)
        if implementation and is_known(op, implementation):
            said.append(f"{implementation!r} is not known in {dtype}: {chosen.name} taken")
    if implementation and op == "attention":
        chosen = replace(chosen, **_batched_as(implementation))
    if op == "attention" and machine.device.kind == "cpu" and chosen.schedule != "standard":
        chosen = kernel_class("cpu-blocked")  # no library runs a GPU's tiles on a processor
    while not chosen.runs(machine) and chosen.fallback is not None:
        # Unless the class was asked for, that its library has kernels for each generation goes
        # without saying.
        library = chosen.name.split("-")[0]
        if chosen.name == implementation or not chosen.fallback.startswith(library):
            where = machine.device.slug
            said.append(f"{chosen.name} does not run on {where}; {chosen.fallback} taken")
        chosen = _as_batched(kernel_class(chosen.fallback), chosen)
    if batched and chosen.batched is not None:
        chosen = _running(kernel_class(chosen.batched), machine)
    if decode and chosen.decoder is not None:
        chosen = _as_batched(kernel_class(chosen.decoder), chosen)
    return replace(chosen, **_timing(implementation, dtype)), tuple(said)


def _as_batched(kernel: KernelClass, other: KernelClass) -> KernelClass:
    """The class with sequences and caches as `other` has them."""
    return replace(kernel, **{name: getattr(other, name) for name in _BATCHING})


def _running(kernel: KernelClass, machine: Machine) -> KernelClass:
    """The class, or what its library falls back to until one has the device's instructions."""
    while not kernel.runs(machine) and kernel.fallback is not None:
        kernel = kernel_class(kernel.fallback)
    return kernel


def _batched_as(implementation: str) -> dict[str, Any]:
    """How an implementation of attention has its sequences and caches: each flag of the table."""
    lists = _document()
    return {name: _named(lists[name], implementation) for name in _BATCHING}


def _timing(implementation: str | None, dtype: str) -> dict[str, Any]:
    """How an implementation's runs in a type were timed, where that is special."""
    found: dict[str, Any] = {}
    for entry in _document()["timed"]:
        meant = dtype in entry.get("formats", (dtype,))
        if implementation and meant and _named(entry["names"], implementation):
            found |= {key: value for key, value in entry.items() if key not in _WHICH}
    return found


def _named(patterns: Sequence[str], implementation: str) -> bool:
    """Whether one of a list's regular expressions finds the name."""
    return any(re.search(pattern, implementation) for pattern in patterns)


def _matching(op: str, implementation: str, dtype: str, variant: str) -> KernelClass | None:
    for entry in classes().values():
        if entry.op != op or (entry.formats and dtype not in entry.formats):
            continue
        if entry.variants and variant not in entry.variants:
            continue
        if _named(entry.matches, implementation):
            return entry
    return None


def newest_attention(machine: Machine) -> KernelClass:
    """FlashAttention's newest kernel that runs on the device."""
    newest = (kernel_class(name) for name in ("flash4", "flash3", "flash2"))
    return next(found for found in newest if found.runs(machine))


def usual(op: str, dtype: str, machine: Machine) -> KernelClass:
    """The class a good library would use on the device when nothing is said."""
    if op == "attention":
        # Kernels for the newest instructions take 16 bits at most.
        if dtype in ("fp32", "fp64", "tf32"):
            return kernel_class("flash2")
        return newest_attention(machine)
    if op not in ("gemm", "attention"):
        return kernel_class("fused-rows")
    for entry in classes().values():
        if entry.op == op and dtype in entry.formats and not entry.by_name:
            return entry
    raise PerfmodelError(f"no implementation class computes {op} in {dtype}")


def matrix_share(kernel: KernelClass, machine: Machine) -> float:
    """Share of the matrix unit's rate that the class's instructions can reach.

    Instructions fed from registers keep a share of it where they are not the native ones.
    """
    return machine.architecture.mma_share if kernel.instruction == "register" else 1.0


def hidden_share(kernel: KernelClass, constants: Constants) -> float:
    """Share of non-matrix work that the class hides under the matrix unit."""
    return 0.0 if kernel.overlap is None else constants[kernel.overlap]
