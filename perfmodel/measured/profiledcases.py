"""One call of each of many cases under Nsight Compute, in a range named after the case.

    ncu ... python -m perfmodel.measured.profiledcases

`counted` runs that command and imports what it counted until its time was up.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from perfmodel.cases import Case
from perfmodel.errors import PerfmodelError
from perfmodel.measured import dayparts, session
from perfmodel.measured.counters import import_counters
from perfmodel.measured.environment import environment
from perfmodel.measured.measure import describe
from perfmodel.measured.rivals import Contender
from perfmodel.profile import ncu

_PROFILED = 64  # cases, spread over the grid
_MOST_BYTES = 4e9  # of a case: the profiler replays each kernel once for each pass over the metrics
_IMPORT_S = 10.0  # of the limit, kept to import what was counted until then
_ASK_S = 60.0


def counted(log: Path, limit_s: float) -> tuple[list[dict[str, str]] | None, list[str]]:
    """Rows of counters, and lines about them; None where profiling failed, none without `ncu`."""
    profiler = shutil.which("ncu")
    if profiler is None:
        return [], ["ncu is not on the PATH: no counters; everything else goes on"]
    lines = []
    try:
        known = subprocess.run(
            [profiler, "--query-metrics"], capture_output=True, text=True, timeout=_ASK_S,
            check=False,
        )  # fmt: skip
        command = _command(profiler, ncu.metrics_for(known.stdout), log)
        code = subprocess.run(command, timeout=max(limit_s - _IMPORT_S, 0.0), check=False)
        ending = f"ended with {code.returncode}"
    except subprocess.TimeoutExpired:
        ending = "stopped when the time was up"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines += [f"ncu: {line}" for line in ncu.complaints(text)]
    try:
        rows, notes = import_counters(log, device=environment("cuda").device)
    except PerfmodelError as error:
        return None, [*lines, f"ncu {ending}; {error}"]
    return rows, [*lines, *notes, f"ncu {ending}; {len(rows)} cases counted"]


def _command(profiler: str, metrics: Sequence[str], log: Path) -> list[str]:
    return [
        profiler, "--csv", "--page", "raw", "--nvtx", "--clock-control", "none",
        "--target-processes", "all", "--profile-from-start", "off",
        "--metrics", ",".join(metrics), "--log-file", str(log),
        sys.executable, "-m", "perfmodel.measured.profiledcases",
    ]  # fmt: skip


def main() -> None:
    """Run one call of each case inside a range named after it, for the profiler."""
    import torch

    entries, _ = session.contenders(environment("cuda"))
    jobs = [(job.case, job.contender) for job in dayparts.race("proof", entries) if not job.repeat]
    for case, contender in spread(jobs):
        try:
            prepared = contender.prepare(case, 1, 0)
            prepared.calls[0]()  # compiled and warm before it is counted
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            with torch.cuda.nvtx.range(case.label(contender.implementation)):
                prepared.calls[0]()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        except Exception as error:  # one case less
            print(f"  not counted: {contender.implementation} {describe(case)}: {error}")
        torch.cuda.empty_cache()


def spread(jobs: Sequence[tuple[Case, Contender]]) -> list[tuple[Case, Contender]]:
    """At most 64 jobs of bounded size, in proportion of each contender, spread over its cases."""
    small = [job for job in jobs if job[0].compulsory_bytes < _MOST_BYTES]
    ordered = sorted(small, key=lambda job: job[1].implementation)
    return ordered[:: max(-(-len(ordered) // _PROFILED), 1)]


if __name__ == "__main__":
    main()
