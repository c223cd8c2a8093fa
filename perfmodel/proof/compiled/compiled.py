"""Kernels compiled for any GPU, without one, and the resources that their binaries use.

    compiled = compile_kernel(kernel, problem, config, target("sm_90"))
    compiled.launches[0].registers, .spill_bytes, .shared_bytes, .loop

A launch is specialised as Triton's launcher would do it: pointers and sizes that are multiples of
16 are declared so, and a size of 1 is a constant. The compiler runs in its own process. Results are
cached by the compiler's inputs; a cached result needs neither torch nor a GPU.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import perfmodel
from perfmodel.hardware import Device, load
from perfmodel.proof.compiled import binarycache
from perfmodel.proof.compiled.compilefacts import FITS, LaunchFacts, content, launch_key
from perfmodel.proof.compiled.disassembly import Instruction, loops, parse
from perfmodel.proof.compiled.instructions import hot_loop, mix, unit_of
from perfmodel.proof.compiled.issueslots import IssueSlots, issue_slots, operations
from perfmodel.proof.compiled.sources import whereabouts
from perfmodel.proof.compiled.targets import (
    TENSOR_MEMORY_COLUMNS,
    Occupancy,
    Target,
    occupancy_of,
)
from perfmodel.proof.kernel import BundledKernel, KernelError, Launch


class CompileError(KernelError):
    """A kernel that its compiler refuses for a target."""


class DoesNotFit(CompileError):
    """A config whose blocks need more shared or tensor memory than the target has."""


@dataclass(frozen=True)
class CompiledLaunch:
    """One launch as compiled."""

    kernel: str
    """The schedule's kernel that it carries out."""
    function: str
    """Name of the function."""
    target: Target
    """What it was compiled for."""
    registers: int
    """Registers of a thread; vector registers of a lane on AMD."""
    scalar_registers: int
    """Scalar registers of a wave, on AMD."""
    spill_bytes: int
    """Bytes of a thread's stack to which registers are spilled."""
    static_shared_bytes: int
    """Shared memory of a block that the code declares."""
    dynamic_shared_bytes: int
    """Shared memory of a block that the launch requests."""
    tensor_memory_columns: int
    """Columns of tensor memory of a block."""
    warps: int
    """Warps of a block that the launch requests."""
    threads: int
    """Threads of a block, those of specialised warps included."""
    listing: str
    """The disassembly."""

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @cached_property
    def program(self) -> tuple[Instruction, ...]:
        """The instructions."""
        return parse(self.listing, self.target.nvidia)

    @cached_property
    def loop(self) -> tuple[int, ...]:
        """Indexes of the innermost loop's instructions; one pass works on one tile of the streamed
        axis."""
        return hot_loop(self.program)

    @property
    def instructions(self) -> dict[str, int]:
        """Instructions of the whole listing by unit, each counted once."""
        return mix(self.program)

    @property
    def loop_instructions(self) -> dict[str, int]:
        """Instructions of a warp in one pass of the loop, both sides of a branch counted."""
        return mix(self.program[i] for i in self.loop)

    @property
    def spills(self) -> bool:
        """Whether registers overflow to a thread's stack.

        Specialised warps store a few values there once, outside all loops. That costs next to no
        time and does not count as a spill.
        """
        specialised = self.threads > self.warps * self.target.warp_size
        if not self.spill_bytes or not specialised:
            return self.spill_bytes > 0
        body = frozenset().union(*loops(self.program))
        return any(unit_of(self.program[i]) == "spill" for i in body)

    @property
    def loop_operations(self) -> float | None:
        """Matrix FLOP of a block in one pass of the loop; None where the listing does not show the
        shape."""
        return operations(self.program, self.loop, self.warps)

    def occupancy(self, device: Device) -> Occupancy:
        """Blocks and warps resident on one compute unit of `device`."""
        return occupancy_of(
            device, self.registers, self.shared_bytes, self.threads, self.tensor_memory_columns
        )

    def issue_slots(self, device: Device) -> IssueSlots:
        """Busy cycles of each pipe in a pass of the loop (of the whole listing without one)."""
        body = self.loop or tuple(range(len(self.program)))
        return issue_slots(device, self.program, body, self.warps)


@dataclass(frozen=True)
class CompiledKernel:
    """All launches of a kernel for one problem, config and target."""

    kernel: str
    """The bundled kernel."""
    problem: Any
    """The problem."""
    config: Any
    """The config."""
    target: Target
    """What it was compiled for."""
    launches: tuple[CompiledLaunch, ...]
    """Its launches, in order."""
    keys: tuple[str, ...] = ()
    """Triton's keys of the binaries."""

    def facts(self, device: Device | None = None) -> tuple[LaunchFacts, ...]:
        """Resources of each launch's binary, on `device`, or else on the target's default
        device."""
        board = device or load(self.target.device)
        return tuple(
            _fact(self, launch, key, board)
            for launch, key in zip(self.launches, self.keys, strict=True)
        )


def _fact(kernel: CompiledKernel, launch: CompiledLaunch, key: str, device: Device) -> LaunchFacts:
    return LaunchFacts(
        key=key,
        kernel=kernel.kernel,
        launch=launch.kernel,
        target=kernel.target.name,
        triton=_triton_version(),
        problem=str(kernel.problem),
        config=str(kernel.config),
        status=FITS,
        registers=launch.registers,
        spill_bytes=launch.spill_bytes if launch.spills else 0,
        shared_bytes=launch.shared_bytes,
        tensor_memory_columns=launch.tensor_memory_columns,
        threads=launch.threads,
        blocks=launch.occupancy(device).blocks,
        looped=bool(launch.loop),
        flops_per_pass=launch.loop_operations or 0.0,
        cycles=launch.issue_slots(device).cycles,
    )


@dataclass(frozen=True)
class Request:
    """What to compile."""

    kernel: BundledKernel
    """The bundled kernel."""
    problem: Any
    """The problem."""
    config: Any
    """The config."""
    target: Target
    """What to compile for."""

    def binaries(self) -> list[str]:
        """The names of its launches' binaries in the table of compile facts."""
        return [
            launch_key(content(self.kernel, self.problem, self.config, launch, self.target))
            for launch in self.kernel.launches(self.problem, self.config)
        ]

    def says(self) -> str:
        """The request in an error message."""
        return f"{self.kernel.name} with {self.config} for {self.target.name}"


def compile_kernel(
    kernel: BundledKernel, problem: Any, config: Any, target: Target
) -> CompiledKernel:
    """Compile every launch of `kernel`.

    Raises `DoesNotFit` for a config that cannot fit, `CompileError` for what the compiler
    refuses, `KernelError` where Triton is missing.
    """
    ((_, outcome),) = compile_all([Request(kernel, problem, config, target)])
    if isinstance(outcome, CompileError):
        raise outcome
    return outcome


def first_fitting(
    kernel: BundledKernel,
    problem: Any,
    targets: Sequence[Target],
    tell: Callable[[int, int], None] | None = None,
) -> list[CompiledKernel]:
    """For each target the first config of the kernel's menu for it that compiles and fits.

    Raises the first config's error where none does, and `ProblemError` for a target without a menu.
    """
    menus = {
        target.name: list(kernel.menu(problem, target.name, int(load(target.device).units)))
        for target in targets
    }
    kernels: dict[str, CompiledKernel] = {}
    failures: dict[str, CompileError] = {}
    while pending := [t for t in targets if t.name not in kernels and menus[t.name]]:
        requests = [Request(kernel, problem, menus[t.name].pop(0), t) for t in pending]
        for request, outcome in compile_all(requests, tell):
            if isinstance(outcome, CompiledKernel):
                kernels[request.target.name] = outcome
            else:
                failures.setdefault(request.target.name, outcome)
    for target in targets:
        if target.name not in kernels:
            raise failures[target.name]
    return [kernels[target.name] for target in targets]


def compile_all(
    requests: Sequence[Request], tell: Callable[[int, int], None] | None = None
) -> list[tuple[Request, CompiledKernel | CompileError]]:
    """Compile many requests in one process; a failed request yields its error and the others go on.

    `tell(done, of)` is called as compilations finish.
    """
    jobs: dict[str, dict[str, Any]] = {}
    plans = []
    for request in requests:
        launches = request.kernel.launches(request.problem, request.config)
        batch = [_job(request, launch) for launch in launches]
        plans.append((request, launches, [job["key"] for job in batch]))
        jobs |= {job["key"]: job for job in batch}
    answers = _answers(jobs, tell)
    return [(request, _outcome(request, ls, [answers[k] for k in ks])) for request, ls, ks in plans]


def _outcome(
    request: Request, launches: Sequence[Launch], answers: Sequence[Mapping[str, Any]]
) -> CompiledKernel | CompileError:
    parts = []
    for launch, answer in zip(launches, answers, strict=True):
        if "error" in answer:
            return CompileError(f"{request.says()} does not compile: {answer['error']}")
        parts.append(_launch(request.target, launch, answer))
        fault = _overflow(parts[-1])
        if fault:
            return DoesNotFit(f"{request.says()} {fault}; take smaller tiles or fewer stages")
        if not any(item.stem in ("EXIT", "s_endpgm") for item in parts[-1].program):
            return CompileError(f"{request.says()} compiles to code that only traps")
    return CompiledKernel(
        request.kernel.name, request.problem, request.config, request.target, tuple(parts),
        tuple(request.binaries()),
    )  # fmt: skip


def _overflow(launch: CompiledLaunch) -> str:
    """Which on-chip memory a block exceeds, and by how much; empty where it fits."""
    demand, limit = launch.shared_bytes, launch.target.shared_per_block
    if demand > limit:
        return (
            f"needs {demand / 1024:.1f} KiB of shared memory a block, "
            f"{(demand - limit) / 1024:.1f} KiB more than the {limit // 1024} KiB there are"
        )
    columns = launch.tensor_memory_columns
    if columns > TENSOR_MEMORY_COLUMNS:
        return (
            f"needs {columns} columns of tensor memory a block, "
            f"{columns - TENSOR_MEMORY_COLUMNS} more than the {TENSOR_MEMORY_COLUMNS} there are"
        )
    return ""


def _launch(target: Target, launch: Launch, answer: Mapping[str, Any]) -> CompiledLaunch:
    return CompiledLaunch(
        kernel=launch.kernel,
        function=whereabouts(launch.function)["name"],
        target=target,
        registers=answer["registers"],
        scalar_registers=answer["scalar_registers"],
        spill_bytes=answer["spill_bytes"],
        static_shared_bytes=answer["static_shared_bytes"],
        dynamic_shared_bytes=answer["dynamic_shared_bytes"],
        tensor_memory_columns=answer["tensor_memory_columns"],
        warps=launch.num_warps,
        threads=answer["warps"] * target.warp_size,
        listing=answer["listing"],
    )


def _job(request: Request, launch: Launch) -> dict[str, Any]:
    """The worker's job for one launch, with its cache name under `key`."""
    job = content(request.kernel, request.problem, request.config, launch, request.target)
    key = binarycache.key({**job, "triton": _triton_version()})
    return {**job, "key": key, "function": whereabouts(launch.function)}


def _triton_version() -> str:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        raise KernelError("compiling needs Triton: pip install 'perfmodel[gpu]'") from None


def _answers(
    jobs: Mapping[str, Mapping[str, Any]], tell: Callable[[int, int], None] | None
) -> dict[str, Mapping[str, Any]]:
    """Answers by key, from the cache where it has them, else compiled."""
    answers: dict[str, Mapping[str, Any]] = {}
    for key in jobs:
        entry = binarycache.read(key)
        if entry is not None:
            answers[key] = entry
    for key, answer in _run([job for key, job in jobs.items() if key not in answers]):
        answers[key] = answer
        if "error" not in answer:
            binarycache.write(key, answer)
        if tell is not None:
            tell(len(answers), len(jobs))
    return answers


def _run(jobs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each job's answer; if the compiler crashes its process, a new process takes the remaining
    jobs."""
    queue = list(jobs)
    while queue:
        crash = None
        for key, answer in _worker(queue):
            if key is None:
                crash = answer
                continue
            queue.pop(0)
            yield key, answer
        if queue and crash is not None:
            yield queue.pop(0)["key"], crash


def _worker(
    jobs: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Answers of one process in the order of the jobs; the last item is (None, why it ended)."""
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        paths = [str(Path(perfmodel.__path__[0]).parent), *filter(None, sys.path)]
        environment |= {"PYTHONPATH": os.pathsep.join(paths), "TRITON_CACHE_DIR": scratch}
        log = Path(scratch, "stderr")
        questions = Path(scratch, "jobs")
        questions.write_text(text, encoding="utf-8")
        with questions.open() as stdin, log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "perfmodel.proof.compiled.compileworker"],
                stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment,
            )  # fmt: skip
        with process:
            try:
                for line in process.stdout or ():
                    answer = json.loads(line)
                    yield answer.pop("key"), answer
            except BaseException:  # interrupted: the compiler's process must end as well
                process.kill()
                raise
        yield None, {"error": _epitaph(process.returncode, log.read_text(errors="replace"))}


def _epitaph(code: int, text: str) -> str:
    """Why the compiler's process ended: its signal or code, and the last line that it wrote."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    clues = [line for line in lines if "error" in line.lower()] or lines or ["nothing said"]
    end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the compiler stopped ({end}): {clues[-1][:300]}"
