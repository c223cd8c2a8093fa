"""Collective × system × library → predictions, by the algorithm that the library would choose.

Arrays of one kind are predicted in groups; equal numbers of ranks cross the same links.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfmodel.collectives import collectivespread, custom, nccl, times
from perfmodel.collectives.collectiveprediction import CollectiveKnown, CollectivePredictions
from perfmodel.collectives.constants import Values, default
from perfmodel.collectives.nccl import Method
from perfmodel.collectives.problem import Collective, bus_factor
from perfmodel.collectives.route import Route, route
from perfmodel.collectives.times import Exchange, Machine
from perfmodel.errors import UnknownName
from perfmodel.hardware import System
from perfmodel.hardware import load as load_device
from perfmodel.timing.architectures import architecture_of

NCCL = "nccl"
_MAKER = "NVIDIA"
_NONE = "none"
"""Algorithm, protocol and limiter of a single rank."""


def libraries() -> tuple[str, ...]:
    """Libraries whose choices are modelled."""
    return (NCCL, *custom.libraries())


def predict_collective(
    problem: Collective,
    system: System,
    *,
    library: str = NCCL,
    eager: bool = False,
    constants: Values | None = None,
) -> CollectivePredictions:
    """Predict arrays of collectives of one kind on a system.

    `library` is one of `libraries()`. An `eager` call copies its buffer first, and takes as long as
    the host needs for it (`custom.yaml`). A single rank takes no time. Raises `UnknownName` for
    another library, and `ProblemError` for ranks that the system does not have or that do not fill
    its groups.
    """
    if library not in libraries():
        raise UnknownName("library of collectives", library, libraries())
    spread_out = problem.spread()
    answers = _Answers(spread_out, system, library, constants or default(), eager)
    for ranks, local, index in _groups(spread_out):
        answers.fill(index, ranks, local)
    return answers.predictions()


def _groups(problem: Collective) -> Iterator[tuple[int, int | None, np.ndarray]]:
    """Ranks, ranks of a node, and indices of collectives that cross the same links."""
    ranks = np.asarray(problem.ranks)
    local = np.zeros_like(ranks) if problem.ranks_per_node is None else problem.ranks_per_node
    for pair in sorted(set(zip(ranks.tolist(), np.asarray(local).tolist(), strict=True))):
        index = np.flatnonzero((ranks == pair[0]) & (local == pair[1]))
        yield int(pair[0]), int(pair[1]) or None, index


class _Answers:
    """Arrays that are filled group by group."""

    def __init__(
        self, problem: Collective, system: System, library: str, values: Values, eager: bool
    ) -> None:
        self.problem, self.system, self.library, self.eager = problem, system, library, eager
        device = load_device(system.device)
        self.machine = Machine(device, architecture_of(device).name, values)
        n = len(problem)
        self.seconds, self.low, self.high, self.sent = (np.zeros(n) for _ in range(4))
        self.algorithm, self.protocol, self.limiter = (
            np.full(n, _NONE, dtype=object) for _ in range(3)
        )
        self.terms: dict[str, np.ndarray] = {}
        self.known = np.full(n, self._knowledge(None), dtype=object)
        self.assumptions: dict[str, None] = dict.fromkeys(system.notes)

    def fill(self, index: np.ndarray, ranks: int, local: int | None) -> None:
        """Predict the collectives at `index`, which all have the same ranks."""
        links = route(self.system, ranks, local, self.problem.stride)
        if ranks == 1:
            return
        bytes_ = np.asarray(self.problem.bytes, dtype=np.float64)[index]
        exchange = Exchange(self.problem.op, links, bytes_)
        self.sent[index] = exchange.sent_bytes
        knowledge = self._knowledge(links)
        self._assume(links)
        methods, choice = self._choose(exchange)
        for i, method in enumerate(methods):
            mask = choice == i
            if mask.any():
                part = Exchange(exchange.op, links, bytes_[mask])
                terms = times.terms(method, part, self.machine)
                terms = self._call_terms(method, terms, part.bytes)
                self._put(index[mask], method, terms, knowledge, links)

    def _call_terms(self, method: Method, terms: times.Terms, bytes_: np.ndarray) -> times.Terms:
        """The terms of an eager call: a copy of the buffer, and what the host takes beyond the
        device."""
        if not self.eager:
            return terms
        base = {**terms, "hbm": terms.get("hbm", 0.0) + self.machine.copied(bytes_)}
        call = custom.call_seconds(self.machine.device, self.library, method)
        host = call - times.total(base)
        return {**base, "host": np.maximum(host, 0.0)}

    def _knowledge(self, links: Route | None) -> CollectiveKnown:
        """The level of knowledge, which depends on whether the constants were fitted to the
        links."""
        device = self.machine.device
        # NCCL is taken for other makers' libraries.
        library = custom.family(self.library) if device.vendor == _MAKER else ""
        return collectivespread.known(device.slug, self.machine.architecture, library, links)

    def _choose(self, exchange: Exchange) -> tuple[list[Method], np.ndarray]:
        """The available methods, and the library's choice for each size."""
        op, architecture = exchange.op, self.machine.architecture
        links, bytes_ = exchange.route, exchange.bytes
        methods = nccl.methods(op, links, self.problem.dtype, architecture)
        if methods[0].algorithm == "pairwise":  # messages use the faster protocol
            costs = [times.total(times.terms(m, exchange, self.machine)) for m in methods]
        else:
            costs = [nccl.expected(m, op, links, bytes_, architecture) for m in methods]
        choice = np.argmin(costs, axis=0)
        if self.library == NCCL:
            return methods, choice
        kernels = custom.kernels(self.library, op, links, architecture)
        if kernels:
            index = custom.choice([limit for _, limit in kernels], bytes_)
            choice = np.where(index < 0, choice, len(methods) + index)
        return [*methods, *(method for method, _ in kernels)], choice

    def _put(
        self, index: np.ndarray, method: Method, terms: times.Terms, knowledge: CollectiveKnown,
        links: Route,
    ) -> None:  # fmt: skip
        """Store the results of the collectives at `index`, which all use one method."""
        names = list(terms)
        seconds = times.total(terms)
        self.seconds[index] = seconds
        self.algorithm[index], self.protocol[index] = method.algorithm, method.protocol
        largest = np.argmax([terms[name] for name in names], axis=0)
        self.limiter[index] = np.array(names, dtype=object)[largest]
        for name, values in terms.items():
            self.terms.setdefault(name, np.zeros(len(self.seconds)))[index] = values
        low, high = collectivespread.ends(knowledge, method, links)
        self.low[index], self.high[index] = seconds * np.exp(low), seconds * np.exp(high)
        for i in index:
            self.known[i] = knowledge

    def _assume(self, links: Route) -> None:
        """Record assumptions for links without measured runs."""
        for item in links.crossings:
            if item.level.medium != "fabric":
                self.assumptions[
                    f"{item.level.label}: its share of the documented rate is a source's, which no "
                    "measured run was compared with"
                ] = None
        if self.machine.device.vendor != _MAKER:
            note = "NCCL's algorithms and latencies are taken for those of this maker's library"
            self.assumptions[note] = None

    def predictions(self) -> CollectivePredictions:
        """The results so far."""
        problem = self.problem
        factor = bus_factor(problem.op, np.asarray(problem.ranks, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            bus = np.asarray(problem.bytes) * factor / self.seconds
        return CollectivePredictions(
            system=self.system,
            library=self.library,
            problem=problem,
            seconds=self.seconds,
            low_seconds=self.low,
            high_seconds=self.high,
            algorithm=self.algorithm,
            protocol=self.protocol,
            limiter=self.limiter,
            terms=self.terms,
            sent_bytes=self.sent,
            bus_bytes_per_s=np.where(self.seconds > 0, bus, 0.0),
            known=tuple(self.known),
            assumptions=tuple(self.assumptions),
        )
