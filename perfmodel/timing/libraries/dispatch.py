"""Which kernel runs a problem: the named one, the one its library chooses, or a good library's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.timing.libraries.facts import AttentionFacts, ChainFacts, GemmFacts, KernelFacts
from perfmodel.timing.libraries.files import find, kernel_facts
from perfmodel.timing.libraries.naming import (
    caller_of,
    computed_by,
    implementations,
    is_known,
    matching,
    usual_kernels,
)
from perfmodel.timing.machine import Machine

_BLOCKED = "cpu-blocked"
_UNMET = " is not known in "


def resolve(
    op: str,
    implementation: str | None,
    dtype: str,
    machine: Machine,
    *,
    batched: bool = False,
    decode: bool = False,
    head_dim: int = 0,
    variant: str = "",
) -> tuple[Any, tuple[str, ...]]:
    """The facts of the kernel that runs an implementation on a device, and sentences on
    assumptions.

    The facts are of the operator's kind. `head_dim` is the one of attention; 0: any. An unknown
    name gets the nearest kernel. A kernel that does not exist for the device falls back as its
    library does. Raises `PerfmodelError` where no kernel computes the operator.
    """
    assumptions: list[str] = []
    kernel = _named_kernel(op, implementation, dtype, variant, assumptions)
    if kernel is None:
        kernel = usual(op, dtype, machine)
        if implementation and is_known(op, implementation):
            assumptions.append(f"{implementation!r}{_UNMET}{dtype}: {kernel.name} taken")
    if isinstance(kernel, AttentionFacts) and machine.device.kind == "cpu":
        # No library runs a GPU's tiles on a CPU.
        kernel = kernel if kernel.schedule == "standard" else kernel_facts(_BLOCKED)
    kernel = _device_kernel(kernel, machine, implementation, assumptions)
    others = kernel.other_dims if isinstance(kernel, AttentionFacts) else None
    if others is not None and head_dim not in (0, *kernel.head_dims):
        kernel = _device_kernel(kernel_facts(others), machine)
    if batched and isinstance(kernel, GemmFacts) and kernel.batched is not None:
        kernel = _device_kernel(kernel_facts(kernel.batched), machine)
    if decode and isinstance(kernel, AttentionFacts | ChainFacts) and kernel.decoder is not None:
        kernel = _device_kernel(kernel_facts(kernel.decoder), machine)
    caller = caller_of(op, implementation, dtype, machine.architecture.instruction)
    return replace(kernel, caller=caller), tuple(assumptions)


def unmet(implementation: str | None, said: tuple[str, ...]) -> str | None:
    """The sentence of `resolve` that the implementation has no kernel for the type, if there."""
    return next((line for line in said if line.startswith(f"{implementation!r}{_UNMET}")), None)


def _named_kernel(
    op: str, implementation: str | None, dtype: str, variant: str, assumptions: list[str]
) -> KernelFacts | None:
    """The kernel of the operator that a name means; None where there is none.

    A library may use one name for kernels that differ by type: cuBLAS.
    """
    if not implementation:
        return None
    kernel = find(implementation)
    if kernel is None or not kernel.computes(dtype, variant):
        kernel = matching(op, implementation, dtype, variant) or kernel
    if kernel is None:
        return None
    if kernel.name != implementation and is_known(op, implementation):
        assumptions.append(f"implementation {implementation!r} modelled as {kernel.name}")
    return kernel if kernel.operator in computed_by(op) else None


def _device_kernel(
    kernel: KernelFacts,
    machine: Machine,
    implementation: str | None = None,
    assumptions: list[str] | None = None,
) -> Any:
    """The kernel, or its fallback where it does not exist for the device.

    A fallback within the library is reported only where the kernel itself was named. A fallback
    that does not quantise activations is given them by the kernel's quantiser: the caller's.
    """
    while not kernel.runs_on.allows(machine.architecture) and kernel.fallback is not None:
        if assumptions is not None and (kernel.name == implementation or not kernel.dispatches):
            slug = machine.device.slug
            assumptions.append(f"{kernel.name} does not run on {slug}; {kernel.fallback} taken")
        spare = kernel_facts(kernel.fallback)
        if isinstance(spare, GemmFacts) and isinstance(kernel, GemmFacts) and not spare.quantises:
            spare = replace(spare, quantises=kernel.quantises, quantiser=kernel.quantiser)
        kernel = spare
    return kernel


def usual(op: str, dtype: str, machine: Machine) -> Any:
    """The facts of the kernel that a good library would run on the device; used where none is
    named. Of an operator without a usual kernel, the first that there is."""
    last = None
    usual_types: set[str] = set()
    choices = [(kernel_facts(entry.kernel), entry.formats) for entry in usual_kernels()]
    choices = [each for each in choices if each[0].operator in computed_by(op)]
    for kernel, formats in choices or [(each, ()) for each in implementations(op).values()]:
        usual_types.update(formats)
        if dtype not in (formats or (dtype,)):
            continue
        if kernel.runs_on.allows(machine.architecture):
            return kernel
        last = kernel
    if last is None:
        types = ", ".join(sorted(usual_types))
        raise ProblemError(
            f"{machine.device.slug} has no known kernel of {op} in {dtype}; it has: {types}"
        )
    return last
