"""Detection of a busy machine: by waiting threads, by uneven samples, and before timing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from measuring import CASES, FakeKernel, FakeStopwatch, fake_bench

from perfmodel.measured import hostload
from perfmodel.measured.hostload import UNSEEN, HostLoad, Reading, Seen, others
from perfmodel.measured.journal import Journal
from perfmodel.measured.measure import COLUMNS, KEY, measure, plan
from perfmodel.measured.timer import Samples

EVEN = Samples((1.0, 1.01, 1.02), 1, "wall")


def reading(
    ran: dict[str, float], waited: dict[str, float], at: float = 0.0, busy: float | None = None
) -> Reading:
    return Reading(at, sum(ran.values()), ran, waited, busy)


def watched(*readings: Reading, average: float | None = 0.5) -> HostLoad:
    listed: Iterator[Reading] = iter(readings)
    return HostLoad(lambda: next(listed), lambda: average)


TIMES = st.floats(0, 1e6)


@given(TIMES, TIMES, TIMES, TIMES)
def test_the_share_is_of_the_time_in_which_threads_could_run(
    before: float, waiting: float, ran: float, waited: float
) -> None:
    start = reading({"1": before}, {"1": waiting})
    end = reading({"1": before + ran}, {"1": waiting + waited})
    share = watched(start, end).seen(EVEN).share
    assert share is not None
    assert 0 <= share <= 1
    if ran > 1 and waited > 1:
        assert share == pytest.approx(ran / (ran + waited), rel=1e-6)


def test_threads_that_come_count_from_their_start_and_those_that_went_not_at_all() -> None:
    start = reading({"old": 5.0, "gone": 9.0}, {"old": 1.0, "gone": 3.0})
    end = reading({"old": 7.0, "new": 1.0}, {"old": 1.5, "new": 0.5})
    assert watched(start, end).seen(EVEN).share == pytest.approx(3.0 / 4.0)


def test_a_process_that_did_nothing_was_not_hindered() -> None:
    same = reading({"1": 5.0}, {"1": 1.0})
    assert watched(same, same).seen(EVEN) == Seen(1.0, True, 0.5)


@pytest.mark.parametrize(
    ("seen", "busy"),
    [
        (Seen(1.0), False),
        (Seen(0.95), False),
        (Seen(0.85), True),  # a thread in seven waited: it shows in the time
        (Seen(1.0, even=False), True),
        (UNSEEN, False),
    ],
)
def test_what_is_busy(seen: Seen, busy: bool) -> None:
    assert seen.busy is busy
    assert [seen.flagged(flag) for flag in ("", "l2_resident", "noisy", "timer_floor")] == (
        ["busy", "busy", "noisy", "timer_floor"] if busy
        else ["", "l2_resident", "noisy", "timer_floor"]
    )  # fmt: skip


def test_uneven_samples_are_seen() -> None:
    same = reading({"1": 1.0}, {})
    assert watched(same, same).seen(Samples((0.5, 1.0, 1.1), 1, "wall")).busy
    assert not watched(same, same).seen(Samples((0.7, 1.0, 1.1), 1, "wall")).busy


def test_rows_say_what_the_host_did() -> None:
    assert Seen(0.87654, True, 3.14159).cells() == {
        "processor_share": "0.877", "load_average": "3.14",
    }  # fmt: skip
    assert UNSEEN.cells() == dict.fromkeys(hostload.COLUMNS, "")


class Even(FakeStopwatch):
    def samples(self, *_: object) -> list[float]:
        return [1.0, 1.01, 1.02]


class Graph(Even):
    timer = "graph"


def rows(folder: Path, stopwatch: type[FakeStopwatch], load: Callable[[], HostLoad]) -> list[str]:
    path = folder / "runs.csv"
    bench = replace(fake_bench(load=load), stopwatches={stopwatch.timer: stopwatch})
    with Journal(path, COLUMNS, KEY).open(resume=False) as journal:
        measure(plan(CASES[:3], [FakeKernel("a")]), bench, journal)
    with path.open(newline="") as file:
        return [f"{row['flag']} {row['processor_share']}" for row in csv.DictReader(file)]


def test_rows_measured_meanwhile_are_flagged(tmp_path: Path) -> None:
    shares = iter([1.0, 0.5, 1.0])

    def load() -> HostLoad:
        ran = next(shares)
        return watched(reading({"1": 0.0}, {"1": 0.0}), reading({"1": ran}, {"1": 1 - ran}))

    assert rows(tmp_path, Even, load) == ["l2_resident 1.000", "busy 0.500", "l2_resident 1.000"]


def test_a_devices_own_clock_does_not_care(tmp_path: Path) -> None:
    def load() -> HostLoad:
        return watched(reading({"1": 0.0}, {"1": 0.0}), reading({"1": 0.1}, {"1": 0.9}))

    assert rows(tmp_path, Graph, load) == ["l2_resident "] * 3


@cases
def test_looking_before_anything_is_timed(
    mine: float, all_: float | None, average: float | None, said: str
) -> None:
    slept: list[float] = []
    taken = iter(
        [
            Reading(10.0, 5.0, busy_s=None if all_ is None else 100.0),
            Reading(10.2, 5.0 + mine, busy_s=None if all_ is None else 100.0 + all_),
        ]
    )
    found = others(2, lambda: next(taken), lambda: average, slept.append)
    assert found.said == said
    assert found.busy == bool(said)
    assert len(slept) == 1


def test_this_systems_accounts_can_be_read() -> None:
    first = hostload.read()
    sum(range(200_000))
    second = hostload.read()
    assert second.at_s > first.at_s
    assert sum(second.ran.values()) > 0
    assert set(first.ran) == set(first.waited)
    assert second.process_s >= first.process_s


def test_a_system_without_accounts_has_its_clocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hostload, "_TASKS", tmp_path / "none")
    monkeypatch.setattr(hostload, "_STAT", tmp_path / "none")
    found = hostload.read()
    assert list(found.ran) == list(found.waited) == ["this"]
    assert found.busy_s is None
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "schedstat").write_text("nonsense\n")
    monkeypatch.setattr(hostload, "_TASKS", tmp_path)
    assert list(hostload.read().ran) == ["this"]


def test_measuring_says_at_the_start_that_the_machine_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")

    from perfmodel.cli.measure import app

    monkeypatch.setattr(hostload, "others", lambda cores: hostload.Others(1.5, 3.0, 2))
    arguments = ["--device", "cpu", "--quick", "--samples", "3"]
    arguments += ["--ops", "pointwise", "--limit-seconds", "0", "--output", str(tmp_path / "r.csv")]
    app.main(args=arguments, standalone_mode=False)
    said = capsys.readouterr().err
    assert "busy (other programs use 1.5 of 2 cores, load average 3.0)" in said
    assert "flagged 'busy'" in said
