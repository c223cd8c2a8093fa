"""Every bundled kernel compiled for every target, as `python -m` runs it.

Two things are compiled: each kernel's small cases (all its types, masks and forms) and each config
of its menus on full-size problems, none of which may spill or be too large for its target. Of the
second kind the facts are kept in a table beside the kernels (`compilefacts`); `--write` makes it
anew.

`--kernel NAME`, which may be repeated, is for these alone: `--write` then leaves the others' rows
as they are. Prints a line per kernel and target, and leaves with 1 where anything fails that the
target could do.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.evidence import registry
from perfmodel.evidence.compiled import compilefacts
from perfmodel.evidence.compiled.compiled import (
    CompiledKernel,
    CompileError,
    DoesNotFit,
    Request,
    compile_all,
)
from perfmodel.evidence.compiled.compilefacts import REFUSED, UNFIT, LaunchFacts
from perfmodel.evidence.compiled.targets import TARGETS, Target
from perfmodel.evidence.kernel import BundledKernel
from perfmodel.evidence.records.records import replacing
from perfmodel.hardware import load

_PLANNED = {"sm_90": "h200-sxm", "sm_100": "b200"}
"""Devices whose proof set is in the table too, beside the kernels' own forms."""


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    request: Request
    """The request."""
    status: str
    """`compiled`, `unfit` (too much on-chip memory), `refused` (the target has no instruction for
    it, as for 8-bit floats before sm_89) or `failed`."""
    reason: str = ""
    """Why it is none."""
    facts: tuple[LaunchFacts, ...] = ()
    """Rows of the table that it gives."""


def cases(
    kernels: Iterable[BundledKernel], targets: Mapping[str, Target] = TARGETS
) -> list[Outcome]:
    """Every kernel's small cases for every target."""
    return _compiled(
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

    One that spills or does not fit has failed: a menu names nothing that is not worth trying.
    """
    return judged(
        request
        for kernel in kernels
        for target in targets.values()
        if kernel.takes(target.name)
        for request in requests(kernel, target)
    )


def requests(kernel: BundledKernel, target: Target) -> Iterator[Request]:
    """The kernel's forms with their menus on the device that speaks for the target."""
    units = int(load(target.device).units)
    for problem in kernel.forms:
        try:
            menu = kernel.menu(problem, target.name, units)
        except ProblemError:  # a type that the target has no instruction for
            continue
        yield from (Request(kernel, problem, config, target) for config in menu)


def planned(target: Target, device: str) -> Iterator[Request]:
    """What a day on a device would try: the proof set, config by config."""
    from perfmodel.evidence.day.planned import Planned
    from perfmodel.evidence.day.stages import raced

    for kernel, problem, config in raced(Planned(device)):
        yield Request(kernel, problem, config, target)


def judged(wanted: Iterable[Request]) -> list[Outcome]:
    """Entries of menus compiled: what does not fit or spills is a failure."""
    return [_entry(*each) for each in _made(wanted)]


def _compiled(wanted: Iterable[Request]) -> list[Outcome]:
    return [outcome(*each) for each in _made(wanted)]


def _made(wanted: Iterable[Request]) -> list[tuple[Request, CompiledKernel | CompileError]]:
    distinct = {tuple(request.binaries()): request for request in wanted}
    return compile_all(list(distinct.values()), _progress)


def _entry(request: Request, made: CompiledKernel | CompileError) -> Outcome:
    found = outcome(request, made)
    reason = "" if found.status == "compiled" else found.reason
    if isinstance(made, CompiledKernel):
        spilled = [launch for launch in made.launches if launch.spills]
        said = ", ".join(f"{launch.kernel} {launch.spill_bytes} bytes" for launch in spilled)
        reason = f"{request.says()} and {request.problem} spills: {said}" if spilled else ""
    return replace(found, status="failed", reason=reason) if reason else found


def outcome(request: Request, made: CompiledKernel | CompileError) -> Outcome:
    """What a compilation means for its request."""
    if isinstance(made, CompiledKernel):
        return Outcome(request, "compiled", facts=made.facts())
    if isinstance(made, DoesNotFit):
        return Outcome(request, "unfit", str(made), _without(request, UNFIT, str(made)))
    eight_bits = "fp8" in str(getattr(request.problem, "dtype", ""))
    old = request.target.nvidia and int(request.target.arch) < 89
    status = "refused" if eight_bits and old else "failed"
    return Outcome(request, status, str(made), _without(request, REFUSED, str(made)))


def _without(request: Request, status: str, reason: str) -> tuple[LaunchFacts, ...]:
    """Rows that say why there are no numbers."""
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


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{of} ", end="" if done < of else "\n", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile everything; 0 where all that should compile does and the table is as it should be."""
    parser = argparse.ArgumentParser(prog="python -m perfmodel.evidence.compiled.compilesuite")
    parser.add_argument("--write", action="store_true", help="make the table of facts anew")
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    options = parser.parse_args(arguments)
    try:
        wanted = [registry.kernel(name) for name in options.kernel or registry.kernels()]
    except UnknownName as unknown:
        parser.error(str(unknown))
    small: list[Outcome] = []
    full: list[Outcome] = []
    for kernel in wanted:
        for target in filter(lambda each: kernel.takes(each.name), TARGETS.values()):
            mine = cases([kernel], {target.name: target}), menus([kernel], {target.name: target})
            _report(kernel, target, *mine)
            small += mine[0]
            full += mine[1]
    for name, device in _PLANNED.items():
        full += judged(each for each in planned(TARGETS[name], device) if each.kernel in wanted)
    facts = [fact for each in full for fact in each.facts]
    failed = sum(each.status == "failed" for each in (*small, *full))
    if options.write:
        names = {kernel.name for kernel in wanted}
        _write(facts, [row for row in compilefacts.table().rows() if row.kernel not in names])
        return 1 if failed else 0
    return 1 if failed or differences(facts) else 0


def _report(
    kernel: BundledKernel, target: Target, small: Sequence[Outcome], full: Sequence[Outcome]
) -> None:
    counts = Counter(each.status for each in (*small, *full))
    spills = sum(any(f.spill_bytes for f in each.facts) for each in full)
    said = ", ".join(f"{counts[name]} {name}" for name in counts)
    more = f", {spills} of {len(full)} menu entries spill" if spills else ""
    print(f"{kernel.name:28} {target.name:8} {said}{more}", flush=True)
    for each in (*small, *full):
        if each.status == "failed":
            print(f"  {each.reason}", flush=True)


def _write(facts: Sequence[LaunchFacts], others: Sequence[LaunchFacts]) -> None:
    path = compilefacts.folder() / compilefacts.NAME
    rows = list({fact.key: fact for fact in (*others, *facts)}.values())
    with replacing(path) as partial:
        partial.write_text(compilefacts.dumped(rows), encoding="utf-8")
    print(f"wrote {path.name}: {len(rows)} binaries")


def differences(facts: Sequence[LaunchFacts]) -> int:
    """Binaries that the table lacks or has otherwise, each in a line."""
    known = {row.key: row.says() for row in compilefacts.table().rows()}
    wrong = [fact for fact in facts if fact.says() != known.get(fact.key)]
    for fact in wrong[:20]:
        was = "has otherwise" if fact.key in known else "lacks"
        print(f"the table {was}: {fact.kernel} with {fact.config} for {fact.target}")
    if wrong:
        print(f"{len(wrong)} binaries differ; make the table anew with --write")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
