"""A tree of predictions: kernels with all their runs, and what is made of them.

A leaf is a kernel, an exchange, an update, or a wait, with all its runs in its parent. Other nodes
are made of their children: a pass over a layer, a network, a graph, a training step, attention over
several devices, a network beside copies from the host. A node that repeats has the seconds of all
its repeats and the children of one.

Children follow each other, or run beside each other: what they take longer together is exposed.
Breakdowns add up exposed seconds, ranges and counts whole ones.

Ranges add up as their errors do. The operators of one family (a row of the table of ranges) are
predicted by the same few constants and kernels, so their errors have one cause. They are taken as
fully correlated within a tree: where one product is 5 % slower than predicted, all are. The low
ends of a family add up, and so do the high ends.

Errors of different families are taken as independent: variances add. The half-width of an 80 %
range is proportional to the standard deviation, so half-widths add in squares, separately below and
above:

    T = Σ Tf    T − low = √Σ (Tf − lowf)²    high − T = √Σ (highf − Tf)²

The range is therefore at most the sum of all ranges, and at least that of the widest family. An
error that all families share (a clock, a wrong bandwidth in the spec) is in the range of each and
counts as independent here. Gaps and host time have no range of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from perfmodel.columns import DIFFERS, HIGH, SOME, Column, Result, columns_of, row_of, span
from perfmodel.count.exchanges import Exchange
from perfmodel.frozen import dataclass
from perfmodel.graph.live import Memory
from perfmodel.graph.stretch import Stretch, joined
from perfmodel.predict import rank
from perfmodel.prediction import Prediction

KINDS = (
    "matmul",
    "attention",
    "norm",
    "softmax",
    "pointwise",
    "embedding",
    "loss",
    "optimiser",
    "communication",
    "bubble",
    "host",
)
"""Classes that time is broken down by, in the order of reports."""


@dataclass(frozen=True, kw_only=True)
class Tree(Result):
    """A node of a tree of predictions. Times in seconds."""

    settings: Annotated[Mapping[str, Any], Column(flat=True, place=-1)] = field(
        default_factory=dict
    )
    """Of a root what was predicted, by name: the network and its pass, or the graph's sizes."""
    device: Annotated[str, Column("device", when=DIFFERS, place=-1)] = ""
    """Of a root the device's slug."""
    name: Annotated[str, Column(key="kernel", place=-1)]
    """Its name among its siblings."""
    kind: Annotated[str, Column(key="class", place=-1)] = ""
    """Of a leaf its class: one of `KINDS`, of a graph's nodes the operator; of a pass `forward` or
    `backward`."""
    family: str = ""
    """Of a leaf the row of the table of ranges, the cause of its errors."""
    seconds: Annotated[float, Column("time", key="time_us", scale=1e6)]
    """Seconds of all its runs."""
    low_seconds: Annotated[float, Column("range", span, rank=2, key="low_us", scale=1e6)]
    """Low end of their 80 % range."""
    high_seconds: Annotated[float, HIGH]
    """High end of it."""
    repeat: float = 1
    """Number of runs, one after another."""
    exposed_share: float = 1.0
    """The share of its seconds by which it makes its parent longer: below 1 where it runs beside
    others, above 1 where recomputation waits for it again."""
    gap_seconds: float = 0.0
    """Seconds of the device before each run of a kernel."""
    run: Prediction | None = None
    """Of a kernel the prediction of one run, with what earlier kernels left in the caches."""
    resource: str = ""
    """Of a leaf without a kernel what it takes: a link, a disk, fabric."""
    children: tuple[Tree, ...] = ()
    """What one of its repeats is made of, in order."""
    live_bytes: Annotated[
        float | None, Column("live", show="binary", when=SOME, rank=5, place=1)
    ] = None
    """Bytes alive in the device's memory while it runs; of several the most."""
    scratch_bytes: Annotated[float | None, Column(place=1)] = None
    """The part of `live_bytes` that belongs to no tensor of a graph: the operator's
    intermediates."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Of a root seconds that it tells apart: forward and backward, or gaps and waiting."""
    memory: Memory | None = None
    """Of a root what the device's memory holds, where that is predicted."""
    exchanges: tuple[Exchange, ...] = ()
    """What its device exchanges with others."""
    assumptions: Annotated[tuple[str, ...], Column(place=1)] = ()
    """Of a root what was assumed where device, settings or graph leave it open, each once."""

    @classmethod
    def of(cls, name: str, kind: str, family: str, run: Prediction, repeat: float) -> Tree:
        """`repeat` runs of a kernel, without a benchmark harness's start-up."""
        seconds = repeat * (run.seconds - run.terms["launch"])
        share = seconds / run.seconds
        return cls(
            name=name, kind=kind, family=family, seconds=seconds, repeat=repeat, run=run,
            low_seconds=run.low_seconds * share, high_seconds=run.high_seconds * share,
        )  # fmt: skip

    @classmethod
    def series(cls, name: str, kind: str, children: Iterable[Tree], repeat: int = 1) -> Tree:
        """`repeat` times the children, one after another."""
        nodes = tuple(children)
        ends = ([child._ends[i] for child in nodes] for i in range(3))
        seconds, low, high = (repeat * sum(values) for values in ends)
        alive = (node.live_bytes for node in nodes if node.live_bytes is not None)
        return cls(
            name=name, kind=kind, seconds=seconds, low_seconds=low, high_seconds=high,
            repeat=repeat, children=nodes, live_bytes=max(alive, default=None),
        )  # fmt: skip

    @classmethod
    def part(
        cls, name: str, kind: str, seconds: float, ends: tuple[float, float] | None = None, *,
        resource: str = "",
    ) -> Tree:  # fmt: skip
        """A leaf without a kernel; without `ends` it has no range of its own."""
        low, high = ends or (seconds, seconds)
        return cls(
            name=name, kind=kind, family=name, seconds=seconds, low_seconds=low,
            high_seconds=high, resource=resource,
        )  # fmt: skip

    @classmethod
    def beside(cls, name: str, kind: str, children: Iterable[Tree]) -> Tree:
        """The children at once: as long as the longest, which hides the others."""
        nodes = tuple(children)
        seconds, low, high = (max(child._ends[i] for child in nodes) for i in range(3))
        longest = max(nodes, key=lambda node: node.seconds)
        return cls(
            name=name, kind=kind, seconds=seconds, low_seconds=low, high_seconds=high,
            children=tuple(
                node if node is longest else replace(node, exposed_share=0.0) for node in nodes
            ),
        )  # fmt: skip

    @property
    def _ends(self) -> tuple[float, float, float]:
        return self.seconds, self.low_seconds, self.high_seconds

    @property
    def exposed_seconds(self) -> float:
        """Seconds by which it makes its parent longer."""
        return self.seconds * self.exposed_share

    def __add__(self, other: Tree) -> Tree:
        """This and another leaf of one cause, as one."""
        seconds, low, high = (a + b for a, b in zip(self._ends, other._ends, strict=True))
        return replace(self, seconds=seconds, low_seconds=low, high_seconds=high)

    def over(self, devices: int) -> Tree:
        """A leaf on each of `devices` that share it."""
        seconds, low, high = (each / devices for each in self._ends)
        return replace(self, seconds=seconds, low_seconds=low, high_seconds=high)

    def times(self, count: float) -> Tree:
        """`count` times as many runs."""
        seconds, low, high = (count * each for each in self._ends)
        return replace(
            self, seconds=seconds, low_seconds=low, high_seconds=high, repeat=count * self.repeat
        )

    def stretch(self, launch_seconds: float) -> Stretch:
        """Its launches, each with a gap before it, where the host takes so long for each."""
        if self.children:
            passes = joined(child.stretch(launch_seconds) for child in self.children)
            return passes.times(int(self.repeat))
        kernel_seconds = self.seconds / self.repeat + self.gap_seconds
        return Stretch.of(kernel_seconds, launch_seconds).times(int(self.repeat))

    def paths(self) -> Iterator[tuple[Tree, ...]]:
        """Each leaf, behind the nodes that it is below from this one on."""
        if not self.children:
            yield (self,)
        for child in self.children:
            yield from ((self, *path) for path in child.paths())

    @cached_property
    def leaves(self) -> tuple[Tree, ...]:
        """Its leaves with all their runs in it."""
        return tuple(map(with_all_runs, self.paths()))

    @cached_property
    def kernels(self) -> tuple[tuple[Tree, Prediction], ...]:
        """Its kernels with all their runs in it, and the prediction of a run of each."""
        return tuple((leaf, leaf.run) for leaf in self.leaves if leaf.run is not None)

    def by(self, label: Callable[[Tree], str]) -> dict[str, float]:
        """Exposed seconds of its leaves, grouped by `label`; leaves with an empty one are left
        out."""
        seconds: dict[str, float] = {}
        for leaf in self.leaves:
            if name := label(leaf):
                seconds[name] = seconds.get(name, 0.0) + leaf.exposed_seconds
        return seconds

    @property
    def sent_bytes(self) -> float:
        """Bytes that its device sends."""
        return sum(float(exchange.sent_bytes) for exchange in self.exchanges)

    @property
    def operator(self) -> Annotated[str, Column("operator", when=SOME, rank=3, place=-1)]:
        """The operator of its kernels, where it is one."""
        names = {run.algorithm for _, run in self.kernels}
        return names.pop() if len(names) == 1 else ""

    @property
    def launches(self) -> Annotated[float | None, Column("kernels", rank=4, place=-1)]:
        """Runs of its kernels."""
        return sum(leaf.repeat for leaf, _ in self.kernels) or None

    @cached_property
    def limiter(self) -> Annotated[str, Column("limiter")]:
        """The resource that limits the most of its time, named as on the device; a launch's start
        counts for the whole, not for its kernels."""
        return next(iter(self.limiters), "") if self.children else self._bounds[0]

    @cached_property
    def runner_up(self) -> Annotated[str, Column()]:
        """Of a kernel the resource with the second longest time."""
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[str, str]:
        return (self.resource, "") if self.run is None else bounds(self.run)

    @cached_property
    def flops(self) -> Annotated[Mapping[str, float], Column()]:
        """Executed operations by unit: matrix, vector, special."""
        return {
            unit: sum(leaf.repeat * run.flops[unit] for leaf, run in self.kernels)
            for unit in ("matrix", "vector", "special")
        }

    @cached_property
    def useful_flops(self) -> Annotated[float | None, Column("operations", rank=3)]:
        """Operations that masks leave, as rates count them; of several kernels those with matrix
        products."""
        counted = [
            leaf.repeat * run.work
            for leaf, run in self.kernels
            if not self.children or run.flops["matrix"]
        ]
        return sum(counted) or (None if self.children else 0.0)

    @cached_property
    def bytes(self) -> Annotated[Mapping[str, float], Column()]:
        """Bytes through each memory level."""
        levels = dict.fromkeys(level for _, run in self.kernels for level in run.bytes)
        return {
            level: sum(leaf.repeat * run.bytes.get(level, 0.0) for leaf, run in self.kernels)
            for level in levels
        }

    @property
    def intensities(self) -> Annotated[Mapping[str, float], Column(key="arithmetic_intensity")]:
        """Arithmetic intensity: operations, as rates count them, over the bytes of each level."""
        work = self.useful_flops or 0.0
        return {level: work / size for level, size in self.bytes.items() if size}

    @property
    def flops_per_s(self) -> Annotated[float | None, Column("rate", rank=5)]:
        """Operations a second."""
        return self.useful_flops / self.seconds if self.useful_flops else None

    @property
    def hbm_bytes(self) -> Annotated[float | None, Column("memory traffic", rank=3)]:
        """Bytes that cross into the device's memory."""
        return self.bytes.get("hbm") or None

    @property
    def intensity(self) -> Annotated[float | None, Column("FLOP/B", rank=6)]:
        """Operations a byte of the device's memory."""
        return self.useful_flops / self.hbm_bytes if self.useful_flops and self.hbm_bytes else None

    @cached_property
    def limiters(self) -> Annotated[Mapping[str, float], Column(key="limiters_us", scale=1e6)]:
        """Seconds of kernels by their limiting resource, longest first."""
        return longest_first(self.by(lambda leaf: leaf.limiter))

    @property
    def classes(self) -> Annotated[Mapping[str, float], Column(key="by_class_us", scale=1e6)]:
        """Seconds by class, in the order of `KINDS`; gaps and waits for the host are `host`."""
        seconds = self.by(lambda leaf: leaf.kind)
        order = dict.fromkeys((*(kind for kind in seconds if kind not in KINDS), *KINDS))
        return {kind: seconds[kind] for kind in order if kind in seconds}

    @property
    def operators(self) -> Annotated[Mapping[str, float], Column(key="by_operator_us", scale=1e6)]:
        """Seconds of each operator's kernels, the longest first."""
        return longest_first(self.by(lambda leaf: leaf.operator))

    @property
    def known_device(self) -> str:
        """The level of knowledge about the device (`perfmodel.timing.knowledge`) that most of the
        time has."""
        seconds = self.by(lambda leaf: "" if leaf.run is None else leaf.run.known.device)
        return max(seconds, key=seconds.__getitem__)

    @property
    def parts(self) -> Annotated[list[dict[str, Any]], Column(key="kernels", place=1)]:
        """Data of each kernel, of a network with the pass that it is in; of a graph also what is
        alive while it runs, and the prediction of one run."""
        return [self._below(*path) for path in self.paths() if path[-1].run is not None]

    def _below(self, _: Tree, *path: Tree) -> dict[str, Any]:
        *above, leaf = path
        row: dict[str, Any] = {}
        for part in above:
            row |= {"segment": part.name, "pass": part.kind, "layers": part.repeat}
        row |= leaf.as_dict()
        if self.memory is None or leaf.run is None:
            return {key: value for key, value in row.items() if key not in _ALIVE}
        return row | {"prediction": leaf.run.as_dict()}

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: of a root with its settings and kernels, of another node its numbers."""
        if not self.settings:
            return row_of(self, form("kernel"))
        return {**row_of(self, form("root")), **self._apart}

    def as_row(self, **figures: Any) -> dict[str, Any]:
        """Of a root its numbers without its kernels, and further figures."""
        return {**row_of(self, form("row")), **self._apart, **figures}

    @property
    def _apart(self) -> dict[str, Any]:
        phases = {f"{name}_us": seconds * 1e6 for name, seconds in self.phases.items()}
        return phases | ({} if self.memory is None else self.memory.as_dict())


_ROOT = ("kernel", "class", "operator", "live_bytes", "scratch_bytes", "hbm_bytes", "intensity",
         "runner_up")  # fmt: skip
_WITHOUT = {
    "root": _ROOT,
    "row": (*_ROOT, "flops", "bytes", "arithmetic_intensity", "flops_per_s", "by_operator_us",
            "assumptions", "kernels"),
    "line": ("kernel", "class", "scratch_bytes", "settings", "flops", "bytes", "runner_up",
             "arithmetic_intensity", "limiters_us", "by_class_us", "by_operator_us", "assumptions",
             "kernels"),
    "kernel": ("device", "settings", "arithmetic_intensity", "limiters_us", "by_class_us",
               "by_operator_us", "assumptions", "kernels", "hbm_bytes", "intensity",
               "flops_per_s"),
}  # fmt: skip
"""Columns that a form of a node has not: a root with its kernels or without, a line of several
kernels, a kernel."""
_ALIVE = ("live_bytes", "scratch_bytes")


def form(name: str) -> tuple[Column, ...]:
    """The columns of a form of a node: root, row, line or kernel."""
    return tuple(column for column in columns_of(Tree) if column.key not in _WITHOUT[name])


def with_all_runs(path: Sequence[Tree]) -> Tree:
    """The leaf of a path, with all its runs in the first node of it."""
    leaf, share = path[-1], 1.0
    runs: float = 1
    for node in path[:-1]:
        runs *= node.repeat
        share *= node.exposed_share
    leaf = leaf if runs == 1 else leaf.times(runs)
    return leaf if share == 1.0 else replace(leaf, exposed_share=share * leaf.exposed_share)


def bounds(kernel: Prediction) -> tuple[str, str]:
    """Limiter and runner-up of a kernel's own time, in which the launch does not count, named as on
    the device."""
    terms = {name: np.array([seconds]) for name, seconds in kernel.terms.items()}
    launch, terms["launch"] = terms["launch"], np.zeros(1)
    first, second = (str(each[0]) for each in rank(terms, kernel.seconds - launch))
    return kernel.levels.get(first, first), kernel.levels.get(second, second)


def waits(**seconds: float) -> tuple[Tree, ...]:
    """Seconds without a kernel by name, as leaves without a range of their own."""
    return tuple(
        Tree(name=name, kind="host", seconds=each, low_seconds=each, high_seconds=each)
        for name, each in seconds.items()
    )


def longest_first(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds by name, the longest first."""
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def together(leaves: Iterable[Tree]) -> tuple[float, float]:
    """Factors from the predicted device time to the low and the high end of its range."""
    families: dict[str, list[float]] = {}
    for leaf in leaves:
        sums = families.setdefault(leaf.family, [0.0, 0.0, 0.0])
        for i, value in enumerate((leaf.seconds, leaf.low_seconds, leaf.high_seconds)):
            sums[i] += value
    total = sum(mid for mid, _, _ in families.values())
    lower = math.hypot(*(mid - low for mid, low, _ in families.values()))
    upper = math.hypot(*(high - mid for mid, _, high in families.values()))
    return 1.0 - lower / total, 1.0 + upper / total
