"""Compiles every bundled kernel for every target; run with `python -m`.

Two things are compiled. First, each kernel's small cases (all its types, masks and forms). Second,
each config of its menus on full-size problems: none of these may spill or exceed the target's
on-chip memory. The facts of the second kind are stored in the table of compile facts
(`compilefacts`); `--write` rewrites it.

`--kernel NAME` (may be repeated) compiles only these kernels, and `--write` then keeps the other
kernels' rows. Prints a line per kernel and target. The exit code is 1 if anything fails that the
target supports.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.compiled import (
    CompiledKernel,
    CompileError,
    DoesNotFit,
    Request,
    compile_all,
)
from perfmodel.proof.compiled.compilefacts import REFUSED, UNFIT, LaunchFacts
from perfmodel.proof.compiled.targets import TARGETS, Target
from perfmodel.proof.kernel import BundledKernel
from perfmodel.replacing import replacing

_PLANNED = {"sm_90": "h200-sxm", "sm_100": "b200"}
"""Devices whose proof set is compiled into the table as well, beside the kernels' own forms."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of compiling one request."""

    request: Request
    """The request."""
    status: str
    """`compiled`, `unfit` (too much on-chip memory), `refused` (8-bit floats before sm_89, and what
    the kernel has no menu for) or `failed`."""
    reason: str = ""
    """Why it was not compiled."""
    facts: tuple[LaunchFacts, ...] = ()
    """Rows for the table of compile facts."""


def cases(
    kernels: Iterable[BundledKernel], targets: Mapping[str, Target] = TARGETS
) -> list[Outcome]:
    """Every kernel's small cases for every target."""
    return _outcomes(
        Request(kernel, problem, config, target)
        for kernel in kernels
        for target in targets.values()
        if kernel.takes(target.name)
        for problem, config in kernel.cases
    )


def menus(
    kernels: Iterable[BundledKernel], targets: Mapping[str, Target] = TARGETS
) -> list[Outcome]:
    """Every config of the kernels' menus on their full-size problems, for every target.

    A config that spills or does not fit counts as failed, since a menu lists only configs worth
    trying.
    """
    return judged(
        request
        for kernel in kernels
        for target in targets.values()
        if kernel.takes(target.name)
        for request in requests(kernel, target)
    )


def requests(kernel: BundledKernel, target: Target) -> Iterator[Request]:
    """The kernel's forms with every config of their menus on the target's default device."""
    units = int(load(target.device).units)
    for problem in kernel.forms:
        try:
            menu = kernel.menu(problem, target.name, units)
        except ProblemError:  # a type that the target has no instruction for
            continue
        yield from (Request(kernel, problem, config, target) for config in menu)


def planned(target: Target, device: str) -> Iterator[Request]:
    """Every config that a measuring run on a device would try for the proof set."""
    from perfmodel.measured.contenders import Launcher
    from perfmodel.measured.dayparts import raced
    from perfmodel.measured.predicted import fitting

    launcher = Launcher("cuda", target.name, int(load(device).units))
    menu = lambda case, kernel, problem: fitting(kernel, problem, launcher)  # noqa: E731
    for kernel, problem, config in raced(launcher, menu):
        yield Request(kernel, problem, config, target)


def judged(wanted: Iterable[Request]) -> list[Outcome]:
    """The outcomes of menu entries; an entry that spills or does not fit is a failure."""
    return [_entry(*each) for each in _builds(wanted)]


def _outcomes(requests: Iterable[Request]) -> list[Outcome]:
    return [outcome(*each) for each in _builds(requests)]


def _builds(requests: Iterable[Request]) -> list[tuple[Request, CompiledKernel | CompileError]]:
    unique = {tuple(request.binaries()): request for request in requests}
    return compile_all(list(unique.values()), _progress)


def _entry(request: Request, build: CompiledKernel | CompileError) -> Outcome:
    entry = outcome(request, build)
    reason = "" if entry.status == "compiled" else entry.reason
    if isinstance(build, CompiledKernel):
        spills = [launch for launch in build.launches if launch.spills]
        text = ", ".join(f"{launch.kernel} {launch.spill_bytes} bytes" for launch in spills)
        reason = f"{request.says()} and {request.problem} spills: {text}" if spills else ""
    return replace(entry, status="failed", reason=reason) if reason else entry


def outcome(request: Request, made: CompiledKernel | CompileError) -> Outcome:
    """The outcome of a request, from its compiled kernel or its error."""
    if isinstance(made, CompiledKernel):
        return Outcome(request, "compiled", facts=made.facts())
    if isinstance(made, DoesNotFit):
        return Outcome(request, "unfit", str(made), _failure_rows(request, UNFIT, str(made)))
    arrays = request.kernel.arrays(request.problem, request.config)
    eight_bits = any(array.dtype == "fp8" for array in arrays)
    old = request.target.nvidia and int(request.target.arch) < 89
    units = int(load(request.target.device).units)
    menu = request.kernel.has_menu(request.problem, request.target.name, units)
    status = "refused" if (eight_bits and old) or not menu else "failed"
    return Outcome(request, status, str(made), _failure_rows(request, REFUSED, str(made)))


def _failure_rows(request: Request, status: str, reason: str) -> tuple[LaunchFacts, ...]:
    """Rows of a binary that was not made, with the reason instead of numbers."""
    launches = request.kernel.launches(request.problem, request.config)
    return tuple(
        LaunchFacts(
            key, request.kernel.name, launch.kernel, request.target.name, _version(),
            str(request.problem), str(request.config), status, reason,
        )
        for key, launch in zip(request.binaries(), launches, strict=True)
    )  # fmt: skip


def _version() -> str:
    from importlib import metadata

    return metadata.version("triton")


def _progress(count: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{count}/{total} ", end="" if count < total else "\n", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile everything; 0 if everything that should compile does and the table is up to date."""
    parser = argparse.ArgumentParser(prog="python -m perfmodel.measured.compilesuite")
    parser.add_argument("--write", action="store_true", help="make the table of facts anew")
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    options = parser.parse_args(arguments)
    try:
        kernels = [registry.kernel(name) for name in options.kernel or registry.kernels()]
    except UnknownName as unknown:
        parser.error(str(unknown))
    small: list[Outcome] = []
    full: list[Outcome] = []
    for kernel in kernels:
        for target in filter(lambda each: kernel.takes(each.name), TARGETS.values()):
            pair = cases([kernel], {target.name: target}), menus([kernel], {target.name: target})
            _report(kernel, target, *pair)
            small += pair[0]
            full += pair[1]
    for name, device in _PLANNED.items():
        full += judged(each for each in planned(TARGETS[name], device) if each.kernel in kernels)
    facts = [fact for each in full for fact in each.facts]
    failures = sum(each.status == "failed" for each in (*small, *full))
    if options.write:
        names = {kernel.name for kernel in kernels}
        _write(facts, [row for row in compilefacts.table().rows() if row.kernel not in names])
        return 1 if failures else 0
    return 1 if failures or differences(facts) else 0


def _report(
    kernel: BundledKernel, target: Target, small: Sequence[Outcome], full: Sequence[Outcome]
) -> None:
    counts = Counter(outcome.status for outcome in (*small, *full))
    spills = sum(any(f.spill_bytes for f in outcome.facts) for outcome in full)
    text = ", ".join(f"{counts[name]} {name}" for name in counts)
    suffix = f", {spills} of {len(full)} menu entries spill" if spills else ""
    print(f"{kernel.name:28} {target.name:8} {text}{suffix}", flush=True)
    for outcome in (*small, *full):
        if outcome.status == "failed":
            print(f"  {outcome.reason}", flush=True)


def _write(facts: Sequence[LaunchFacts], rest: Sequence[LaunchFacts]) -> None:
    path = compilefacts.folder() / compilefacts.NAME
    rows = list({fact.key: fact for fact in (*rest, *facts)}.values())
    with replacing(path) as partial:
        partial.write_text(compilefacts.dumped(rows), encoding="utf-8")
    print(f"wrote {path.name}: {len(rows)} binaries")


def differences(facts: Sequence[LaunchFacts]) -> int:
    """Print each binary that the table lacks or has with other facts; returns their number."""
    table = {row.key: row.says() for row in compilefacts.table().rows()}
    misses = [fact for fact in facts if fact.says() != table.get(fact.key)]
    for fact in misses[:20]:
        state = "has otherwise" if fact.key in table else "lacks"
        print(f"the table {state}: {fact.kernel} with {fact.config} for {fact.target}")
    if misses:
        print(f"{len(misses)} binaries differ; make the table anew with --write")
    return len(misses)


if __name__ == "__main__":
    sys.exit(main())
