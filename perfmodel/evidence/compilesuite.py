"""Every bundled kernel compiled for every target: `python -m perfmodel.evidence.compilesuite`.

Each kernel's cases (all its types, masks and forms, in small tiles), and its menus: every config
for every full-size form, none of which may spill or be too large for the target; for a kernel that
names no forms, the first config that fits. Prints one line per kernel and target, and leaves with 1
where anything fails that the target could do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.evidence import registry
from perfmodel.evidence.compiled import (
    CompiledKernel,
    CompileError,
    DoesNotFit,
    Request,
    compile_all,
    first_fitting,
)
from perfmodel.evidence.kernel import BundledKernel
from perfmodel.evidence.targets import TARGETS, Target
from perfmodel.hardware import load


@dataclass(frozen=True)
class Outcome:
    """What became of one request: compiled, unfit (too much on-chip memory), refused, or failed.

    Refused is what the target has no instruction for: 8-bit floats before sm_89.
    """

    request: Request
    status: str
    reason: str = ""


def everything(
    kernels: Iterable[BundledKernel] | None = None, targets: Mapping[str, Target] = TARGETS
) -> list[Outcome]:
    """Compile all cases and menus for all targets that the kernels are written for."""
    found: list[Outcome] = []
    for kernel in registry.kernels().values() if kernels is None else kernels:
        mine = [target for target in targets.values() if kernel.takes(target.name)]
        requests = [
            Request(kernel, problem, config, target)
            for target in mine
            for problem, config in kernel.cases
        ]
        found += [_outcome(request, made) for request, made in compile_all(requests, _progress)]
        for target in mine:
            found += menus(kernel, target) if kernel.forms else [_first(kernel, target)]
    return found


def menus(
    kernel: BundledKernel, target: Target, forms: Iterable[Any] | None = None
) -> list[Outcome]:
    """Every config of the kernel's menus for its full-size forms (or for those given).

    One that spills or does not fit has failed: a menu names nothing that is not worth trying.
    """
    units = load(target.device).units
    requests = [
        Request(kernel, form, config, target)
        for form in (kernel.forms if forms is None else forms)
        for config in kernel.menu(form, target.name, units)
    ]
    return [_entry(request, made) for request, made in compile_all(requests, _progress)]


def _entry(request: Request, made: CompiledKernel | CompileError) -> Outcome:
    if not isinstance(made, CompiledKernel):
        return Outcome(request, "failed", str(made))
    spilled = [launch for launch in made.launches if launch.spills]
    if spilled:
        said = ", ".join(f"{launch.kernel} {launch.spill_bytes} bytes" for launch in spilled)
        return Outcome(request, "failed", f"{request.says()} and {request.problem} spills: {said}")
    return Outcome(request, "compiled")


def _first(kernel: BundledKernel, target: Target) -> Outcome:
    """The first config of the menu that fits, for the first 16-bit case (else the first)."""
    halves = [p for p, _ in kernel.cases if getattr(p, "dtype", "") in ("fp16", "bf16")]
    problem = (halves or [kernel.cases[0][0]])[0]
    try:
        (made,) = first_fitting(kernel, problem, [target])
    except CompileError as error:
        request = Request(kernel, problem, kernel.configs[0], target)
        return Outcome(request, "failed", f"no config of the menu fits: {error}")
    return Outcome(Request(kernel, problem, made.config, target), "compiled")


def _outcome(request: Request, made: CompiledKernel | CompileError) -> Outcome:
    if isinstance(made, CompiledKernel):
        return Outcome(request, "compiled")
    if isinstance(made, DoesNotFit):
        return Outcome(request, "unfit", str(made))
    eight_bits = "fp8" in str(getattr(request.problem, "dtype", ""))
    old = request.target.nvidia and int(request.target.arch) < 89
    return Outcome(request, "refused" if eight_bits and old else "failed", str(made))


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{of} ", end="" if done < of else "\n", file=sys.stderr, flush=True)


def main() -> int:
    """Compile everything; 0 where all that should compile does."""
    failed = 0
    for kernel in registry.kernels().values():
        for target in TARGETS.values():
            if not kernel.takes(target.name):
                continue
            outcomes = everything([kernel], {target.name: target})
            by = {s: [o for o in outcomes if o.status == s] for s in
                  ("compiled", "unfit", "refused", "failed")}  # fmt: skip
            counts = ", ".join(f"{len(items)} {name}" for name, items in by.items() if items)
            print(f"{kernel.name:28} {target.name:8} {counts}", flush=True)
            for outcome in by["failed"]:
                print(f"  {outcome.reason}", flush=True)
            failed += len(by["failed"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
