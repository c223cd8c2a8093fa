"""Fakes for measuring: a stopwatch, a gauge and kernels without run time or imports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from perfmodel.cases import Case, gemm
from perfmodel.measured.environment import Environment, State
from perfmodel.measured.hostload import HostLoad, Reading
from perfmodel.measured.measure import Bench
from perfmodel.measured.rivals import Prepared
from perfmodel.measured.timer import Policy

CASES = tuple(gemm(16 * i, 32, 64, "fp32") for i in range(1, 31))


class FakeStopwatch:
    """Returns the same time for every sample without waiting."""

    timer = "wall"

    def warm(self, calls: Sequence[object], policy: Policy) -> float:
        return 1e-3

    def samples(self, calls: Sequence[object], per_sample: int, policy: Policy) -> list[float]:
        for call in calls:
            call()  # type: ignore[operator]
        return [1e-3, 2e-3, 3e-3]


class FakeGauge:
    def read(self) -> State:
        return State(1980.0, 2619.0, 700.0, 55.0, "power cap")


@dataclass
class FakeKernel:
    """A kernel that computes nothing; `failing` maps a case's m to what it raises."""

    implementation: str
    error: float = 0.0
    pause_s: float = 0.0
    failing: dict[int, Exception | float] = field(default_factory=dict)
    ran: list[Case] = field(default_factory=list)

    def takes(self, case: Case) -> bool:
        return case.op == "gemm"

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        self.ran.append(case)
        problem = self.failing.get(case.m or 0, self.error)
        if isinstance(problem, Exception):
            raise problem
        return Prepared((partial(time.sleep, self.pause_s),) * sets, lambda: problem)


class IdleHost(HostLoad):
    """A host without other load, since the machine that runs the tests may be busy."""

    def __init__(self) -> None:
        super().__init__(lambda: Reading(0.0, 0.0), lambda: 0.25)


def fake_bench(**more: object) -> Bench:
    where = Environment("fake", "Fake", "cpu", 2.0**20, 2.0**34, {"torch": "0"}, FakeGauge())
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    watches = {"wall": FakeStopwatch}
    bench = Bench(where, Policy(), watches, cold=False, now=lambda: now, load=IdleHost)
    return replace(bench, **more)  # type: ignore[arg-type]
