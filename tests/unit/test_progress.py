"""Progress: a line that is written over on a terminal, nothing anywhere else."""

from __future__ import annotations

import io
import sys
import time

import pytest

from perfmodel.cli.progress import progress, status, waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_what_is_done_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with status("calibrating") as report:
        report("bandwidth of copy")
    with progress("measuring") as bar:
        bar(3, 36, "gemm 512")
    shown = terminal.getvalue()
    for text in ("calibrating", "bandwidth of copy", "measuring", "3/36", "gemm 512"):
        assert text in shown
    assert "\x1b[2K" in shown  # the line is erased when all is done


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.StringIO()
    monkeypatch.setattr(sys, "stderr", piped)
    with status("calibrating") as report:
        report("bandwidth of copy")
    with progress("measuring") as bar:
        bar(3, 36, "gemm 512")
    assert piped.getvalue() == ""


def test_what_is_soon_done_shows_nothing_and_what_lasts_a_spinner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for patience, shown in ((60.0, False), (0.0, True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("perfmodel.cli.progress.PATIENCE", patience)
        with waiting("searching"):
            for _ in range(2000):
                if "searching" in terminal.getvalue() or not shown:
                    break
                time.sleep(0.01)
        assert ("searching" in terminal.getvalue()) is shown
    piped = io.StringIO()
    monkeypatch.setattr(sys, "stderr", piped)
    with waiting("searching"):
        pass
    assert piped.getvalue() == ""
