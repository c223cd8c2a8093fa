"""An update expanded into problems for tensors of given shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from perfmodel.algorithms import Matmul, Problem
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.expressions import evaluate
from perfmodel.arithmetic import ceil_div
from perfmodel.count import compulsory_bytes
from perfmodel.operators.registry import operator_of
from perfmodel.training.cutting import CHUNK, CHUNKS, ELEMENTS, Kernel, kernels
from perfmodel.training.parameter import Parameter
from perfmodel.training.update import Rule, Stage, Style, Types

CHUNK_ELEMENTS = 2048
"""Elements of one partial sum: four for each of a block's 512 threads, what they hold at once
(MultiTensorApply.cuh, kILP and kBlockSize)."""

cut_stage = lru_cache(maxsize=256)(kernels)


@dataclass(frozen=True)
class Work:
    """A kernel of an update that runs `repeat` times in a step."""

    name: str
    """Optimiser and steps."""
    problem: Problem
    """What one launch computes."""
    repeat: int
    """Launches in a step of training that has it."""
    share_of_steps: Fraction = Fraction(1)
    """Share of steps that have it: 1/f if it runs every f steps."""

    @property
    def schedule(self) -> str:
        """Its schedule: one kernel for all steps, or the library's for a product."""
        return "fused" if "fused" in operator_of(self.problem).schedules else "auto"

    @property
    def bytes(self) -> float:
        """Bytes that all launches of a step move, averaged over steps."""
        return float(compulsory_bytes(self.problem)) * self.repeat * float(self.share_of_steps)

    @property
    def flops(self) -> float:
        """Operations of matrix products a step, averaged over steps."""
        return float(self.problem.flops()) * self.repeat * float(self.share_of_steps)


_Launch = tuple[Any, Work]
"""Some work, after a key that is equal for work of equal time."""


@dataclass(frozen=True)
class Expansion:
    """The work of one rule for the tensors that it applies to."""

    rule: Rule
    """The update."""
    pieces: tuple[Parameter, ...]
    """The tensors, cut as the rule says."""
    types: Types
    """Their types."""
    style: Style
    """How kernels go through the tensors."""
    settings: Mapping[str, Any]
    """Names that expressions may use besides the sizes of a tensor."""

    def launches(self) -> Iterator[_Launch]:
        """All of its kernels, in order."""
        for stage in self.rule.work:
            if stage.gemm:
                yield from self._products(stage)
            elif stage.axes is None:
                yield from self._multi_tensor(stage)
            else:
                yield from self._single_tensor(stage)

    def _multi_tensor(self, stage: Stage) -> Iterator[_Launch]:
        """Kernels over the elements of all tensors, in as few launches as their arguments hold.

        Launches are of equal size, except the last one, which also has the remainder.
        """
        tensors = [(piece.elements, piece.count) for piece in self.pieces]
        total = sum(size * count for size, count in tensors)
        for kernel in cut_stage(self.rule, stage, self.types, self.style):
            if self.style.chunk is None:
                runs = tensors
            else:
                launches = self.style.launches(tensors, kernel.lists)
                part, rest = divmod(total, launches)
                runs = [(part, launches - 1), (part + rest, 1)] if rest else [(part, launches)]
            for elements, repeat in runs:
                if repeat:
                    extents = _extents(kernel, elements)
                    yield self._launch(kernel, extents, repeat, Fraction(1))

    def _single_tensor(self, stage: Stage) -> Iterator[_Launch]:
        """Kernels that each process one tensor, or a matrix made of it."""
        for values, repeat, share in self._tensors(stage):
            axes = {axis: evaluate(text, values) for axis, text in (stage.axes or {}).items()}
            for kernel in cut_stage(self.rule, stage, self.types, self.style):
                extents = {axis: axes[axis] for axis in kernel.declaration.parameters}
                yield self._launch(kernel, extents, repeat, share)

    def _products(self, stage: Stage) -> Iterator[_Launch]:
        """Matrix products of each tensor."""
        for values, repeat, share in self._tensors(stage):
            m, n, k = (evaluate(text, values) for text in stage.gemm)
            problem = Matmul(m, n, k, dtype=stage.type)
            yield (m, n, k, stage.type), Work(stage.name, problem, repeat, share)

    def _tensors(self, stage: Stage) -> Iterator[tuple[Mapping[str, Any], int, Fraction]]:
        """For each tensor and side: its sizes, runs of the stage over all equal ones, and share of
        steps."""
        for piece, side in product(self.pieces, stage.sides or (None,)):
            values = {**self.settings, **sizes(piece)}
            if side is not None:
                values["x"] = evaluate(side, values)
            repeat = evaluate(stage.repeat, values) * piece.count
            if repeat:
                yield values, repeat, Fraction(1, evaluate(stage.every, values))

    def _launch(
        self, kernel: Kernel, extents: Mapping[str, int], repeat: int, share: Fraction
    ) -> _Launch:
        problem = DeclaredProblem(kernel.declaration, extents, self.types.weights)
        work = (kernel.work, tuple(extents.values()))
        return work, Work(kernel.name, problem, repeat, share)


def sizes(piece: Parameter) -> dict[str, int]:
    """The names of a tensor's sizes in expressions."""
    m, n = piece.rows, piece.columns
    return {"m": m, "n": n, "p": piece.elements, "s": min(m, n), "l": max(m, n)}


def _extents(kernel: Kernel, elements: int) -> dict[str, int]:
    """Extents of a kernel's axes over `elements`.

    Chunks are of equal size, so the elements counted exceed `elements` by less than one a chunk.
    """
    chunks = ceil_div(elements, CHUNK_ELEMENTS)
    extents = {ELEMENTS: elements, CHUNKS: chunks, CHUNK: ceil_div(elements, chunks)}
    return {axis: extents[axis] for axis in kernel.declaration.parameters}


def together(owner: str, launches: Iterable[_Launch]) -> tuple[Work, ...]:
    """Launches of equal time as one `Work`, in the order of the first."""
    groups: dict[Any, list[Work]] = {}
    for key, work in launches:
        groups.setdefault((key, work.share_of_steps), []).append(work)
    return tuple(
        replace(
            group[0],
            name=f"{owner}: {', '.join(dict.fromkeys(each.name for each in group))}",
            repeat=sum(each.repeat for each in group),
        )
        for group in groups.values()
    )
