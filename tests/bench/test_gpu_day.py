"""The day on a GPU: what becomes of a part that fails, hangs or is killed, and what each part does.

The parts run here in Triton's interpreter, on tiny cases, with invented times.
"""

from __future__ import annotations

import csv
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from fakeparts import Faulty, ends, starts_another, takes_readings, times
from folders import ROOT
from measuring import CASES, FakeGauge, FakeKernel, FakeStopwatch, fake_bench

pytest.importorskip("torch")
pytest.importorskip("triton")

from perfmodel import cases
from perfmodel.errors import TableError
from perfmodel.measured import dayparts, gpu_day, grids, profiledcases, session
from perfmodel.measured.contenders import Launcher
from perfmodel.measured.environment import Environment, NoDevice
from perfmodel.measured.gpu_day import Part, day, main, run, summary
from perfmodel.measured.journal import unannounced
from perfmodel.measured.microbench import read
from perfmodel.measured.predicted import MOST, Predictions, fitting
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.replay import recorder

# What a machine with a GPU may lack: nothing that the day loads there may need one of them.
ABSENT = ("pydantic", "pandas", "yaml", "matplotlib", "click", "rich", "sympy")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---- It starts -----------------------------------------------------------------------------------


def test_nothing_that_a_bare_machine_lacks_is_needed() -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from perfmodel.measured import gpu_day, gpu_probes, gradients, predicted, contenders, rivals
from perfmodel.proof import registry
# Problems of declared operators are read from YAML: their kernels are left out, a line each.
assert all("No module named 'yaml'" in line for line in registry.failures()), registry.failures()
assert len(registry.kernels()) >= 27 and len(registry.failures()) <= 5
launcher = contenders.Launcher("cuda", "sm_90", 132)
predicted.Predictions(launcher, "h100-sxm")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perfmodel.measured.gpu_day", "--output", str(tmp_path)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("gpu_day: no CUDA or ROCm device here")
    assert done.stderr.count("\n") == 1


def test_a_part_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parts", "prof"]) == 2
    said = capsys.readouterr().err
    assert "no part named 'prof'; did you mean proof" in said
    assert said.count("\n") == 1


# ---- One failure is one failure ------------------------------------------------------------------


def test_what_raises_hangs_or_crashes_is_one_row_and_the_rest_goes_on(tmp_path: Path) -> None:
    part = Part("proof", partial(times, 0.0, Faulty), 300.0, patience_s=3.0)
    assert day([part], tmp_path, 300.0) == 1
    found = rows(tmp_path / "runs.csv")
    assert {row["m"]: row["reason"] for row in found if row["flag"] == "failed"} == {
        "48": "its process was ended by SIGKILL",
        "80": "no answer for 3 s; its process was killed",
        "112": "ZeroDivisionError: division by zero",
    }
    assert [row["m"] for row in found] == [str(case.m) for case in CASES]
    assert all(bool(row["measured_us"]) != (row["flag"] == "failed") for row in found)


def test_a_reading_that_crashes_is_left_out(tmp_path: Path) -> None:
    assert day([Part("readings", takes_readings, 300.0)], tmp_path, 300.0) == 1
    found = read(tmp_path / "readings.json")
    assert found.rates == {"matrix.bf16": 1e12}
    assert found.methods["matrix.fp8"] == "not measured: its process was ended by SIGKILL"


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (TableError("runs.csv: other columns"), "cannot run", 2),
        (NoDevice("no device here"), "no device", 4),
        (7, "its process ended with 7", 7),
    ],
)
def test_a_part_that_cannot_run_says_so_and_is_not_started_again(
    error: BaseException | int, words: str, code: int, tmp_path: Path
) -> None:
    (ending,) = run(Part("a", partial(ends, error), 300.0), tmp_path, 300.0)
    assert (ending.words, ending.code, ending.lost) == (words, code, None)


def test_one_part_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = []

    def start(part: Part, folder: Path, end: float) -> gpu_day.Ending:
        started.append(part.name)
        return gpu_day.Ending("cannot run" if part.name == "a" else "done", 2 * (part.name == "a"))

    monkeypatch.setattr(gpu_day, "_start", start)
    parts = [Part(name, lambda *_: True, 60.0) for name in "ab"]
    assert day(parts, tmp_path, 60.0) == 1
    assert day(parts, tmp_path, 0.0) == 0
    assert started == ["a", "b"]
    assert "b: not started, the time is up" in capsys.readouterr().out


def test_time_that_is_up_ends_all_that_the_part_started_and_is_no_failure(tmp_path: Path) -> None:
    (ending,) = run(Part("counters", starts_another, 6.0), tmp_path, 6.0)
    assert (ending.words, ending.code, ending.lost) == ("stopped when its time was up", None, None)
    assert (tmp_path / "child").exists()
    _no_process_is_left(tmp_path / "child")


def test_killed_at_any_moment_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The day itself is killed outright, as a machine that goes away would be."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from functools import partial
from pathlib import Path
from fakeparts import FakeKernel, times
from perfmodel.measured.gpu_day import Part, day
if __name__ == "__main__":
    sys.exit(day([Part("proof", partial(times, 0.03, FakeKernel), 300.0)], Path("runs"), 300.0))
"""
    (tmp_path / "killed.py").write_text(code)
    path, moment, seen = tmp_path / "runs" / "runs.csv", random.Random(7), list[str]()
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "killed.py"], cwd=tmp_path)
        while not path.exists() or len(path.read_text().splitlines()) <= len(seen) + 1:
            time.sleep(0.02)  # a row more than before
        time.sleep(moment.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        _no_process_is_left(path)
        lines = path.read_text().split("\n")[:-1]
        assert lines[: len(seen)] == seen
        seen = lines
    assert day([Part("proof", partial(times, 0.0, FakeKernel), 300.0)], path.parent, 300.0) == 0
    assert [row["m"] for row in rows(path)] == [str(case.m) for case in CASES]
    before = path.read_bytes()
    assert day([Part("proof", partial(times, 0.0, Faulty), 300.0)], path.parent, 300.0) == 0
    assert path.read_bytes() == before


def _no_process_is_left(path: Path) -> None:
    """Wait until no process holds `path` open or has it in its command line."""
    for _ in range(300):
        names = (_handles(item) for item in Path("/proc").glob("[0-9]*"))
        if not any(str(path) in name for name in names):
            return
        time.sleep(0.1)
    pytest.fail(f"a process still has {path}")


def _handles(process: Path) -> str:
    if process.name == str(os.getpid()):
        return ""
    try:
        command = (process / "cmdline").read_text(errors="replace")
        return " ".join([command, *(os.readlink(link) for link in (process / "fd").iterdir())])
    except OSError:
        return ""


# ---- What the parts do, without a GPU ------------------------------------------------------------

TINY = (
    cases.attention(1, 2, 2, 40, 40, 16, causal=True, dtype="fp16"),
    cases.gemm(48, 32, 64, "fp16"),
    cases.rowwise("rmsnorm", 5, 96, "fp32", "bwd"),
    cases.pointwise("triad", 4096, "fp32"),
)
KERNELS = ("attention-tiled", "matmul", "matmul-split-k", "rmsnorm-backward", "triad")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is Triton's interpreter, with an H100's menus and invented times."""
    recorder.require_interpreter()
    where = Environment(
        "h100-sxm", "Fake", "cpu", 2.0**20, 2.0**34, {}, FakeGauge(), "sm_90", 132
    )  # fmt: skip
    bench = partial(
        fake_bench, environment=where, stopwatches={"graph": Instant, "events": Instant}, cold=True
    )
    known = {name: registry.kernel(name) for name in KERNELS}
    monkeypatch.setattr(registry, "kernels", lambda: known)
    monkeypatch.setattr(dayparts, "environment", lambda _: where)
    monkeypatch.setattr(session, "launcher", lambda _: Launcher("cpu", "sm_90", 132))
    monkeypatch.setattr(session, "bench", lambda *_, **more: bench(**more))
    monkeypatch.setattr(grids, "grid", lambda _: TINY)
    pool = session.contenders
    monkeypatch.setattr(session, "contenders", lambda env, **more: _both(pool, env, **more))


def _both(pool: Callable[..., object], env: Environment, **more: object) -> object:
    from perfmodel.measured.contenders import contenders
    from perfmodel.measured.rivals import rivals

    entries, notes = contenders(Launcher("cpu", "sm_90", 132), more["tuner"], more["menu"])  # type: ignore[arg-type]
    return [*entries, *rivals("cpu")], notes


class Instant(FakeStopwatch):
    """Runs the first call and returns fixed times."""

    timer = "graph"

    def samples(self, calls, per_sample, policy):  # type: ignore[no-untyped-def]
        calls[0]()
        return [1e-3, 1.01e-3, 1.02e-3]


@pytest.mark.usefixtures("machine")
def test_the_proof_set_races_kernels_and_rivals_with_what_was_predicted(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    tell = lambda table, row: told.append((table, row["implementation"]))  # noqa: E731
    assert dayparts.timed("proof", tmp_path, math.inf, tell)
    found = rows(tmp_path / "runs.csv")
    makers = {(row["op"], row["implementation"].split("-")[0]) for row in found}
    assert makers == {
        *((case.op, "triton") for case in TINY), ("gemm", "torch"), ("pointwise", "torch"),
        ("rmsnorm", "torch"),
    }  # fmt: skip
    ours = [row for row in found if row["implementation"].startswith("triton-")]
    assert all(row["config"] and row["error"] and row["measured_us"] for row in ours)
    assert sum(bool(row["predicted_us"]) for row in ours) > len(ours) / 2
    assert not [row for row in found if "split-k" in row["implementation"]]  # known to be slower
    tried = rows(tmp_path / "configs.csv")
    chosen = {(row["implementation"], row["config"]) for row in ours}
    assert chosen < {(row["implementation"], row["config"]) for row in tried}
    assert [name for table, name in told if table == "runs"] == [
        row["implementation"] for row in found
    ]
    assert len([name for table, name in told if table == "configs"]) == len(tried)
    before = (tmp_path / "runs.csv").read_bytes(), (tmp_path / "configs.csv").read_bytes()
    assert dayparts.timed("proof", tmp_path, math.inf, unannounced)
    assert before == ((tmp_path / "runs.csv").read_bytes(), (tmp_path / "configs.csv").read_bytes())


@pytest.mark.usefixtures("machine")
def test_every_kernel_is_checked_and_a_failure_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [(k, *k.cases[0], 0) for k in registry.kernels().values()]
    monkeypatch.setattr(dayparts, "checks", lambda _: wanted)
    monkeypatch.setattr(type(wanted[0][0]), "errors", _fails_for_triad)
    assert not dayparts.correctness(tmp_path, math.inf, unannounced)
    found = rows(tmp_path / "correctness.csv")
    assert {row["kernel"]: row["passed"] for row in found} == {
        name: str(name != "triad") for name in KERNELS
    }
    (row,) = (row for row in found if row["kernel"] == "triad")
    assert row["reason"] == "RuntimeError: a fault"
    before = (tmp_path / "correctness.csv").read_bytes()
    assert not dayparts.correctness(tmp_path, math.inf, unannounced)
    assert (tmp_path / "correctness.csv").read_bytes() == before


def _fails_for_triad(self, inputs, outputs):  # type: ignore[no-untyped-def]
    if self.name == "triad":
        raise RuntimeError("a fault")
    return dict.fromkeys(outputs, 0.0)


def test_kernels_that_no_interpreter_runs_are_checked_last() -> None:
    tried = [kernel.interpreted for kernel, *_ in dayparts.checks(Launcher("cuda", "sm_90", 132))]
    assert tried == sorted(tried, reverse=True)
    assert {True, False} == set(tried)


def test_a_twentieth_of_the_rows_is_measured_again() -> None:
    class Takes:
        implementation = "torch-2:matmul"

        def takes(self, case: object) -> bool:
            return True

    proof = grids.grid("proof")
    jobs = dayparts.race("proof", [Takes()])  # type: ignore[list-item]
    again = [job for job in jobs if job.repeat]
    assert len(again) == round(0.05 * len(proof)) == 3
    assert jobs[: len(proof)] == [job for job in jobs if not job.repeat]
    assert len({job.case.op for job in again}) > 1


# ---- What is worth trying ------------------------------------------------------------------------


def test_the_proof_set_fits_into_its_time() -> None:
    """About sixty cases, and no more binaries than sixteen cores compile in two minutes."""
    proof = grids.grid("proof")
    assert 55 <= len(proof) <= 70
    assert grids.grid("full")[: len(proof)] == proof
    assert len({(case.op, case.phase, case.direction) for case in proof[:6]}) == 6
    launcher = Launcher("cuda", "sm_100", 148)
    menu = Predictions(launcher, "b200").menu
    found = dayparts.binaries(dayparts.raced(launcher, menu), "sm_100")
    assert 60 <= len(found) <= 150
    assert len({kernel.name for kernel, *_ in found}) >= 9


def test_configs_that_are_predicted_slow_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher("cuda", "sm_90", 132)
    kernel, case = registry.kernel("matmul"), cases.gemm(4096, 4096, 4096, "fp16")
    menu = fitting(kernel, case.problem(), launcher)
    known = Predictions(launcher, "h100-sxm")
    choices = known.menu(case, kernel, case.problem())
    times = [float(known.cells(case, "triton-3:matmul", str(c))["compiled_us"]) for c in menu]
    best = sorted(times)[:MOST]
    tried = [times[menu.index(config)] for config in choices]
    assert sorted(tried) == [seconds for seconds in best if seconds <= 1.5 * best[0]]
    assert len(choices) < len(menu)
    unknown = Predictions(launcher, "no-such-gpu")
    assert unknown.note == (
        "no predictions: no spec of no-such-gpu; every config that fits is tried"
    )
    monkeypatch.setitem(sys.modules, "perfmodel.hardware", None)  # as without PyYAML
    assert "every config that fits is tried" in Predictions(launcher, "h100-sxm").note
    assert unknown.menu(case, kernel, case.problem()) == menu
    assert unknown.cells(case, "torch-2:matmul", "") == {}


def test_predictions_are_of_the_implementation_whatever_its_version() -> None:
    known = Predictions(Launcher("cuda", "sm_90", 132), "h100-sxm")
    case = cases.gemm(4096, 4096, 4096, "bf16")
    cells = known.cells(case, "torch-2.13.0:matmul", "")
    low, middle, high = (float(cells[name]) for name in ("low_us", "predicted_us", "high_us"))
    assert low < middle < high
    assert known.cells(case, "torch-2.11.0:matmul", "") == cells


def test_configs_that_are_known_to_spill_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, problem = registry.kernel("softmax"), registry.kernel("softmax").cases[0][0]
    menu = list(kernel.menu(problem, "sm_90", 132))
    spills = compilefacts.LaunchFacts(
        "k", "softmax", "softmax", "sm_90", "3", "p", "c", compilefacts.FITS, spill_bytes=8
    )

    class Known:
        def of(self, kernel, problem, config, target):  # type: ignore[no-untyped-def]
            return (spills,) if config == menu[0] else None

    monkeypatch.setattr(compilefacts, "table", Known)
    assert list(fitting(kernel, problem, Launcher("cuda", "sm_90", 132))) == menu[1:]


def test_a_binary_is_compiled_as_a_launch_would(tmp_path: Path) -> None:
    """With a driver that is played: Triton's launcher asks it for the target, and nothing else."""
    code = f"""
import os
os.environ.pop("TRITON_INTERPRET", None)
os.environ["TRITON_CACHE_DIR"] = {str(tmp_path)!r}
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
class Driver:
    launcher_cls = None
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0
driver.set_active(Driver())
from perfmodel.measured import dayparts
from perfmodel.proof import registry
kernel = registry.kernel("copy")
((_, problem, config, _),) = dayparts.binaries([(kernel, *kernel.cases[0])] * 2, "sm_90")
dayparts.compile_share([("copy", problem, config, 0), ("copy", problem, config, 99)])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    )
    assert len(list(tmp_path.rglob("*.cubin"))) == 1
    assert done.stdout.startswith("  not compiled: copy with")
    assert done.stdout.count("\n") == 1


# ---- Counters, under a profiler that is played ---------------------------------------------------

NCU = """#!{python}
import sys
arguments = sys.argv[1:]
if arguments == ["--query-metrics"]:
    print("\\n".join(["dram__bytes_read", "dram__bytes_write", "gpu__time_duration"]))
    sys.exit()
metrics = arguments[arguments.index("--metrics") + 1].split(",")
log = open(arguments[arguments.index("--log-file") + 1], "w")
log.write("==PROF== Connected to process 1 (python)\\n")
if {broken!r}:
    log.write("==ERROR== {broken}\\n")
    sys.exit(1)
names = ",".join(f'"{{name}}"' for name in metrics)
units = ",".join("nsecond" if "duration" in name else "byte" for name in metrics)
values = ",".join('"1000"' for name in metrics)
column = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
case = "perfmodel|op=gemm|dtype=bf16|batch=1|m=16|n=16|k=16|implementation=triton/x"
log.write(f'"ID","Kernel Name","{{column}}",{{names}}\\n')
log.write(f'"","","",{{units}}\\n')
log.write(f'"0","matmul","<default domain>:{{case}}{{":none" * 6}}",{{values}}\\n')
"""


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("broken", ["", "ERR_NVGPUCTRPERM - The user does not have permission"])
def test_counters_are_those_that_the_profiler_knows(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ncu = tmp_path / "ncu"
    ncu.write_text(NCU.format(python=sys.executable, broken=broken))
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(profiledcases, "environment", dayparts.environment)
    assert dayparts.counters(tmp_path, 60.0, unannounced) is not bool(broken)
    assert broken in capsys.readouterr().out
    if broken:
        assert not (tmp_path / "counters.csv").exists()
        return
    (row,) = rows(tmp_path / "counters.csv")
    assert (row["op"], row["m"], row["implementation"]) == ("gemm", "16", "triton:x")
    ncu.unlink()
    assert dayparts.counters(tmp_path, 60.0, unannounced)  # it is there already


@pytest.mark.usefixtures("machine")
def test_without_a_profiler_there_are_no_counters_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert dayparts.counters(tmp_path, 60.0, unannounced)
    assert "ncu is not on the PATH" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_profiled_cases_are_spread_over_contenders_and_cases() -> None:
    pool = [FakeKernel(name) for name in "abcd"]
    jobs = [(case, each) for case in CASES for each in pool]
    chosen = profiledcases.spread(jobs)  # type: ignore[arg-type]
    assert 0 < len(chosen) <= 64
    counts = [sum(each.implementation == name for _, each in chosen) for name in "abcd"]
    assert max(counts) - min(counts) <= 1
    assert len({case.m for case, _ in chosen}) > len(chosen) / 4 - 1


# ---- What it has shown ---------------------------------------------------------------------------


def test_a_race_is_against_the_best_rival_of_the_same_case(tmp_path: Path) -> None:
    columns = (*gpu_day.CASE_KEY, "measured_us", "flag", "low_us", "high_us")
    table = (
        ("triton-3.6.0:matmul", "20", "1", "", "10"),
        ("triton-3.6.0:matmul-persistent", "10", "1", "", "11"),
        ("torch-2.11.0:matmul", "9", "1", "", ""),
        ("torch-2.11.0:slow", "90", "1", "", ""),
        ("triton-3.6.0:matmul", "", "2", "failed", ""),
        ("torch-2.11.0:matmul", "1", "2", "", ""),
    )
    names = ("implementation", "measured_us", "m", "flag", "low_us")
    assert summary(tmp_path / "runs.csv") == []
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for cells in table:
            row = dict(zip(names, cells, strict=True)) | {"high_us": "30" if cells[4] else ""}
            writer.writerow(row | {"op": "gemm", "dtype": "bf16", "direction": "fwd"})
    _, line = summary(tmp_path / "runs.csv")
    assert line.split() == ["gemm", "bf16", "fwd", "6", "1", "0.90", "50%"]
