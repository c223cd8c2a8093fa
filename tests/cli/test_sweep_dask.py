"""A sweep on Dask: the same bytes, also when a worker is killed."""

import os
import signal
import socket

import pytest

pytest.importorskip("distributed")

from sweepruns import contents, small

from perfmodel.analysis.sweep import run
from perfmodel.errors import OutputError, PerfmodelError


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as found:
        yield found


def test_a_killed_worker_changes_no_byte(cluster, tmp_path):
    sweep = small(side=100, chunk=200, devices=("h100-sxm",))
    run(sweep, tmp_path / "here")
    killed = []

    def shoot(done, total):
        if done > total // 10 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    written = run(sweep, tmp_path / "there", dask=cluster.scheduler_address, progress=shoot)
    assert killed
    assert written.points == written.fresh == 20_000
    assert len(contents(tmp_path / "there")) == 1 + sweep.parts
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_run_begun_here_is_finished_there(cluster, tmp_path):
    sweep = small(side=40)
    run(sweep, tmp_path / "mixed")
    whole = contents(tmp_path / "mixed")
    for path in sorted(tmp_path.rglob("*.parquet"))[::2]:
        path.unlink()
    assert 0 < run(sweep, tmp_path / "mixed", dask=cluster.scheduler_address).fresh < sweep.points
    assert contents(tmp_path / "mixed") == whole


def test_what_a_worker_cannot_do_is_one_line(cluster, tmp_path, monkeypatch):
    from perfmodel.analysis.sweep import dask_runner

    monkeypatch.setattr(dask_runner, "_write", _broken)
    with pytest.raises(OutputError, match="gave a part up: the disk is full") as caught:
        run(small(side=5), tmp_path / "sweep", dask=cluster.scheduler_address)
    assert "\n" not in str(caught.value)


def _broken(blob, i):
    raise RuntimeError("the disk is full")


def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path, monkeypatch):
    from perfmodel.analysis.sweep import dask_runner

    monkeypatch.setattr(dask_runner, "TIMEOUT", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for address in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1:1", "nonsense"):
            with pytest.raises(OutputError, match="no Dask scheduler answers") as caught:
                run(small(side=5), tmp_path / "sweep", dask=address)
            assert "\n" not in str(caught.value)
            assert address in str(caught.value)
    assert not (tmp_path / "sweep").exists()


def test_a_scheduler_without_workers_is_one_line(tmp_path):
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(OutputError, match="has no workers"),
    ):
        run(small(side=5), tmp_path / "sweep", dask=empty.scheduler_address)


def test_plans_on_workers_are_those_of_this_process(cluster):
    from perfmodel.analysis.plans import steps
    from perfmodel.hardware import load, systems
    from perfmodel.networks import library

    place = library.load("gpt2-xl"), load("a100"), systems.load("dgx-a100")
    plans = [
        {"devices": 8, "seq": 512, "micro_batch": micro, "tensor": tensor}
        for micro in (1, 2)
        for tensor in (1, 2, 8)  # 25 heads do not divide by 2 or 8
    ]
    here = steps(place, plans)
    there = steps(place, plans, dask=cluster.scheduler_address)
    assert [isinstance(one, PerfmodelError) for one in here] == [False, True, True] * 2
    assert [str(one) if isinstance(one, PerfmodelError) else one.seconds for one in there] == [
        str(one) if isinstance(one, PerfmodelError) else one.seconds for one in here
    ]
    assert all(isinstance(one, PerfmodelError) or one.seconds > 0 for one in here)


def test_a_grid_of_plans_runs_on_a_scheduler(cluster, cli):
    command = ["train", "gpt2", "-d", "a100", "--gpus", "1,2,4,8", "--seq", "512", "-f", "csv"]
    code, here, _ = cli(*command)
    assert (code, len(here.splitlines())) == (0, 5)
    assert cli(*command, "--dask", cluster.scheduler_address)[:2] == (0, here)
