"""How each harness times a kernel: what it does before and between calls (`runs.yaml`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.frozen import dataclass

VERSION = 1
UNKNOWN = "unknown"
"""The harness of runs whose table does not name one."""
ANY = "any"
"""Key of the value for operators without one of their own."""


@dataclass(frozen=True)
class Run:
    """What one harness does around the kernel that it times."""

    name: str
    """Name of the harness in tables and on the command line."""
    about: str
    """One line of description."""
    warm: float = 0.0
    """Share of the inputs that fit in L2 and that the run before left there."""
    rotates: tuple[str, ...] = ()
    """Operators whose weights have copies that take turns: each copy is used again after all
    others."""
    copies: float = 1.0
    """Copies of the weights of those operators, the first included."""
    repeats: bool = False
    """Whether calls of the same kernel on the same memory follow each other, so that each finds the
    tensors of the call before in the caches; otherwise other kernels run between them."""
    activity: float = 1.0
    """Switching activity of the data relative to random numbers: a factor of energy."""
    one_at_a_time: bool = False
    """Whether the host waits for each call, so that the board idles between calls; otherwise calls
    are queued back to back."""
    starts: Mapping[str, float] = field(default_factory=lambda: {ANY: 0.0})
    """Seconds before the first instruction, by operator; `any` for all others."""
    by_clock: tuple[str, ...] = ()
    """Operators whose starts are device cycles, not host time: stated in seconds at 1.75 GHz."""
    calls: Mapping[str, float] = field(default_factory=dict)
    """Host seconds of a whole call, by operator, where the host works in parallel with the
    kernel."""
    calls_as: str | None = None
    """Harness whose element-wise maps give the host time of a plain framework call, where several
    calls make up an operator and the device may have to wait for them; None: no host calls."""
    library_kernels: bool = True
    """Whether the measured time includes kernels that a library launches around its own in each
    call."""
    library_start: bool = True
    """Whether the measured time includes what a library does before its kernel (`callers` in
    names.yaml)."""
    pace: float = 1.0
    """Host time over that of the hosts that the harness was measured on."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Source of each value by its name, with a dot and the operator where there are several."""

    def start_seconds(self, operator: str) -> float:
        """Seconds before the first instruction of an operator, or of the operator whose value it
        takes."""
        return self.pace * _first_value(self.starts, operator)

    def clocked(self, operator: str) -> bool:
        """Whether the start of an operator is device cycles rather than host time."""
        return any(name in self.by_clock for name in _stand_ins(operator))

    def call_seconds(self, operator: str) -> float:
        """Host seconds of a call of an operator: no call takes less, however short its kernel."""
        return self.pace * _first_value(self.calls, operator)


def _stand_ins(operator: str) -> Iterator[str]:
    """An operator, the operator whose values it takes where it has none, and `any`."""
    name = operator
    while name != ANY:
        yield name
        name = table().among.get(name, ANY)
    yield ANY


def _first_value(values: Mapping[str, float], operator: str) -> float:
    """The first value found for `_stand_ins(operator)`; 0 where there is none."""
    return next((values[name] for name in _stand_ins(operator) if name in values), 0.0)


@dataclass(frozen=True)
class Table:
    """The whole of `runs.yaml`."""

    runs: Mapping[str, Run]
    """Harnesses by name, in file order."""
    among: Mapping[str, str]
    """For operators without their own start: the operator whose start they take."""
    scalar_maps: tuple[str, ...]
    """Element-wise maps of a tensor and a scalar, which a framework dispatches twice."""
    scalar_source: str
    """Source of `scalar_maps`."""
    values: Mapping[str, Mapping[str, str]]
    """Unit and meaning of each value of a harness."""


# Fields of a run that are not values of the table: its name, its scale, its sources.
_APART = ("name", "about", "pace", "sources")
VALUES = tuple(item.name for item in fields(Run) if item.name not in _APART)
"""Names of the values of a harness."""
BY_OPERATOR = ("starts", "calls")
"""Those of them that each operator has."""


def read(path: Path) -> Table:
    """The table of a file, checked. Raises `PerfmodelError` in one line with the fault."""
    try:
        document = yamltable.read(path)
        if document["version"] != VERSION:
            raise PerfmodelError(f"{path}: runs of another version; this code reads {VERSION}")
        catalog = Table(
            {name: _run(path, name, entry) for name, entry in document["harnesses"].items()},
            dict(document["among"]),
            tuple(document["scalar_maps"]["names"]),
            str(document["scalar_maps"]["source"]),
            document["values"],
        )
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as e:
        line = " ".join(str(e).split())
        raise PerfmodelError(f"{path}: no table of runs ({line}); reinstall perfmodel") from None
    if UNKNOWN not in catalog.runs:
        raise PerfmodelError(f"{path}: no harness {UNKNOWN!r}, for runs that do not say")
    for run in catalog.runs.values():
        if run.calls_as is not None and run.calls_as not in catalog.runs:
            raise PerfmodelError(f"{path}: {run.name}: calls_as {run.calls_as!r} is no harness")
    return catalog


def _run(path: Path, name: str, entry: Mapping[str, Any]) -> Run:
    facts: dict[str, Any] = {"name": name, "about": str(entry["about"])}
    sources: dict[str, str] = {}
    for key, fact in entry.items():
        if key == "about":
            continue
        if key not in VALUES:
            raise PerfmodelError(f"{path}: {name}: no such value as {key}; see `values`")
        if key in BY_OPERATOR:
            facts[key] = {op: float(one["value"]) for op, one in fact.items()}
            sources |= {f"{key}.{op}": str(one["source"]) for op, one in fact.items()}
            continue
        value = fact["value"]
        facts[key] = tuple(value) if isinstance(value, list) else value
        sources[key] = str(fact["source"])
    run = Run(**facts, sources=sources)
    for measure in ("warm", "activity"):
        if not 0.0 <= getattr(run, measure) <= 1.0:
            raise PerfmodelError(f"{path}: {name}: {measure} is not from 0 to 1")
    for measure in BY_OPERATOR:
        values = getattr(run, measure)
        in_range = all(0.0 <= one <= 1e-3 for one in values.values())
        if not in_range or (ANY not in values and measure in entry):
            fault = f"{measure} must be 0 to 1 ms and have one for {ANY!r}"
            raise PerfmodelError(f"{path}: {name}: {fault}")
    return run


@lru_cache(maxsize=1)
def table() -> Table:
    """The table that comes with the package."""
    return read(Path(__file__).with_name("runs.yaml"))


def harnesses() -> tuple[str, ...]:
    """Names of all harnesses."""
    return tuple(table().runs)


def run_of(runs: Mapping[str, Run], harness: str) -> Run:
    """The run of a harness. Raises `ProblemError`, naming the harnesses, for an unknown one."""
    try:
        return runs[harness]
    except KeyError:
        raise ProblemError(
            f"harness {harness!r} is not known; it is one of {', '.join(runs)}"
        ) from None


def text(found: Table) -> str:
    """A table in the format that `read` reads, one value a line."""
    import yaml

    def flow(value: Any) -> str:
        line: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
        return line.removesuffix("\n").removesuffix("\n...")

    lines = [*_HEAD, f"version: {VERSION}", "values:"]
    lines += [f"  {name}: {flow(dict(fact))}" for name, fact in found.values.items()]
    lines += [*_AMONG, f"among: {flow(dict(found.among))}"]
    maps = {"names": list(found.scalar_maps), "source": found.scalar_source}
    lines += [*_SCALAR, f"scalar_maps: {flow(maps)}", "harnesses:"]
    for run in found.runs.values():
        lines += [f"  {run.name}:", f"    about: {flow(run.about)}"]
        for name in dict.fromkeys(key.partition(".")[0] for key in run.sources):
            value = getattr(run, name)
            if name not in BY_OPERATOR:
                entry = list(value) if isinstance(value, tuple) else value
                lines.append(f"    {name}: {flow({'value': entry, 'source': run.sources[name]})}")
                continue
            lines.append(f"    {name}:")
            for operator, seconds in value.items():
                fact = {"value": seconds, "source": run.sources[f"{name}.{operator}"]}
                lines.append(f"      {operator}: {flow(fact)}")
    return "\n".join(lines) + "\n"


_HEAD = (
    "# How runs are timed: one entry a harness. Defaults: inputs cold, data random, calls one",
    "# after another, no host time. Times are the host's and the timer's, not the device's. Each",
    "# value has unit and meaning under `values`, and its source beside it. `make fit` derives",
    "# starts and calls from the runs again.",
)
_AMONG = (
    "# Under a harness without a value of the operator, the operator whose value it takes; all",
    "# others take that of `any`.",
)
_SCALAR = (
    "# Maps with a scalar, which the framework wraps in a tensor and dispatches once more; relu is",
    "# one: the maximum of each element and 0.",
)


def paced(runs: Mapping[str, Run], factor: float) -> dict[str, Run]:
    """Runs whose hosts take `factor` times as long."""
    return {name: replace(run, pace=run.pace * factor) for name, run in runs.items()}
