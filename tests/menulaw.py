"""The law of menus: every config on a menu compiles, fits its target and spills nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from perfmodel.hardware import load
from perfmodel.proof.compiled.compiled import CompiledKernel, Request, compile_all
from perfmodel.proof.compiled.instructions import Instruction
from perfmodel.proof.compiled.targets import target
from perfmodel.proof.kernel import BundledKernel


def menu(kernel: BundledKernel, problem: Any, name: str) -> tuple[Any, ...]:
    """The menu on a target's default device."""
    return kernel.menu(problem, name, load(target(name).device).units)


def compiled(
    asked: Iterable[tuple[BundledKernel, str, Any, int]],
) -> dict[tuple[str, str], list[CompiledKernel]]:
    """The first so many entries of kernels' menus for targets and problems, by target and kernel.

    One process compiles all: to start it takes longer than to compile any of them.
    test_compile_facts.py checks from the table of compile facts that all entries fit without
    spills.
    """
    requests = [
        Request(kernel, problem, config, target(name))
        for kernel, name, problem, most in asked
        for config in menu(kernel, problem, name)[:most]
    ]
    found: dict[tuple[str, str], list[CompiledKernel]] = {}
    for request, made in compile_all(requests):
        assert isinstance(made, CompiledKernel), made
        wrong = list(_broken(made))
        assert not wrong, (request.says(), wrong)
        found.setdefault((made.target.name, made.kernel), []).append(made)
    return found


_NVIDIA = ("LDG", "STG", "LDGSTS")
_AMD = ("global_load", "global_store", "buffer_load", "buffer_store")


def global_accesses(program: Iterable[Instruction], only: str = "") -> list[str]:
    """Opcodes of accesses to global memory; those whose name has `only` in it, any case."""
    return [
        item.opcode
        for item in program
        if (item.stem in _NVIDIA or item.opcode.startswith(_AMD))
        and only.lower() in item.opcode.lower()
    ]


def is_wide(opcode: str) -> bool:
    """Whether an access moves 16 bytes a lane."""
    return ".128" in opcode or opcode.endswith("dwordx4")


def _broken(made: CompiledKernel) -> Iterator[str]:
    device = load(made.target.device)
    for launch in made.launches:
        if launch.spill_bytes:
            yield f"{launch.kernel} spills {launch.spill_bytes} bytes a thread"
        if launch.occupancy(device).blocks < 1:
            yield f"{launch.kernel}: no block fits on {device.slug}"
