"""The same parts on Dask: byte for byte, also when a worker is killed on the way."""

import os
import signal
import socket

import pytest

pytest.importorskip("distributed")

from test_sweep_store import contents, small

from perfmodel.analysis.sweep import run
from perfmodel.errors import OutputError


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
