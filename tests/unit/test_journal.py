"""The journal: whole rows only, nothing lost, nothing doubled, whatever happens to the file."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import ROOT

from perfmodel.errors import OutputError, TableError
from perfmodel.measured.journal import Journal

COLUMNS = ("device", "op", "m", "measured_us", "flag", "reason")
KEY = ("device", "op", "m")


def row(m: int, **more: str) -> dict[str, str]:
    return {"device": "d", "op": "gemm", "m": str(m), "measured_us": f"{m}.5", **more}


def opened(path: Path, *, resume: bool = True) -> Journal:
    return Journal(path, COLUMNS, KEY).open(resume=resume)


def table(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_rows_are_there_after_each_append(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with opened(path, resume=False) as journal:
        assert table(path) == ["device,op,m,measured_us,flag,reason"]
        journal.append(row(1))
        assert table(path)[1:] == ["d,gemm,1,1.5,,"]
        journal.append(row(2, reason='said "no", twice\nover'))
    assert table(path)[2] == 'd,gemm,2,2.5,,"said ""no"", twice over"'


def test_a_resumed_run_knows_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with opened(path, resume=False) as journal:
        journal.append(row(1))
        journal.append(row(2, flag="failed", measured_us="", reason="out of memory"))
    with opened(path) as journal:
        assert (journal.has(row(1)), journal.has(row(2)), journal.has(row(3))) == (
            True,
            True,
            False,
        )
        assert journal.said == []
        assert len(journal) == 2


def test_resuming_what_is_not_there_starts_it(tmp_path: Path) -> None:
    with opened(tmp_path / "new.csv") as journal:
        assert len(journal) == 0


def test_a_table_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with opened(path, resume=False) as journal:
        journal.append(row(1))
    with pytest.raises(OutputError, match="is there already; add --resume"):
        opened(path, resume=False)
    assert len(table(path)) == 2


def test_a_full_disk_leaves_the_table_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.csv"
    with opened(path, resume=False) as journal:
        journal.append(row(1))
    torn = path.read_bytes() + b"d,gemm,2"
    path.write_bytes(torn)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"runs\.csv: no space left"), opened(path):
        pass
    assert [item.name for item in tmp_path.iterdir()] == ["runs.csv"]
    assert path.read_bytes() == torn


def test_cut_anywhere_only_the_torn_line_is_lost(tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv"
    with opened(whole, resume=False) as journal:
        for m in range(1, 6):
            journal.append(row(m, reason="a, b" if m == 3 else ""))
    data = whole.read_bytes()
    for length in range(len(data) + 1):
        path = tmp_path / "cut.csv"
        path.write_bytes(data[:length])
        finished = max(data[:length].count(b"\n") - 1, 0)
        with opened(path) as journal:
            assert len(journal) == finished
            for m in range(1, 6):
                if not journal.has(row(m)):
                    journal.append(row(m, reason="a, b" if m == 3 else ""))
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"d,gemm,2,2.5,", "5 cells where the header has 6"),
        (b"d,gemm,2,two,,", "measured_us 'two' is not a positive number"),
        (b"d,gemm,2,,,", "measured_us '' is not a positive number"),
        (b"\x00\xff\xfe", "not a line of text"),
        (b"d,gemm,\x00,2.5,,", "unprintable characters"),
        (b"d,gemm,1,9.5,,", "a case that is there already"),
        (b",gemm,2,2.5,,", "no device or operation"),
    ],
)
def test_a_damaged_line_is_named_and_the_rest_kept(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "runs.csv"
    with opened(path, resume=False) as journal:
        for m in (1, 2, 3):
            journal.append(row(m))
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    with opened(path) as journal:
        assert len(journal.said) == 1
        assert journal.said[0].startswith(f"{path}:3: {said}")
        assert (journal.has(row(1)), journal.has(row(2)), journal.has(row(3))) == (
            True,
            False,
            True,
        )
    assert (tmp_path / "runs.csv.damaged").read_bytes() == line + b"\n"
    with opened(path) as journal:
        assert journal.said == []


@pytest.mark.parametrize("text", ["a,b,c\n1,2,3\n", "not a table at all\n", "{}\n"])
def test_another_file_is_refused_untouched(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(TableError, match="not a table of this measurement"):
        opened(path)
    assert path.read_text() == text


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"name a \.csv file"):
        opened(tmp_path / "runs.parquet")
    with pytest.raises(OutputError, match="cannot write"):
        opened(tmp_path / "nowhere" / "runs.csv")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "runs.csv"
    with (
        opened(path, resume=False),
        pytest.raises(OutputError, match="another measurement is writing it"),
    ):
        opened(path)
    with opened(path) as journal:
        journal.append(row(1))


# Forks a measurement for every line "path delay" it reads, so that each is a process of its own at
# little cost; kills it after the delay (none where it is negative) and says how it ended.
FORKS = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from measuring import CASES, FakeKernel, fake_bench
from perfmodel.measured.journal import Journal
from perfmodel.measured.measure import COLUMNS, KEY, measure, plan
assert not {"torch", "pandas"} & set(sys.modules)
for line in sys.stdin:
    path, delay = line.split()
    child = os.fork()
    if child == 0:
        with Journal(path, COLUMNS, KEY).open(resume=True) as journal:
            kernels = [FakeKernel("a"), FakeKernel("b", pause_s=0.001)]
            measure(plan(CASES, kernels), fake_bench(), journal)
        os._exit(0)
    if float(delay) >= 0:
        time.sleep(float(delay))
        os.kill(child, signal.SIGKILL)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Forks:
    """Measurements in processes of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS, str(ROOT / "tests")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, path: Path, kill_after_s: float = -1.0) -> int:
        """How it ended: 0, or the signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path} {kill_after_s}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def forks() -> Iterator[Forks]:
    found = Forks()
    yield found
    found.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_fifty_times_nothing_is_lost_or_doubled(tmp_path: Path, forks: Forks) -> None:
    whole, killed = tmp_path / "whole.csv", tmp_path / "killed.csv"
    assert forks.run(whole) == 0
    expected = sorted(table(whole))
    assert len(expected) == 1 + 2 * 30
    draw = random.Random(20)
    kills = 0
    seen: set[str] = set()
    while kills < 50:
        kills += forks.run(killed, draw.random() * 0.03) == signal.SIGKILL
        finished = set(killed.read_text().split("\n")[:-1]) if killed.exists() else set()
        assert seen <= finished  # no finished row is ever lost
        seen = finished
        if len(seen) == len(expected):  # done before the fiftieth kill: from the start again
            assert sorted(table(killed)) == expected
            killed.unlink()
            seen = set()
    assert forks.run(killed) == 0
    assert sorted(table(killed)) == expected
