"""Choosing a config: the fastest of all, every one of them a row, none timed twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.cases import gemm
from perfmodel.measured.journal import Journal
from perfmodel.measured.timer import Call, Samples
from perfmodel.measured.tuning import COLUMNS, KEY, Trial, Tuner
from perfmodel.proof.kernel import KernelError

CASE = gemm(64, 64, 64, "fp16")


class Timed:
    """Trials whose calls say how long they take; what was timed is kept."""

    def __init__(self, seconds: dict[str, float | Exception]) -> None:
        self._seconds = seconds
        self.timed: list[str] = []

    def trials(self) -> list[Trial]:
        return [
            Trial(name, self._prepared(name), lambda: {"registers": 7}) for name in self._seconds
        ]

    def _prepared(self, name: str):  # type: ignore[no-untyped-def]
        def prepare() -> Sequence[Call]:
            self.timed.append(name)
            found = self._seconds[name]
            if isinstance(found, Exception):
                raise found
            return (lambda: found,)

        return prepare


def time(calls: Sequence[Call]) -> Samples:
    seconds = calls[0]()
    return Samples((seconds, seconds * 1.1, seconds * 1.2), 1, "graph")


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(1e-6, 1.0), min_size=1))
def test_the_fastest_is_taken(seconds: dict[str, float]) -> None:
    found = Tuner(time).fastest(CASE, "triton-3:matmul", Timed(dict(seconds)).trials())
    assert seconds[found.config] == pytest.approx(min(seconds.values()), rel=1e-5)


def test_every_config_is_a_row_and_is_timed_once(tmp_path: Path) -> None:
    timed = Timed({"a": 3e-3, "b": 1e-3, "c": RuntimeError("out of resource: shared memory")})
    for _ in range(2):
        with Journal(tmp_path / "configs.csv", COLUMNS, KEY).open(resume=True) as journal:
            tuner = Tuner(time, "h200-sxm", journal, beside=lambda *_: {"predicted_us": "5"})
            assert tuner.fastest(CASE, "triton-3:matmul", timed.trials()).config == "b"
            found = journal.rows()
    assert timed.timed == ["a", "b", "c"]
    assert [(row["config"], row["measured_us"], row["flag"]) for row in found] == [
        ("a", "3300", ""), ("b", "1100", ""), ("c", "", "failed"),
    ]  # fmt: skip
    assert found[2]["reason"] == "RuntimeError: out of resource: shared memory"
    assert {row["predicted_us"] for row in found} == {"5"}
    assert [row["registers"] for row in found] == ["7", "7", ""]


def test_where_none_runs_the_last_reason_is_given() -> None:
    timed = Timed({"a": RuntimeError("too large"), "b": ValueError("no such instruction")})
    with pytest.raises(KernelError, match=r"no config of triton-3:matmul.*no such instruction"):
        Tuner(time).fastest(CASE, "triton-3:matmul", timed.trials())
    with pytest.raises(KernelError, match="it has no configs"):
        Tuner(time).fastest(CASE, "triton-3:matmul", [])


def test_memory_that_runs_out_is_the_cases_failure_not_a_configs() -> None:
    timed = Timed({"a": RuntimeError("CUDA out of memory"), "b": 1.0})
    with pytest.raises(RuntimeError, match="out of memory"):
        Tuner(time).fastest(CASE, "triton-3:matmul", timed.trials())


def test_every_config_is_announced_before_it_runs(tmp_path: Path) -> None:
    timed = Timed({"a": 3e-3, "b": 1e-3})
    told: list[tuple[str, str, int]] = []

    def announce(table: str, identity: object) -> None:
        told.append((table, identity["config"], len(timed.timed)))  # type: ignore[index]

    with Journal(tmp_path / "configs.csv", COLUMNS, KEY).open(resume=True) as journal:
        for _ in range(2):
            tuner = Tuner(time, "h200-sxm", journal, announce)
            tuner.fastest(CASE, "triton-3:matmul", timed.trials())
    assert told == [("configs", "a", 0), ("configs", "b", 1)]
