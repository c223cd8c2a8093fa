"""An update expanded into problems for tensors of given shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from perfmodel.algorithms import Matmul, Problem
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.expressions import evaluate
from perfmodel.arithmetic import ceil_div
from perfmodel.count import compulsory_bytes
from perfmodel.elements import element
from perfmodel.operators.registry import operator_of
from perfmodel.training.cutting import CHUNK, CHUNKS, ELEMENTS, Kernel, kernels
from perfmodel.training.launching import Style
from perfmodel.training.parameter import Parameter
from perfmodel.training.update import COPY, GRADIENTS, WEIGHTS, Rule, Stage, Types, place

CHUNK_ELEMENTS = 2048
"""Elements that leave one part of a sum: four for each of a block's 512 threads, what they hold at
once (MultiTensorApply.cuh, kILP and kBlockSize)."""

cut_stage = lru_cache(maxsize=256)(kernels)


@dataclass(frozen=True)
class Work:
    """A kernel of an update that runs `repeat` times in a step."""

    name: str
    """Optimiser and steps."""
    problem: Problem
    """What one launch computes."""
    repeat: int
    """Launches in a step that has it."""
    share_of_steps: Fraction = Fraction(1)
    """In how many of the steps it is done: 1/f where it is every f steps."""

    @property
    def schedule(self) -> str:
        """How it is timed: all of a kernel's steps in one, a product as its library does."""
        return "fused" if "fused" in operator_of(self.problem).schedules else "auto"

    @property
    def bytes(self) -> float:
        """Bytes that all launches of a step move, on the average over steps."""
        return float(compulsory_bytes(self.problem)) * self.repeat * float(self.share_of_steps)

    @property
    def flops(self) -> float:
        """Operations of matrix products, likewise."""
        return float(self.problem.flops()) * self.repeat * float(self.share_of_steps)


@dataclass(frozen=True)
class _Launch:
    """A `Work`, with what tells whether two take equal time."""

    name: str
    problem: Problem
    repeat: int
    share: Fraction
    work: Any


@dataclass(frozen=True)
class Expansion:
    """One rule's work for the tensors that it takes."""

    rule: Rule
    """The update."""
    pieces: tuple[Parameter, ...]
    """The tensors, cut where the rule cuts them."""
    types: Types
    """In which types they lie."""
    style: Style
    """How kernels go through them."""
    settings: Mapping[str, Any]
    """What expressions may name beside the sizes of a tensor."""

    def launches(self) -> Iterator[_Launch]:
        """All of its kernels, in order."""
        for stage in self.rule.work:
            if stage.gemm:
                yield from self._products(stage)
            elif stage.axes is None:
                yield from self._over_all(stage)
            else:
                yield from self._by_tensor(stage)

    def transient_bytes(self) -> float:
        """Bytes of temporaries between the kernels of steps over all tensors, at the most.

        A kernel of many tensors leaves those of all of them; one of a single tensor its own.
        """
        sizes = [piece.elements for piece in self.pieces]
        total = sum(piece.elements * piece.count for piece in self.pieces)
        elements = max(sizes) if self.style.chunk is None else total
        stages = (stage for stage in self.rule.work if stage.steps and stage.axes is None)
        return elements * max((self._live_bytes(stage) for stage in stages), default=0.0)

    def _live_bytes(self, stage: Stage) -> float:
        """Bytes an element of what one kernel leaves for another, at the most."""
        held = {WEIGHTS, GRADIENTS, COPY, *(state.name for state in self.rule.states)}
        cut = cut_stage(self.rule, stage, self.types, self.style)
        life: dict[str, tuple[int, int]] = {}
        for i, kernel in enumerate(cut):
            algorithm = kernel.declaration.algorithm
            for name in (*algorithm.inputs, *algorithm.outputs):
                axes = set(algorithm.tensors[name].axes)
                if place(name) not in held and axes == set(algorithm.axes):
                    made, _ = life.get(place(name), (i, i))
                    life[place(name)] = (made, i)
        return max(
            sum(
                element(self.rule.type_of(name, self.types)).bytes
                for name, (made, last) in life.items()
                if made <= i <= last
            )
            for i in range(len(cut))
        )

    def _over_all(self, stage: Stage) -> Iterator[_Launch]:
        """Kernels that go through the elements of all tensors, in as few launches as they hold.

        Launches are of equal size, but for the last, which also has what is left.
        """
        tensors = [(piece.elements, piece.count) for piece in self.pieces]
        total = sum(size * count for size, count in tensors)
        for kernel in cut_stage(self.rule, stage, self.types, self.style):
            if self.style.chunk is None:
                runs = tensors
            else:
                launches = self.style.launches(tensors, kernel.lists)
                each, rest = divmod(total, launches)
                runs = [(each, launches - 1), (each + rest, 1)] if rest else [(each, launches)]
            for elements, repeat in runs:
                if repeat:
                    extents = _extents(kernel, elements)
                    yield self._launch(kernel, extents, repeat, Fraction(1))

    def _by_tensor(self, stage: Stage) -> Iterator[_Launch]:
        """Kernels that each go through one tensor, or through a matrix made of it."""
        for values, repeat, share in self._tensors(stage):
            axes = {axis: evaluate(text, values) for axis, text in (stage.axes or {}).items()}
            for kernel in cut_stage(self.rule, stage, self.types, self.style):
                extents = {axis: axes[axis] for axis in kernel.declaration.parameters}
                yield self._launch(kernel, extents, repeat, share)

    def _products(self, stage: Stage) -> Iterator[_Launch]:
        """Matrix products of each tensor."""
        for values, repeat, share in self._tensors(stage):
            m, n, k = (evaluate(text, values) for text in stage.gemm)
            problem = Matmul(m, n, k, dtype=stage.dtype)
            yield _Launch(stage.name, problem, repeat, share, (m, n, k, stage.dtype))

    def _tensors(self, stage: Stage) -> Iterator[tuple[Mapping[str, Any], int, Fraction]]:
        """Sizes of each tensor and side, runs of the stage for all like it, and in which steps."""
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
        return _Launch(kernel.name, problem, repeat, share, work)


def sizes(piece: Parameter) -> dict[str, int]:
    """What expressions of a tensor's sizes may name."""
    m, n = piece.rows, piece.columns
    return {"m": m, "n": n, "p": piece.elements, "s": min(m, n), "l": max(m, n)}


def _extents(kernel: Kernel, elements: int) -> dict[str, int]:
    """Extents of a kernel's axes over so many elements.

    Chunks are of equal size, so that fewer elements than there are chunks are counted too many.
    """
    chunks = ceil_div(elements, CHUNK_ELEMENTS)
    known = {ELEMENTS: elements, CHUNKS: chunks, CHUNK: ceil_div(elements, chunks)}
    return {axis: known[axis] for axis in kernel.declaration.parameters}


def together(owner: str, launches: Iterator[_Launch]) -> tuple[Work, ...]:
    """Launches of equal time as one `Work`, in the order of the first."""
    found: dict[Any, list[_Launch]] = {}
    for each in launches:
        found.setdefault((each.work, each.share), []).append(each)
    return tuple(
        Work(f"{owner}: {_names(alike)}", alike[0].problem, sum(e.repeat for e in alike), share)
        for (_, share), alike in found.items()
    )


def _names(launches: Sequence[_Launch]) -> str:
    """The names of launches, each once."""
    return ", ".join(dict.fromkeys(each.name for each in launches))
