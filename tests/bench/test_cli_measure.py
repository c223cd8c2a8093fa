"""`perfmodel measure` as a user types it: a table, or a line for what is wrong."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases

from perfmodel.cli import run
from perfmodel.measured import tuning

Cli = Callable[..., tuple[int, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str]:
        code = run(["measure", "--device", "cpu", *arguments])
        return code, capsys.readouterr().err

    return call


SMALL = ("--quick", "--ops", "softmax", "--samples", "3")


def test_rows_are_written_and_a_finished_table_is_gone_on_with(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, said = cli(*SMALL, "--tune", "--all-configs", "configs.csv", "-o", "runs.csv")
    assert code == 0, said
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(float(row["measured_us"]) > 0 and row["op"] == "softmax" for row in rows)
    # Triton kernels run on GPUs only, so that a CPU has no configs to try.
    assert (tmp_path / "configs.csv").read_text() == ",".join(tuning.COLUMNS) + "\n"
    code, said = cli(*SMALL, "-o", "runs.csv", "--resume")
    assert code == 0
    assert f"{len(rows)} were there already" in said


@cases
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    pytest.importorskip("torch")
    code, errors = cli(*arguments)
    assert code == 2
    assert said in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
