"""Checks of a kernel's facts beyond the type of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfmodel.algorithms.matmul import FORMATS
from perfmodel.elements import ELEMENTS
from perfmodel.entries import Misfit
from perfmodel.errors import nearest
from perfmodel.timing.architectures import ARCHITECTURES
from perfmodel.timing.libraries.facts import (
    AttentionFacts,
    GemmFacts,
    KernelFacts,
    MatrixFacts,
    RowFacts,
)

_MENUS = ("tiles", "decode", "narrow", "windowed", "narrow_decode", "sliced")
_LINKS = ("fallback", "batched", "decoder", "other_dims")
# Counts of a row's layout that are divisors, so not zero.
_LAYOUT = (
    "elements_per_thread",
    "most_threads",
    "passes",
    "load",
    "least_threads",
)


def check(kernel: KernelFacts) -> None:
    """Raise `Misfit` with the key of the first fact that is impossible."""
    for key, fault in _faults(kernel):
        raise Misfit(key, fault)


def _faults(kernel: KernelFacts) -> Iterator[tuple[str, str]]:
    for name in kernel.runs_on.architecture:
        if name not in ARCHITECTURES:
            hint = nearest(name, ARCHITECTURES)
            yield "runs_on.architecture", f"there is no architecture {name!r}; {hint}"
    if kernel.runs_on != type(kernel.runs_on)() and kernel.fallback is None:
        yield "fallback", "the kernel runs on some architectures only; name what runs elsewhere"
    if isinstance(kernel, MatrixFacts):
        yield from _matrix_faults(kernel)
    if isinstance(kernel, RowFacts):
        yield from _row_faults(kernel)


def _matrix_faults(kernel: MatrixFacts) -> Iterator[tuple[str, str]]:
    unfused = isinstance(kernel, AttentionFacts) and kernel.schedule == "standard"
    if not kernel.tiles and not unfused:
        yield "tiles", "the key is missing; add a menu of [rows, columns, threads]"
    for key in _MENUS:
        for size, menu in (getattr(kernel, key, None) or {}).items():
            if not menu or any(0 in tile for tile in menu):
                yield f"{key}.{size}", "a tile needs rows, columns and threads; write them"
    for key in ("share", "backward"):
        share = getattr(kernel, key, None)
        if share is not None and not 0 < share <= 1:
            yield key, f"{share:g} is not a share; write a number above 0, at most 1"
    if isinstance(kernel, AttentionFacts) and (kernel.stages == 0 or kernel.resident == 0):
        yield "stages" if kernel.stages == 0 else "resident", "0 is too few; write 1 or more"
    if isinstance(kernel, GemmFacts):
        yield from _gemm_faults(kernel)


def _gemm_faults(kernel: GemmFacts) -> Iterator[tuple[str, str]]:
    for name in kernel.formats or ("",):
        if name not in FORMATS:
            yield "formats", f"there is no type {name!r} of products; {nearest(name, FORMATS)}"
    order = sorted(set(kernel.splits))
    if kernel.splits[:1] != (1,) or list(kernel.splits) != order:
        yield "splits", "numbers of slices must rise from 1; write [1, 2, 4]"


def _row_faults(kernel: RowFacts) -> Iterator[tuple[str, str]]:
    for key in _LAYOUT if kernel.rows is not None else ():
        if getattr(kernel.rows, key) == 0:
            yield f"rows.{key}", "0 is too few; write 1 or more"
    for i, (*sides, _) in enumerate(kernel.chain.steps if kernel.chain is not None else ()):
        for name in "+".join(sides).split("+"):
            if name not in (*ELEMENTS, "data", "row"):
                hint = nearest(name, (*ELEMENTS, "data", "row"))
                yield f"chain.steps.{i}", f"there is no type {name!r} of a step; {hint}"
    if kernel.chain is not None and 0 in (kernel.chain.kernels, kernel.chain.streams):
        yield "chain", "a chain needs a kernel and a tensor; write 1 or more"


def check_links(kernel: KernelFacts, known: Mapping[str, KernelFacts]) -> None:
    """Raise `Misfit` for a reference to a kernel that is missing, of another kind, or part of a
    cycle."""
    links = [(key, getattr(kernel, key, None)) for key in _LINKS]
    links += [("where", route.kernel) for route in getattr(kernel, "where", ())]
    for key, target in links:
        if target is None:
            continue
        peers = {n: each for n, each in known.items() if isinstance(each, type(kernel))}
        if target not in peers:
            hint = nearest(target, peers)
            raise Misfit(key, f"there is no kernel {target!r} of {kernel.operator}; {hint}")
    if isinstance(kernel, GemmFacts):
        quantisers = {n: each for n, each in known.items() if each.operator == "quantise"}
        if kernel.quantiser not in quantisers:
            hint = nearest(kernel.quantiser, quantisers)
            raise Misfit(
                "quantiser", f"there is no kernel {kernel.quantiser!r} of quantise; {hint}"
            )
    chain, target = [kernel.name], kernel.fallback
    while target is not None:
        if target in chain:
            way = ", ".join([*chain, target])
            raise Misfit(
                "fallback", f"fallbacks form a cycle ({way}); end it at a kernel that runs"
            )
        chain.append(target)
        target = known[target].fallback
