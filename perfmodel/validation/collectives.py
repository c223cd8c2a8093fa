"""Collective tables: one exchange a row, with its prediction or the reason why there is none.

predict_table(read("collectives.csv.gz"))          # predicted, low, high (µs), algorithm ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.collectives import Collective, CollectivePredictions, predict_collective
from perfmodel.collectives.collectivetime import NCCL, libraries
from perfmodel.collectives.constants import Values
from perfmodel.collectives.custom import spelt
from perfmodel.errors import PerfmodelError, TableError, UnknownName
from perfmodel.hardware import System, systems
from perfmodel.hardware import load as load_device
from perfmodel.hardware.system import Topology
from perfmodel.hardware.variants import through_one_host_link
from perfmodel.table import reading
from perfmodel.table.layout import Layout
from perfmodel.validation.judging import Fields

if TYPE_CHECKING:
    import pandas as pd

FIELDS = Fields(
    measured="latency_us",
    predicted="predicted",
    low="low",
    high="high",
    known=("known_device", "known_library", "known_link"),
)
LAYOUT = Layout(
    needed=("device", "collective", "ranks", "bytes", "latency_us"),
    measured="latency_us",
    text=(
        "source", "device", "system", "topology", "library", "version", "harness", "collective",
        "algorithm", "dtype", "flag", "notes",
    ),
    whole=("ranks", "ranks_per_node", "bytes"),
    truth=("gpudirect",),
    template="collective",
)  # fmt: skip
"""The columns of a collective table."""

_NUMBERS = ("predicted", "low", "high", "sent_bytes")
_TEXTS = (*FIELDS.known, "chosen", "protocol", "limiter", "assumed", "reason")
_KIND = (
    "device", "system", "topology", "gpudirect", "library", "version", "harness", "collective",
    "dtype", "ranks", "ranks_per_node", "bytes",
)  # fmt: skip
_USUAL_TYPE = "bf16"
_MICRO = 1e6
# Topologies by the first word of the table's name for the link, for rows that name no system.
_TOPOLOGIES: dict[str, tuple[Topology, ...]] = {
    "": (),
    "switch": ("switch", "mesh", "ring"),
    "pcie": ("host-bridge",),
    "pairs": ("pairs",),
}


def read(paths: Sequence[str]) -> pd.DataFrame:
    """The rows of one or more tables; raises `TableError`."""
    return reading.read(paths, LAYOUT).strict()


def predict_table(table: pd.DataFrame, *, constants: Values | None = None) -> pd.DataFrame:
    """`table` with predicted, low and high in microseconds, the bytes that each rank sends, the
    algorithm and protocol chosen, the limiter, what is known and assumed, and reason.

    A row that cannot be predicted is kept, with missing times and the reason in `reason`.
    """
    table = LAYOUT.typed(table.drop(columns=[c for c in (*_NUMBERS, *_TEXTS) if c in table]))
    columns = {name: np.full(len(table), np.nan) for name in _NUMBERS}
    texts = {name: np.full(len(table), "", dtype=object) for name in _TEXTS}
    for rows in _alike(table):
        try:
            question = _asked(table, rows)
            times = question.predicted(constants)
            if not times.seconds.any():
                raise TableError("one rank alone exchanges nothing; give two at least")
        except PerfmodelError as error:
            texts["reason"][rows] = str(error)
            continue
        ends = (times.seconds, times.low_seconds, times.high_seconds)
        for name, values in zip(_NUMBERS, ends, strict=False):
            columns[name][rows] = values * _MICRO
        columns["sent_bytes"][rows] = times.sent_bytes
        texts["chosen"][rows], texts["protocol"][rows] = times.algorithm, times.protocol
        note = "; ".join(filter(None, (question.note, *times.assumptions)))
        texts["limiter"][rows], texts["assumed"][rows] = times.limiter, note
        for name in FIELDS.known:
            level = name.removeprefix("known_")
            texts[name][rows] = [getattr(k, level) for k in times.known]
    return table.assign(**columns, **texts)


@dataclass(frozen=True)
class Asked:
    """Rows of a table that are one array of collectives."""

    rows: np.ndarray
    """Their places in the table."""
    problem: Collective
    """What is exchanged."""
    system: System
    """Where."""
    library: str
    """By what."""
    eager: bool
    """Whether each is a call from Python."""
    note: str
    """Assumption about the library."""

    def predicted(self, constants: Values | None = None) -> CollectivePredictions:
        """The rows' times."""
        return predict_collective(
            self.problem, self.system, library=self.library, eager=self.eager, constants=constants
        )


def asked(table: pd.DataFrame) -> list[Asked]:
    """The collectives of a table whose every row can be predicted; raises the row's error."""
    return [_asked(table, rows) for rows in _alike(table)]


def _alike(table: pd.DataFrame) -> Iterator[np.ndarray]:
    """Places of rows that differ in bytes alone, so that what is wrong with one is with all."""
    versions = list(map(spelt, table["library"], table["version"]))
    kinds = table.assign(version=versions, bytes=table["bytes"].isna())
    groups: Any = kinds.groupby(list(_KIND), sort=False, dropna=False).indices
    yield from map(np.asarray, groups.values())


def _asked(table: pd.DataFrame, rows: np.ndarray) -> Asked:
    """Rows that are alike."""
    part = table.iloc[rows]
    row: Any = part.iloc[0]
    system = system_of(row["device"], row["system"], row["topology"])
    if not part["gpudirect"].fillna(value=True).all():
        system = through_one_host_link(system)
    library, note = _library(row["library"], row["version"])
    if part[["ranks", "bytes"]].isna().any(axis=None):
        raise TableError("row without ranks or bytes")
    nodes = part["ranks"].clip(upper=system.node_devices)
    if "domain" not in row["topology"]:  # a domain is one node, whatever its trays hold
        nodes = part["ranks_per_node"].fillna(nodes)
    problem = Collective(
        row["collective"],
        part["bytes"].to_numpy(np.int64),
        part["ranks"].to_numpy(np.int64),
        nodes.to_numpy(np.int64),
        row["dtype"] or _USUAL_TYPE,
    )
    return Asked(rows, problem, system, library, "eager" in row["harness"], note)


def _library(name: str, version: str) -> tuple[str, str]:
    """The library whose rules are used for a row, and a note if it is not the row's own."""
    library = spelt(name, version)
    if library in libraries():
        return library, ""
    reason = f"library {name!r} is not known" if name else "no library is named"
    return NCCL, f"{reason}: {NCCL} taken"


@lru_cache(maxsize=256)
def system_of(device: str, system: str = "", topology: str = "") -> System:
    """The system of a row: the named one, else one made of its device with links of that topology.

    Raises `UnknownName` for an unknown device, system or topology.
    """
    if system.split("+")[0] in systems.names():
        return systems.load(system)
    link = re.split(r"[^a-z]", topology.lower())[0]
    if link not in _TOPOLOGIES:
        raise UnknownName("topology", topology, [name for name in _TOPOLOGIES if name])
    spec, topologies = load_device(device), _TOPOLOGIES[link]
    for candidate in systems.made_of(spec.slug):
        if not topologies or candidate.levels[0].topology in topologies:
            return candidate
    return systems.of_device(spec, topologies[0] if topologies else None)
