"""The fuzzer: a small sample of a fixed seed, every input that once failed, and its own checks."""

import subprocess
import sys
from pathlib import Path

import pytest
from folders import TESTS

FOLDER = TESTS / "fuzz"
sys.path.insert(0, str(FOLDER))

from check import judged  # noqa: E402
from inputs import Input  # noqa: E402

FOUND = sorted((FOLDER / "found").glob("*.json"))
KINDS = "commands,files,traces"


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_once_failed_ends_well(path, tmp_path):
    said, _ = judged(Input.loads(path.read_text(encoding="utf-8")), tmp_path)
    assert said == []


def test_a_sample_ends_well():
    command = [sys.executable, str(FOLDER), "--inputs", "20", "--seed", "1", "--jobs", "1"]
    done = subprocess.run([*command, "--kinds", KINDS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("20 inputs of seed 1")
    assert "\n0 problems\n" in done.stdout


def test_an_input_is_kept_as_it_was():
    one = Input("x", ("a", "\ud800"), {"f/g.csv": b"text", "h": b"\xff\x00"}, b"in", "ascii", True)
    assert Input.loads(one.dumps()) == one


GEMM = ("predict", "gemm", "-d", "h100-sxm")


@pytest.mark.parametrize(
    ("does", "seen"),
    [
        (lambda: 1 / 0, "traceback: ZeroDivisionError at cli/predict.py"),
        (lambda: Path(".x.csv.tmp").write_text(""), "partial file left: a hidden one"),
        (lambda: sys.stderr.write("\x1b[31m"), "control characters on standard error"),
        (lambda: sys.stdout.write('{"schema_version": NaN}'), "json: "),
        (lambda: [].append([0] * 10**12), "memory: not enough"),
        (lambda: sys.exit(3), "traceback: SystemExit"),
    ],
)
def test_the_fuzzer_sees_what_is_wrong(monkeypatch, tmp_path, does, seen):
    from perfmodel.cli import predict as predicted

    kept = predicted.predict_arrays

    def wrong(*arguments, **options):
        does()
        return kept(*arguments, **options)

    monkeypatch.setattr(predicted, "predict_arrays", wrong)
    said, _ = judged(Input("commands", GEMM), tmp_path)
    assert [line for line in said if line.startswith(seen)], said


# In a process of its own: filters of warnings belong to a whole process, and threads that other
# tests left may put theirs back.
_WARNS = """
import sys, warnings
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from check import judged
from inputs import Input
from perfmodel.cli import predict as predicted
kept = predicted.predict_arrays
def warns(*arguments, **options):
    warnings.warn("x", RuntimeWarning)
    return kept(*arguments, **options)
predicted.predict_arrays = warns
said, _ = judged(Input("commands", ("predict", "gemm", "-d", "h100-sxm")), Path(sys.argv[2]))
print("\\n".join(said))
"""


def test_the_fuzzer_sees_a_warning(tmp_path):
    command = [sys.executable, "-c", _WARNS, str(FOLDER), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("warning: "), done.stdout + done.stderr


def test_the_fuzzer_sees_a_command_that_does_not_end(monkeypatch, tmp_path):
    def forever(*_arguments, **_options):
        while True:
            pass

    monkeypatch.setattr("perfmodel.cli.predict.predict_arrays", forever)
    said, _ = judged(Input("commands", GEMM), tmp_path, seconds=0.2)
    assert [line[:6] for line in said] == ["hang: "]
