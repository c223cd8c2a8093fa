"""How each harness times a kernel: what it does before and between calls (`runs.yaml`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any

from perfmodel.catalogue import VERSION, Table
from perfmodel.entries import plain, within
from perfmodel.errors import ProblemError, SpecError
from perfmodel.frozen import dataclass

UNKNOWN = "unknown"
"""The harness of runs whose table does not name one."""
ANY = "any"
"""Key of the value for operators without one of their own."""
AMONG = {"bmm": "gemm", "scalar": "pointwise"} | dict.fromkeys(
    ("softmax", "layernorm", "rmsnorm", "pointwise", "quantise"), "rowwise"
)
"""Under a harness without a value of the operator, the operator whose value it takes; all others
take that of `any`."""
SCALAR_MAPS = ("add_scalar", "mul_scalar", "div_scalar", "pow_scalar", "relu")
"""Element-wise maps of a tensor and a scalar, which a framework wraps in a tensor and dispatches
once more (ATen: wrapped_scalar_tensor, Activation.cpp; relu is the maximum of an element and 0)."""
BY_OPERATOR = ("starts", "calls")
"""Values of a harness that each operator has."""
Seconds = Annotated[float, within(0.0, 1e-3)]
Share = Annotated[float, within(0.0, 1.0)]


@dataclass(frozen=True)
class Run:
    """What one harness does around the kernel that it times."""

    name: str
    """Name of the harness in tables and on the command line."""
    about: str
    """One line of description."""
    warm: Annotated[Share, "1"] = 0.0
    """Share of the inputs that fit in L2 and that the run before left there."""
    rotates: Annotated[tuple[str, ...], "names"] = ()
    """Operators whose weights have copies that take turns: each copy is used again after all
    others."""
    copies: Annotated[float, "1"] = 1.0
    """Copies of the weights of those operators, the first included."""
    repeats: bool = False
    """Whether calls of the same kernel on the same memory follow each other, so that each finds the
    tensors of the call before in the caches; otherwise other kernels run between them."""
    activity: Annotated[Share, "1"] = 1.0
    """Switching activity of the data relative to random numbers: a factor of energy."""
    one_at_a_time: bool = False
    """Whether the host waits for each call, so that the board idles between calls; otherwise calls
    are queued back to back."""
    starts: Annotated[Mapping[str, Seconds], "s"] = field(default_factory=lambda: {ANY: 0.0})
    """Seconds before the first instruction, by operator; `any` for all others."""
    by_clock: Annotated[tuple[str, ...], "names"] = ()
    """Operators whose starts are device cycles, not host time: stated in seconds at 1.75 GHz."""
    calls: Annotated[Mapping[str, Seconds], "s"] = field(default_factory=dict)
    """Host seconds of a whole call, by operator, where the host works in parallel with the
    kernel."""
    calls_as: Annotated[str | None, "name"] = None
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

    def __post_init__(self) -> None:
        """Raises `ProblemError` where an operator may have no value."""
        for name in BY_OPERATOR:
            if getattr(self, name) and ANY not in getattr(self, name):
                raise ProblemError(f"{name} must have one for {ANY!r}")

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
        name = AMONG.get(name, ANY)
    yield ANY


def _first_value(values: Mapping[str, float], operator: str) -> float:
    """The first value found for `_stand_ins(operator)`; 0 where there is none."""
    return next((values[name] for name in _stand_ins(operator) if name in values), 0.0)


class _Harnesses(Table[Run]):
    """Harnesses by name; each value stands beside its source."""

    def _entry(self, file: Path, name: str, entries: Mapping[str, Any]) -> Run:
        values: dict[str, Any] = {}
        sources: dict[str, Any] = {}
        for key, fact in entries[name].items():
            parts = fact.items() if key in BY_OPERATOR else [(None, fact)]
            if key == "about":
                values[key] = fact
                continue
            for operator, stated in parts:
                place = f"{key}.{operator}" if operator is not None else key
                if not isinstance(stated, Mapping) or stated.keys() != {"value", "source"}:
                    raise SpecError(f"{file}: {name}: {place}: write {{value: ..., source: ...}}")
                sources[place] = stated["source"]
                if operator is None:
                    values[key] = stated["value"]
                else:
                    values.setdefault(key, {})[operator] = stated["value"]
        return super()._entry(file, name, {name: {**values, "sources": sources}})


HARNESSES = _Harnesses("harness", Run, Path(__file__).with_name("runs.yaml"), "harnesses")
"""The shipped harnesses by name, in file order."""


def harnesses() -> tuple[str, ...]:
    """Names of all harnesses."""
    return HARNESSES.names()


def run_of(runs: Mapping[str, Run], harness: str) -> Run:
    """The run of a harness. Raises `ProblemError`, naming the harnesses, for an unknown one."""
    try:
        return runs[harness]
    except KeyError:
        raise ProblemError(
            f"harness {harness!r} is not known; it is one of {', '.join(runs)}"
        ) from None


def text(runs: Iterable[Run]) -> str:
    """The file of these harnesses, one value a line."""
    import yaml

    def flow(value: Any) -> str:
        line: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
        return line.removesuffix("\n").removesuffix("\n...")

    lines = [*_HEAD, f"version: {VERSION}", "harnesses:"]
    for run in runs:
        lines += [f"  {run.name}:", f"    about: {flow(run.about)}"]
        for name, source in run.sources.items():
            key, _, operator = name.partition(".")
            value = plain(getattr(run, key))
            if not operator:
                lines.append(f"    {key}: {flow({'value': value, 'source': source})}")
                continue
            if f"    {key}:" not in lines[-len(value) - 1 :]:
                lines.append(f"    {key}:")
            lines.append(f"      {operator}: {flow({'value': value[operator], 'source': source})}")
    return "\n".join(lines) + "\n"


_HEAD = (
    "# How runs are timed: one entry a harness. Defaults: inputs cold, data random, calls one",
    "# after another, no host time. Times are the host's and the timer's, not the device's. Each",
    "# value has its source beside it; runs.py has its unit and meaning. `make fit` derives starts",
    "# and calls from the runs again.",
)


def paced(runs: Mapping[str, Run], factor: float) -> dict[str, Run]:
    """Runs whose hosts take `factor` times as long."""
    return {name: replace(run, pace=run.pace * factor) for name, run in runs.items()}
