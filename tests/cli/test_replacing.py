"""Files that are written as a whole, and what killed writers leave."""

import os
import signal
import subprocess
import sys

import pytest
from cases import cases
from folders import ROOT

from perfmodel.errors import OutputError
from perfmodel.measured.journal import Journal
from perfmodel.replacing import replacing

POSIX = pytest.mark.skipif(os.name != "posix", reason="locks and signals as POSIX has them")
WRITER = """
import sys, time
from perfmodel.replacing import replacing
with replacing(sys.argv[1]) as partial:
    partial.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def writer(path):
    """A process that is writing a file, until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout.readline() == "writing\n"
    return process


def killed(path):
    """Leave behind what a killed writer of a file leaves."""
    with writer(path) as process:
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def write(path):
    with replacing(path) as partial:
        partial.write_text("new")


def test_an_error_while_writing_keeps_the_old_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")

    def fail():
        with replacing(path) as partial:
            partial.write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["x.csv"]


@POSIX
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "p.csv"
    killed(path)
    assert len(names(tmp_path)) == 1
    assert path.name not in names(tmp_path)
    write(path)
    assert names(tmp_path) == ["p.csv"]
    assert path.read_text() == "new"


@POSIX
def test_what_another_process_is_writing_stays(tmp_path):
    path = tmp_path / "p.csv"
    with writer(path) as process:
        write(path)
        assert len(names(tmp_path)) == 2
        process.stdin.close()
    assert process.returncode == 0
    assert names(tmp_path) == ["p.csv"]
    assert path.read_text() == "half"


@POSIX
def test_files_of_others_stay(tmp_path):
    killed(tmp_path / "other.csv")
    mine = [".p.csv.hra3_9qf", ".p.csv.hra3_9qf.perfmodel.bak", ".p.csv.short.perfmodel"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".p.csv.hra3_9qf.perfmodel").symlink_to(tmp_path / mine[0])
    before = names(tmp_path)
    write(tmp_path / "p.csv")
    assert names(tmp_path) == sorted([*before, "p.csv"])


@POSIX
@cases
def test_commands_remove_them_too(output, tmp_path, command, name):
    killed(tmp_path / name)
    assert len(names(tmp_path)) == 1
    output(*command.format(name).split())
    assert names(tmp_path) == [name]


@POSIX
def test_a_measured_table_is_written_in_the_same_way(tmp_path):
    table = tmp_path / "m.csv"
    killed(table)
    with Journal(table, ("op", "m"), ("m",)).open(resume=False) as journal:
        journal.append({"op": "gemm", "m": "1"})
    assert names(tmp_path) == ["m.csv"]
    killed(table)
    with Journal(table, ("op", "m"), ("m",)).open(resume=True) as journal:
        assert len(journal) == 1
    assert names(tmp_path) == ["m.csv"]


FULL = """
import resource, sys
from perfmodel.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
main(sys.argv[1:])
"""


@POSIX
@cases
def test_a_full_disk_is_one_line_with_the_path_and_leaves_nothing(tmp_path, command):
    if command.startswith("measure"):
        pytest.importorskip("torch")
    arguments = command.format(tmp_path).split()
    done = subprocess.run(
        [sys.executable, "-c", FULL, *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    *notes, error = done.stderr.splitlines()
    assert error.startswith(f"perfmodel: cannot write {arguments[-1]}: file too large")
    assert all(note.startswith("this machine is busy") for note in notes)
    assert names(tmp_path) == []


@POSIX
def test_an_empty_table_that_was_there_stays_on_a_full_disk(tmp_path, monkeypatch):
    table = tmp_path / "m.csv"
    table.touch()
    monkeypatch.setattr("os.fsync", fails_for_space)
    with pytest.raises(OutputError, match=r"cannot write .*m\.csv: no space left"):
        Journal(table, ("op", "m"), ("m",)).open(resume=True)
    assert names(tmp_path) == ["m.csv"]


def fails_for_space(_descriptor):
    raise OSError(28, "No space left on device")
