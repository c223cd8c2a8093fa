"""Errors of the command line: any exception ends as one line and an exit code."""

import errno
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cases import cases
from folders import ROOT

from perfmodel.cli import run
from perfmodel.errors import BAD_INPUT, EXTRAS, FAULT, MissingExtra, exit_code, needs, report

GEMM = ["predict", "gemm", "-d", "h100-sxm"]


def process(command, **environment):
    """A shell command with `perfmodel` in it, as a process: (exit code, stdout, stderr)."""
    here = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    tool = f"{sys.executable} -m perfmodel.cli"
    done = subprocess.run(
        command.replace("perfmodel", tool), shell=True, capture_output=True, env=here, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


def one_line(err):
    assert err.startswith("perfmodel: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "x.csv"), "x.csv: permission denied"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "another encoding"),
        (MemoryError(), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (ModuleNotFoundError("no", name="sympy"), "pip install 'perfmodel[explain]'"),
        (ModuleNotFoundError("no", name="pyarrow.parquet"), "pip install 'perfmodel[parquet]'"),
    ],
)
def test_what_input_or_machine_are_to_blame_for_is_one_line_and_2(monkeypatch, capsys, error, said):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr("perfmodel.cli.predict.predict_arrays", fail)
    assert run(GEMM) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert said in one_line(err)


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("division by zero"), KeyError("x"), ModuleNotFoundError(name="perf")],
)
def test_a_fault_of_ours_is_one_line_that_asks_for_a_report_and_70(monkeypatch, capsys, error):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr("perfmodel.cli.predict.predict_arrays", fail)
    assert run(GEMM) == FAULT == 70
    err = one_line(capsys.readouterr().err)
    assert (
        f"fault of perfmodel, not of your input ({type(error).__name__} in cli/predict.py:" in err
    )
    assert "please report it" in err
    assert "PERFMODEL_DEBUG=1" in err


def test_debug_shows_the_traceback_before_the_line(monkeypatch, capsys):
    monkeypatch.setattr("perfmodel.cli.predict.predict_arrays", lambda *_, **__: 1 / 0)
    monkeypatch.setenv("PERFMODEL_DEBUG", "1")
    assert run(GEMM) == FAULT
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1].startswith("perfmodel: this is a fault")
    monkeypatch.setenv("PERFMODEL_DEBUG", "0")
    assert run(GEMM) == FAULT
    assert "Traceback" not in capsys.readouterr().err


def test_modules_that_are_run_by_themselves_have_the_same_guard(capsys):
    def fail():
        raise OSError(errno.ENOSPC, "No space left on device")

    assert exit_code("perfmodel.fitting.fit", fail) == BAD_INPUT
    assert capsys.readouterr().err.startswith("perfmodel.fitting.fit: no space left on device")
    assert exit_code("perfmodel.fitting.fit", lambda: None) == 0


def test_a_message_that_quotes_its_input_stays_on_one_short_line(capsys):
    assert run([*GEMM[:3], "\x1b[31mred\x1b]0;title\x07\nline\x9b2J" + "x" * 99999]) == BAD_INPUT
    err = one_line(capsys.readouterr().err)
    assert len(err) < 4000
    assert all(char.isprintable() for char in err.rstrip("\n"))
    assert report("perfmodel", OSError(2, "No such file", "a\x1b[2Jb\nc")) == BAD_INPUT
    assert capsys.readouterr().err.startswith("perfmodel: ab c: no such file")


@cases
def test_a_plain_install_says_which_extra_a_command_needs(monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    missing, extra = ("sympy", "explain") if arguments[0] == "explain" else ("pyarrow", "parquet")
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    if "ask" in arguments:
        (tmp_path / "folder").mkdir()
    assert run(arguments) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert f"needs {missing}, which is not installed; pip install 'perfmodel[{extra}]'" in err
    assert [item.name for item in tmp_path.iterdir()] == ["folder"] * ("ask" in arguments)


def test_needs_looks_and_does_not_import():
    code = (
        "import sys; from perfmodel.errors import needs; "
        "needs('scipy', 'x'); sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_optional_package_is_brought_by_its_extra(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brings = {"pynvml": "nvidia-ml-py"}
    for package, extra in EXTRAS.items():
        listed = project["optional-dependencies"][extra]
        assert any(item.startswith(brings.get(package, package)) for item in listed)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra, match=re.escape(f"pip install 'perfmodel[{extra}]'")):
            needs(package, "this")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", ["--help", "hardware schema"])
def test_a_full_standard_output_is_one_line(arguments):
    code, _, err = process(f"perfmodel {arguments} > /dev/full")
    assert code == BAD_INPUT
    assert "no space left on device" in one_line(err)


@pytest.mark.skipif(os.name != "posix", reason="streams are closed as POSIX shells do it")
def test_closed_streams_are_one_line_or_no_matter(tmp_path):
    code, _, err = process("perfmodel predict gemm -d h100-sxm >&-")
    assert code == BAD_INPUT
    assert "standard output is closed" in one_line(err)
    assert "standard input is closed" in one_line(process("perfmodel compare - <&-")[2])
    path = tmp_path / "x.json"
    for closed in (">&-", "2>&-", ">&- 2>&- <&-"):
        assert process(f"perfmodel predict gemm -d h100-sxm -o {path} {closed}")[0] == 0
        assert json.loads(path.read_text())["predictions"]
        path.unlink()
    assert process("perfmodel predict gemm -d h100-sx 2>&-") == (BAD_INPUT, b"", "")


NARROW = [
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""},
]


@pytest.mark.parametrize("environment", NARROW, ids=["latin-1", "ascii"])
def test_a_narrow_encoding_is_shown_look_alikes(environment):
    code, out, err = process("perfmodel predict attention -d h100-sxm --terms", **environment)
    assert (code, err) == (0, "")
    if "LC_ALL" in environment:
        assert out.isascii()
        assert b" us " in out
    assert b"?" not in out
    assert b"----" in out


def test_formulas_have_look_alikes_too():
    code, out, err = process("perfmodel explain attention", PYTHONIOENCODING="latin-1")
    assert (code, err) == (0, "")
    assert b"ceil(" in out
    assert b"?" not in out


def test_streams_are_left_as_they_were(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run([*GEMM, "-f", "markdown"]) == 0
    assert stream.errors == "strict"
    assert b" us " in stream.buffer.getvalue()
