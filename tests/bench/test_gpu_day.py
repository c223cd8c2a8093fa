"""The GPU measuring run, rehearsed: every stage, its failures, and a kill at any moment."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from folders import ROOT

pytest.importorskip("torch")
pytest.importorskip("triton")

from perfmodel.cases import attention, gemm
from perfmodel.errors import PerfmodelError
from perfmodel.measured import gpu_day, grids
from perfmodel.measured.day import forecast, precompile, profile, summary
from perfmodel.measured.day.gpu import Planned
from perfmodel.measured.day.rehearsal import Rehearsal
from perfmodel.measured.day.stages import checks, race, raced
from perfmodel.measured.day.supervisor import Outcome, run_group, supervise
from perfmodel.measured.gpu_day import NAMES, main, take_over
from perfmodel.measured.measure import plan
from perfmodel.measured.microbench import read
from perfmodel.measured.pulse import NAME, Lost, Pulse
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts

# What a machine with a GPU may lack: nothing that the day loads there may need one of them.
ABSENT = ("pydantic", "pandas", "yaml", "matplotlib", "click", "rich", "sympy")


def day(folder: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfmodel.measured.gpu_day", "--rehearse", "--output", str(folder),
         *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False, **more,  # type: ignore[call-overload]
    )  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def keys(path: Path, *names: str) -> set[tuple[str, ...]]:
    return {tuple(row[name] for name in names) for row in rows(path)}


# ---- It starts -----------------------------------------------------------------------------------


def test_nothing_that_a_bare_machine_lacks_is_needed() -> None:
    code = f"""
import importlib, pkgutil, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import perfmodel.measured.day as day
modules = [f"perfmodel.measured.day.{{found.name}}" for found in pkgutil.iter_modules(day.__path__)]
modules += ["perfmodel." + name for name in (
    "measured.gpu_day", "measured.measure", "measured.tuning", "measured.contenders",
    "measured.rivals", "measured.gradients", "measured.session", "measured.timer",
    "measured.environment", "measured.journal", "measured.microbench", "measured.readingparts",
    "measured.gpu_probes", "measured.counters", "measured.references", "measured.watch",
    "measured.pulse", "profile.ncu", "proof.registry", "proof.kernel", "proof.compiled.targets",
    "proof.compiled.compilefacts",
)]
for name in modules:
    importlib.import_module(name)
from perfmodel.proof import registry
assert len(registry.kernels()) >= 23 and not registry.failures(), registry.failures()
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stages", "prof"], "no stage named 'prof'; did you mean proof"),
        (["--resume-from", "nowhere"], "--resume-from nowhere is no folder"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["--rehearse", "--output", "out", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


# ---- The whole day -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    done = day(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in NAMES:
        assert f"== {name} " in done.stdout
    return folder


def test_every_stage_leaves_its_file(whole: Path) -> None:
    names = {item.name for item in whole.iterdir()}
    assert names == {
        "plan.csv",
        "correctness.csv",
        "runs.csv",
        "configs.csv",
        "readings.json",
        NAME,
    }
    assert {row["passed"] for row in rows(whole / "correctness.csv")} == {"True"}
    checked = {name for (name,) in keys(whole / "correctness.csv", "kernel")}
    interpreted = {k.name for k in registry.kernels().values() if Rehearsal().runs(k)}
    assert checked == interpreted
    assert read(whole / "readings.json").rates == {"matrix.bf16": 1e12, "matrix.fp8": 2e12}


def test_every_case_is_run_by_a_bundled_kernel_and_its_rival(whole: Path) -> None:
    found = rows(whole / "runs.csv")
    assert not [row["reason"] for row in found if row["flag"] == "failed"]
    for case in Rehearsal().grid("full"):
        label = case.columns()
        ran = {
            row["implementation"]
            for row in found
            if all(row[name] == value for name, value in label.items())
        }
        assert any(name.startswith("triton-") for name in ran), case
        if case.direction == "fwd" or case.op != "attention":  # torch has none of these on a CPU
            assert any(name.startswith("torch-") for name in ran), case


def test_a_row_says_what_ran_and_what_was_predicted(whole: Path) -> None:
    found = [row for row in rows(whole / "runs.csv") if row["implementation"].startswith("triton-")]
    assert {row["clock_mhz_during"] for row in found} == {"1980"}
    assert all(row["config"] and row["sets"] == "2" and row["error"] for row in found)
    proof = {case.label() for case in Rehearsal().grid("proof")}
    planned = {(r["case"], r["implementation"], r["config"]) for r in rows(whole / "plan.csv")}
    assert {case for case, _, _ in planned} == proof
    assert sum(bool(row["predicted_us"]) for row in found) > len(found) / 2


def test_all_tried_configs_are_kept(whole: Path) -> None:
    tried = rows(whole / "configs.csv")
    chosen = {
        (row["implementation"], row["config"])
        for row in rows(whole / "runs.csv")
        if row["implementation"].startswith("triton-")
    }
    assert chosen <= {(row["implementation"], row["config"]) for row in tried}
    assert len(tried) > len(chosen)
    assert all(row["measured_us"] or row["reason"] for row in tried)


def test_what_is_done_is_not_done_again(whole: Path, tmp_path: Path) -> None:
    """Also in another folder that takes the first one over, as a second machine would."""
    before = {item.name: item.read_bytes() for item in whole.iterdir()}
    done = day(tmp_path, "--resume-from", str(whole))
    assert done.returncode == 0, done.stdout
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == before


def test_a_twentieth_of_the_rows_is_measured_again() -> None:
    class Takes:
        implementation = "a"

        def takes(self, case: object) -> bool:
            return True

    cases = grids.grid("proof")
    jobs = plan(cases, [Takes()], 0.05)  # type: ignore[list-item]
    again = [job for job in jobs if job.repeat]
    assert len(again) == round(0.05 * len(cases)) == 3
    assert jobs[: len(cases)] == [job for job in jobs if not job.repeat]
    assert len({job.case.op for job in again}) > 1


# ---- One failure is one failure ------------------------------------------------------------------


def test_kernels_that_raise_hang_or_crash_are_rows_and_the_rest_goes_on(tmp_path: Path) -> None:
    faults = {"softmax": "raise", "triad": "hang", "attention-decode": "crash"}
    options = [part for name, fault in faults.items() for part in ("--fault", f"{name}={fault}")]
    done = day(tmp_path, "--stages", "proof", "--silence-seconds", "4", *options)
    assert done.returncode == 1
    found = {row["implementation"].partition(":")[2]: row for row in rows(tmp_path / "runs.csv")}
    reasons = {name: found[name]["reason"] for name in faults}
    assert reasons == {
        "softmax": "RuntimeError: a fault of the rehearsal",
        "triad": "no answer for 4 s; its process was killed",
        "attention-decode": "its process was ended by SIGKILL",
    }
    sound = [row for name, row in found.items() if name not in faults]
    assert sound
    assert all(row["measured_us"] for row in sound)
    assert not list(tmp_path.glob(".*"))


def test_a_reading_that_crashes_is_left_out(tmp_path: Path) -> None:
    done = day(tmp_path, "--stages", "readings", "--fault", "readings=crash")
    assert done.returncode == 1
    found = read(tmp_path / "readings.json")
    assert found.rates == {"matrix.bf16": 1e12}
    assert found.methods["matrix.fp8"] == "not measured: its process was ended by SIGKILL"


def test_a_stage_that_cannot_run_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "correctness.csv").mkdir()
    done = day(tmp_path, "--stages", "correctness,readings")
    assert done.returncode == 1
    assert "correctness.csv: is a directory" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "readings.json").exists()


def test_time_that_is_up_is_no_failure(tmp_path: Path) -> None:
    done = day(tmp_path, "--stages", "proof,readings", "--limit-seconds", "4")
    assert done.returncode == 0
    assert "proof: stopped when its time was up" in done.stdout
    assert "readings: not started, the time is up" in done.stdout


def test_killed_at_any_moment_it_loses_and_doubles_nothing(whole: Path, tmp_path: Path) -> None:
    """The supervisor is killed outright, as a machine that goes away would be."""
    folder, moment = tmp_path / "killed", random.Random(7)
    command = [
        sys.executable, "-m", "perfmodel.measured.gpu_day", "--rehearse", "--output", str(folder),
        "--stages", "proof",
    ]  # fmt: skip
    for _ in range(3):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        time.sleep(moment.uniform(2.0, 5.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        _no_child_is_left(folder)
    done = day(folder, "--stages", "proof")
    assert done.returncode == 0, done.stdout + done.stderr
    names = ("implementation", "op", "direction", "phase", "repeat")
    found = rows(folder / "runs.csv")
    assert not [row["reason"] for row in found if row["flag"] == "failed"]
    assert len({tuple(row[n] for n in names) for row in found}) == len(found)
    assert keys(folder / "runs.csv", *names) <= keys(whole / "runs.csv", *names)
    tried = [tuple(row[n] for n in ("implementation", "config", "op", "phase", "direction"))
             for row in rows(folder / "configs.csv")]  # fmt: skip
    assert len(set(tried)) == len(tried)


def _no_child_is_left(folder: Path) -> None:
    for _ in range(50):
        alive = [
            path
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if str(folder).encode() in _read(path)
        ]
        if not alive:
            return
        time.sleep(0.1)
    pytest.fail("a stage outlived its supervisor")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# ---- The supervisor ------------------------------------------------------------------------------


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "said", "failed"),
    [
        ("pass", "done", False),
        ("raise SystemExit(1)", "done, with failures", True),
        ("raise SystemExit(2)", "cannot run", True),
        ("raise SystemExit(70)", "its process ended with exit code 70", True),
        ("import os; os.abort()", "its process was ended by SIGABRT", True),
    ],
)
def test_how_a_stage_ended(code: str, said: str, failed: bool, tmp_path: Path) -> None:
    found = supervise(python(code), tmp_path, limit_s=20, silence_s=20)
    assert (found.said, found.failed, found.starts) == (said, failed, 1)


def test_what_a_crash_lost_is_named_once_and_the_stage_starts_again(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from perfmodel.measured.pulse import Pulse
pulse = Pulse(Path({str(tmp_path)!r}))
lost = pulse.claim()
done = Path({str(tmp_path)!r}, "done")
done.open("a").write(f"{{lost.running['n']}}: {{lost.reason}}\\n" if lost else "first\\n")
if len(done.read_text().splitlines()) < 4:
    pulse.beat({{"n": str(len(done.read_text().splitlines()))}})
    os.kill(os.getpid(), 11)
"""
    found = supervise(python(code), tmp_path, limit_s=60, silence_s=60)
    assert (found.said, found.failed, found.starts) == ("done, with failures", True, 4)
    assert (tmp_path / "done").read_text().splitlines() == [
        "first", *(f"{n}: its process was ended by SIGSEGV" for n in (1, 2, 3)),
    ]  # fmt: skip


def test_a_case_that_hangs_when_the_time_is_up_is_lost(tmp_path: Path) -> None:
    # The journal's own time says how long the case has run, so a slow machine changes nothing.
    code = f"""
import os, time
with open({str(tmp_path / NAME)!r}, "a") as journal:
    journal.write('\\n{{"running": {{"n": "1"}}}}')
os.utime(journal.name, (time.time() - 100, time.time() - 100))
time.sleep(600)
"""
    ended = supervise(python(code), tmp_path, limit_s=8, silence_s=180)
    assert (ended.failed, ended.lost_at_limit) == (True, True)
    lost = Pulse(tmp_path).claim()
    assert lost == Lost({"n": "1"}, "no answer for 90 s when the stage's time was up")
    # What has just begun is no hang: it runs again.
    ended = supervise(python(code), tmp_path, limit_s=8, silence_s=600)
    assert (ended.failed, ended.lost_at_limit) == (False, False)
    assert Pulse(tmp_path).claim() is None


def test_what_is_lost_at_the_limit_is_a_row_before_the_day_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = {"kernel": "softmax", "case": "a", "config": "b"}

    def hangs(command: object, place: Path, **_: object) -> Outcome:
        Pulse(place).beat(running)
        Pulse(place).mark_lost("why")
        return Outcome("stopped", True, 1, lost_at_limit=True)

    monkeypatch.setattr(gpu_day, "supervise", hangs)
    assert main(["--rehearse", "--output", str(tmp_path), "--stages", "correctness"]) == 1
    (row,) = rows(tmp_path / "correctness.csv")
    assert row == row | running | {"passed": "False", "reason": "why"}


def test_kernels_that_no_interpreter_runs_are_checked_last() -> None:
    class Device(Rehearsal):
        checked_cases = None

        def runs(self, kernel: object) -> bool:
            return True

        def types(self, dtypes: object) -> tuple[str, ...]:
            return tuple(dtypes)  # type: ignore[arg-type]

    tried = [kernel.interpreted for kernel, *_ in checks(Device())]
    assert tried == sorted(tried, reverse=True)
    assert {True, False} == set(tried)


def test_a_day_that_is_killed_has_only_results_in_its_folder(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "perfmodel.measured.gpu_day", "--rehearse", "--output", str(tmp_path),
        "--stages", "proof", "--fault", "triad=hang", "--fault", "matmul=hang",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    for _ in range(300):
        if Pulse(tmp_path).running() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert Pulse(tmp_path).running() is not None
    assert not list(tmp_path.glob(".*"))


def test_a_limit_ends_the_whole_group(tmp_path: Path) -> None:
    """A profiler's python outlives the profiler, unless all of them are killed."""
    child = f"import time; open({str(tmp_path / 'child')!r}, 'w').write('x'); time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert run_group(python(parent), 3.0) is None
    assert (tmp_path / "child").exists()
    _no_child_is_left(tmp_path / "child")


def test_a_beat_that_nobody_saw_end_is_no_loss(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path)
    pulse.beat({"case": "a"})
    assert pulse.running() == {"case": "a"}
    pulse.rest()
    assert pulse.claim() is None
    pulse.beat({"case": "b"})
    assert pulse.mark_lost("why")
    pulse.rest()
    assert pulse.claim() == Lost({"case": "b"}, "why")
    assert pulse.claim() is None
    assert not pulse.mark_lost("nothing ran")


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_line_that_was_cut_short_spoils_no_other(tmp_path: Path, cut: int) -> None:
    pulse, path = Pulse(tmp_path), tmp_path / NAME
    pulse.beat({"case": "a"})
    pulse.beat({"case": "b"})
    path.write_bytes(path.read_bytes()[:-cut])
    assert pulse.running() == {"case": "a"}
    pulse.beat({"case": "c"})
    assert pulse.running() == {"case": "c"}


def test_files_that_are_there_are_not_overwritten_by_an_earlier_day(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    for name in ("runs.csv", "plan.csv", ".now.json"):
        (old / name).write_text("old")
    (new / "runs.csv").write_text("new")
    take_over(old, new)
    found = {item.name: item.read_text() for item in new.iterdir()}
    assert found == {"runs.csv": "new", "plan.csv": "old"}


# ---- Counters, under a profiler that is played ---------------------------------------------------

NCU = """#!{python}
import sys
arguments = sys.argv[1:]
metrics = arguments[arguments.index("--metrics") + 1].split(",")
log = open(arguments[arguments.index("--log-file") + 1], "w")
refused = [name for name in metrics if name in {refused}]
log.write("==PROF== Connected to process 1 (python)\\n")
for name in refused:
    log.write(f"==ERROR== Failed to find metric {{name}}\\n")
if {broken!r}:
    log.write("==ERROR== {broken}\\n")
if not refused and not {broken!r}:
    names = ",".join(f'"{{name}}"' for name in metrics)
    units = ",".join("nsecond" if "duration" in name else "byte" for name in metrics)
    values = ",".join('"1000"' for name in metrics)
    column = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    case = "perfmodel|op=gemm|dtype=bf16|batch=1|m=16|n=16|k=16|implementation=triton/x"
    log.write(f'"ID","Kernel Name","{{column}}",{{names}}\\n')
    log.write(f'"","","",{{units}}\\n')
    log.write(f'"0","matmul","<default domain>:{{case}}{{":none" * 6}}",{{values}}\\n')
"""


def played_ncu(folder: Path, refused: tuple[str, ...] = (), broken: str = "") -> str:
    path = folder / "ncu"
    path.write_text(NCU.format(python=sys.executable, refused=refused, broken=broken))
    path.chmod(0o755)
    return str(path)


class Profiled(Rehearsal):
    def __init__(self, profiler: str) -> None:
        super().__init__()
        self._profiler = profiler

    def profiler(self) -> str:
        return self._profiler


def test_metrics_that_are_refused_are_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = ("lts__t_bytes.sum", "sm__inst_executed_pipe_tensor.sum")
    ncu = played_ncu(tmp_path, refused)
    assert profile.counters(tmp_path, Profiled(ncu), 60) == 0
    assert f"ncu does not know {', '.join(refused)}" in capsys.readouterr().out
    (row,) = rows(tmp_path / "counters.csv")
    assert (row["op"], row["m"], row["implementation"]) == ("gemm", "16", "triton:x")


def test_what_was_counted_is_imported_before_the_stage_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(profile, "known_metrics", lambda *_: ("dram__bytes_read.sum",))
    monkeypatch.setattr(profile, "run_group", lambda _, limit_s: seen.append(limit_s))
    profile.counters(tmp_path, Profiled("ncu"), 60.0)
    assert seen == [50.0]


def test_what_the_profiler_complains_of_is_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ncu = played_ncu(tmp_path, broken="ERR_NVGPUCTRPERM - The user does not have permission")
    assert profile.counters(tmp_path, Profiled(ncu), 60) == 1
    assert "ERR_NVGPUCTRPERM - The user does not have permission" in capsys.readouterr().out
    assert not (tmp_path / "counters.csv").exists()


# ---- The plan ------------------------------------------------------------------------------------


def test_the_planned_proof_set_fits_into_its_time(tmp_path: Path) -> None:
    """About sixty cases, and no more binaries than sixteen cores compile in two minutes."""
    here = Planned("b200")
    assert 55 <= len(here.grid("proof")) <= 70
    assert here.grid("full")[: len(here.grid("proof"))] == here.grid("proof")
    path = tmp_path / forecast.NAME
    forecast.write(path, here.spec(), here.launcher(), race(here, "proof"))
    plan = forecast.read(path)
    found = precompile.binaries(raced(here, plan), "sm_100")
    assert 60 <= len(found) <= 150
    assert len({binary[0].name for binary in found}) >= 9
    with path.open(newline="") as file:
        kept = [row for row in csv.DictReader(file) if row["keep"] == "True" and row["config"]]
    menus = Counter((row["case"], row["implementation"]) for row in kept)
    assert set(menus.values()) <= set(range(1, forecast.MOST + 1))


def test_a_cut_day_has_seen_every_kind_of_case() -> None:
    early = grids.grid("proof")[:6]
    kinds = {(case.op, case.phase, case.direction) for case in early}
    assert len(kinds) == 6


def test_configs_that_the_plan_drops_are_not_tried(tmp_path: Path) -> None:
    here = Rehearsal()
    kernel = registry.kernel("matmul")
    case = gemm(64, 64, 64, "fp16")
    menu = list(forecast.fitting(kernel, case.problem(), here.launcher()))
    drop = {"case": case.label(), "implementation": "triton-3.6.0:matmul", "config": str(menu[0]),
            "keep": "False"}  # fmt: skip
    known = forecast.Forecast([drop])
    assert list(known.menu(here.launcher())(case, kernel, case.problem())) == menu[1:]
    every = forecast.Forecast([drop | {"config": str(config)} for config in menu])
    assert list(every.menu(here.launcher())(case, kernel, case.problem())) == menu
    other = gemm(128, 64, 64, "fp16")
    assert len(known.menu(here.launcher())(other, kernel, other.problem())) == len(menu)


def test_configs_that_are_known_to_spill_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Rehearsal()
    kernel, problem = registry.kernel("softmax"), registry.kernel("softmax").cases[0][0]
    menu = list(kernel.menu(problem, "sm_90", 132))
    spills = compilefacts.LaunchFacts(
        "k", "softmax", "softmax", "sm_90", "3", "p", "c", compilefacts.FITS, spill_bytes=8
    )

    class Known:
        def of(self, kernel, problem, config, target):  # type: ignore[no-untyped-def]
            return (spills,) if config == menu[0] else None

    monkeypatch.setattr(compilefacts, "table", Known)
    assert list(forecast.fitting(kernel, problem, here.launcher())) == menu[1:]


def test_predictions_come_back_whatever_the_version_of_the_library() -> None:
    case = attention(1, 2, 2, 64, 64, 64)
    row = {"case": case.label(), "implementation": "torch-2.13.0:cudnn", "config": "",
           "predicted_us": "10", "low_us": "8", "high_us": "12", "compiled_us": ""}  # fmt: skip
    found = forecast.Forecast([row]).beside(case, "torch-2.11.0:cudnn", "")
    assert found["predicted_us"] == "10"
    assert set(forecast.Forecast([]).beside(case, "torch-2.11.0:cudnn", "").values()) == {""}


# ---- Binaries ------------------------------------------------------------------------------------


def test_a_binary_is_compiled_as_a_launch_would_and_kept_for_another_machine(
    tmp_path: Path,
) -> None:
    """With a driver that is played: Triton's launcher asks it for the target, and nothing else."""
    code = f"""
import os
from pathlib import Path
os.environ.pop("TRITON_INTERPRET", None)
os.environ["TRITON_CACHE_DIR"] = {str(tmp_path / "first")!r}
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
class Driver:
    launcher_cls = None
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0
driver.set_active(Driver())
from perfmodel.proof import registry
from perfmodel.measured.day import precompile
kernel = registry.kernel("copy")
twice = precompile.binaries(iter([(kernel, *kernel.cases[0])] * 2), "sm_90")
assert len(twice) == 1
assert precompile.compile_share(twice, 0, 1, precompile.compile_binary) == 0
precompile.pack(Path({str(tmp_path / "packed.tar.gz")!r}))
os.environ["TRITON_CACHE_DIR"] = {str(tmp_path / "second")!r}
precompile.unpack(Path({str(tmp_path / "packed.tar.gz")!r}))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    first, second = (
        {path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*.cubin")}
        for name in ("first", "second")
    )
    assert len(first) == 1
    assert first == second


def test_shares_are_compiled_once_each_by_all_cores(tmp_path: Path) -> None:
    code = f"""import sys
open({str(tmp_path)!r} + "/share" + sys.argv[1], "w").write(sys.argv[2])"""
    said = precompile.everything(python(code), tmp_path, 30)
    cores = os.cpu_count() or 1
    assert {path.name for path in tmp_path.glob("share*")} == {f"share{i}" for i in range(cores)}
    assert said.startswith(f"{cores} processes")


# ---- What it has shown ---------------------------------------------------------------------------


def test_a_race_is_against_the_best_rival_of_the_same_case(tmp_path: Path) -> None:
    columns = (*summary.CASE_KEY, "measured_us", "flag", "low_us", "high_us")
    table = (
        ("triton-3.6.0:matmul", "20", "1", "", "10"),
        ("triton-3.6.0:matmul-persistent", "10", "1", "", "11"),
        ("torch-2.11.0:matmul", "9", "1", "", ""),
        ("torch-2.11.0:slow", "90", "1", "", ""),
        ("triton-3.6.0:matmul", "", "2", "failed", ""),
        ("torch-2.11.0:matmul", "1", "2", "", ""),
    )
    names = ("implementation", "measured_us", "m", "flag", "low_us")
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for cells in table:
            row = dict(zip(names, cells, strict=True)) | {"high_us": "30" if cells[4] else ""}
            writer.writerow(row | {"op": "gemm", "dtype": "bf16", "direction": "fwd"})
    _, line = summary.lines(tmp_path / "runs.csv")
    assert line.split() == ["gemm", "bf16", "fwd", "6", "1", "0.90", "50%"]


def test_no_rows_no_table(tmp_path: Path) -> None:
    assert summary.lines(tmp_path / "runs.csv") == []


def test_an_unknown_fault_is_named() -> None:
    with pytest.raises(PerfmodelError, match="no fault named 'hangs'; did you mean hang"):
        Rehearsal({"softmax": "hangs"})
