"""A sweep's folder: a kill at any moment loses and doubles nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from folders import ROOT
from refusing import raised
from sweepruns import contents, small

from perfmodel.analysis.sweep import Sweep, parts, read_manifest, run
from perfmodel.analysis.sweep.runner import Meter
from perfmodel.analysis.sweep.store import MANIFEST
from perfmodel.errors import OutputError, TableError
from perfmodel.hardware import load


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    written = run(small(), folder)
    assert (written.points, written.files, written.unpredicted) == (14400, 30, 0)
    return folder


def test_any_reader_of_partitioned_parquet_sees_every_row_once(finished):
    table = ds.dataset(finished, partitioning="hive", exclude_invalid_files=True).to_table()
    assert table.num_rows == 14400
    cases = {(row["device"], row["case"]) for row in table.select(["device", "case"]).to_pylist()}
    assert cases == {(name, i) for name in ("h100-sxm", "b200") for i in range(7200)}
    ours = [row for part in parts(finished) for row in part.to_pylist()]
    assert [(row["device"], row["case"]) for row in ours[:2]] == [("h100-sxm", 0), ("h100-sxm", 1)]
    assert len(ours) == 14400


def test_the_manifest_says_what_the_folder_holds(finished):
    manifest = read_manifest(finished)
    assert manifest["schema_version"] == 1
    assert manifest["operator"] == "softmax"
    assert (manifest["points"], manifest["parts"], manifest["chunk"]) == (14400, 30, 500)
    assert manifest["grid"]["sizes"]["rows"] == {"start": 1, "stop": 60, "step": 1}
    assert [device["slug"] for device in manifest["devices"]] == ["h100-sxm", "b200"]


def test_running_again_writes_nothing(finished):
    before = contents(finished)
    times = {path: path.stat().st_mtime_ns for path in finished.rglob("*.parquet")}
    assert run(small(), finished).fresh == 0
    assert contents(finished) == before
    assert times == {path: path.stat().st_mtime_ns for path in finished.rglob("*.parquet")}


def test_what_is_missing_or_damaged_is_written_again(finished, tmp_path):
    folder = tmp_path / "copy"
    run(small(), folder)
    files = sorted(folder.rglob("*.parquet"))
    files[3].unlink()
    files[7].write_bytes(files[7].read_bytes()[:-9])
    files[11].write_bytes(b"")
    shorter = pq.read_table(files[13]).slice(0, 10)
    pq.write_table(shorter, files[13])
    assert run(small(), folder).fresh == 3 * 500 + 500 * (files[13].stat().st_size > 0)
    assert contents(folder) == contents(finished)


_RUN = """
import sys
sys.path[:0] = {paths!r}
from sweepruns import small
from perfmodel.analysis.sweep import run
print("begun", flush=True)
run(small(), sys.argv[1])
"""


def test_killed_at_random_moments_it_loses_and_doubles_nothing(finished, tmp_path):
    code = _RUN.format(paths=[str(ROOT / "tests"), str(ROOT)])
    dice = random.Random(5)
    folder = tmp_path / "killed"
    kills = survived = 0
    for attempt in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout.readline() == "begun\n"
            there = sum(1 for _ in folder.rglob("part-*")) if folder.exists() else 0
            # Wait for a few more files (or for none), then a moment within the next one.
            while process.poll() is None and folder.exists() and attempt and (
                sum(1 for _ in folder.rglob("part-*")) < there + dice.randrange(4)
            ):  # fmt: skip
                time.sleep(0.001)
            time.sleep(dice.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            survived += process.wait() == 0
            kills += 1
        for path in folder.rglob("part-*.parquet"):
            assert pq.read_metadata(path).num_rows in (500, 200)
        if survived:
            break
    run(small(), folder)
    assert contents(folder) == contents(finished)
    assert not list(folder.rglob(".part*"))
    assert kills > 1


def test_a_folder_with_another_sweep_is_refused(finished, tmp_path):
    before = contents(finished)
    raised(OutputError, lambda: run(small(side=61), finished), "another sweep", "grid")
    raised(OutputError, lambda: run(small(chunk=499), finished), "another sweep", "chunk")
    other = small(devices=("h100-sxm",))
    raised(OutputError, lambda: run(other, finished), "another sweep", "devices")
    faster = Sweep(small().grid, (load("h100-sxm").scaled(hbm_bandwidth=2),), chunk=500)
    raised(OutputError, lambda: run(faster, finished), "another sweep", "devices")
    changed = small().constants.with_values({"l2_knee": 0.5})
    same = Sweep(small().grid, small().devices, chunk=500, constants=changed)
    raised(OutputError, lambda: run(same, finished), "another sweep", "constants_hash")
    assert contents(finished) == before
    (tmp_path / "notes.txt").write_text("mine")
    raised(OutputError, lambda: run(small(), tmp_path), "other files", "notes.txt")
    (tmp_path / "notes.txt").rename(tmp_path / MANIFEST)
    raised(OutputError, lambda: run(small(), tmp_path), "not a sound manifest")
    (tmp_path / MANIFEST).write_text(json.dumps({"schema_version": 99}))
    raised(OutputError, lambda: run(small(), tmp_path), "another version")


@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX has them")
def test_two_runs_do_not_write_to_one_folder(tmp_path):
    import fcntl

    run(small(side=5), tmp_path / "one")
    with (tmp_path / "one" / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        raised(OutputError, lambda: run(small(side=5), tmp_path / "one"), "in use", "wait")
    assert run(small(side=5), tmp_path / "one").fresh == 0


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    raised(OutputError, lambda: run(small(), tmp_path / "file"), "cannot make the folder")
    raised(OutputError, lambda: run(small(), tmp_path / "file" / "in"), "cannot make the folder")


def test_reading_an_unfinished_or_damaged_sweep_is_one_line(tmp_path):
    raised(TableError, lambda: next(parts(tmp_path)), "holds no sweep")
    folder = tmp_path / "sweep"
    run(small(side=20), folder)
    first = min(folder.rglob("*h100*/*.parquet"))
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    raised(TableError, lambda: next(parts(folder)), "not a sound Parquet file")
    first.unlink()
    raised(TableError, lambda: next(parts(folder)), "not finished", "run the same sweep again")


def test_progress_counts_what_was_there_and_tells_the_time_left(tmp_path):
    seen = []
    run(small(side=20), tmp_path / "one", progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 1600)
    assert seen[-1] == (1600, 1600)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    seen.clear()
    run(small(side=20), tmp_path / "one", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1600, 1600)]
    line = Meter.line(fresh=200_000, elapsed=2.0, done=500_000, total=1_000_000)
    assert line == " 50%  500,000 of 1,000,000 points, 100,000 a second, 5.0 s left"
    assert Meter.line(10, 1.0, 10, 36_010).endswith("1 h 00 min left")
    assert Meter.line(10, 1.0, 10, 910).endswith("1 min 30 s left")
    assert Meter.line(0, 0.0, 5, 10).endswith("time left unknown")
    said = []
    meter = Meter(said.append, interval=3600)
    for done in (0, 5, 9, 10):
        meter(done, 10)
    assert len(said) == 1
    assert said[0].startswith("100%")


def test_progress_counts_from_its_first_call(monkeypatch):
    """The clock starts anywhere, and points of an earlier run took none of the time."""
    clock = iter((5000.0, 5002.0, 5004.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    lines = []
    meter = Meter(lines.append)
    for done in (600, 800, 1000):
        meter(done, 2000)
    assert lines == [Meter.line(200, 2.0, 800, 2000), Meter.line(400, 4.0, 1000, 2000)]
