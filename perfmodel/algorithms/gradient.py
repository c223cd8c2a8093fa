"""The backward pass of any algorithm, by one rule a kind of step.

    contraction     C = Σ A·B         dA = Σ dC·B and dB = Σ A·dC, each over the axes that it lacks
    map             Y = f(X, ...)     dX is a map of dY and of what the derivative reads
    normalisation   Y of X, along c   dX is a normalisation of dY along the same axis
    reduction       y = Σ X           dX is a map that broadcasts dy; a sum's reads nothing else

An operand that lacks an axis of its step was broadcast along it, so its gradient is summed over
it: so are the weights of a norm. Gradients that meet at one tensor are added. Steps run from the
last to the first (reverse accumulation: Griewank and Walther, Evaluating Derivatives, section 3.2).

What a step's derivative reads and costs is the step's own declaration (`Step.derivative`); without
one it reads the step's inputs, of a normalisation also its result, and takes twice the vector
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from perfmodel.algorithms.algorithm import Algorithm, Derivative, Step, StepKind
from perfmodel.errors import ProblemError

SCALE_VECTOR = 2.0
"""Vector operations an element of a scale's gradient: a product and a sum."""
SAME = ("statistic", "accumulator")
"""Roles whose gradients have their own type; all others have the role `gradient`."""


def gradient(
    algorithm: Algorithm,
    *,
    recompute: Collection[str] = (),
    role: Callable[[str], str] = lambda name: name if name in SAME else "gradient",
) -> Algorithm:
    """The algorithm that makes the gradients of all inputs from those of the outputs, `d` before
    each name.

    It reads the forward pass's tensors that derivatives need; those in `recompute` are made again
    from what they are made of, instead of being read from memory. `role` gives a gradient's element
    role from its tensor's. Raises `ProblemError` where no input has a gradient.
    """
    back = _Backward(algorithm, role)
    for step in reversed(algorithm.steps):
        back.through(step)
    totals = [back.total(name) for name in algorithm.inputs]
    makers = {name for step in back.steps for name in step.outputs}
    outputs = tuple(dict.fromkeys(name for name in totals if name in makers))
    if not outputs:
        raise ProblemError(f"{algorithm.name} has no gradient; leave the direction at fwd")
    steps = (*_again(algorithm, recompute, back.steps), *back.steps)
    used = {name for step in steps for name in (*step.inputs, *step.outputs)}
    parts = {name: part for name, part in back.tensors.items() if name in used}
    name = f"{algorithm.name}-backward"
    return Algorithm(name, algorithm.axes, parts, tuple(steps), outputs, algorithm.mask)


class _Backward:
    """Gradient steps as they come, and the parts of each tensor's gradient."""

    def __init__(self, algorithm: Algorithm, role: Callable[[str], str]) -> None:
        self.algorithm, self.role = algorithm, role
        self.tensors = dict(algorithm.tensors)
        self.steps: list[Step] = []
        self.makers = {name for step in algorithm.steps for name in step.outputs}
        readers = [x for step in algorithm.steps for x in dict.fromkeys(step.inputs)]
        self.many = {name for name in readers if readers.count(name) > 1}
        self.parts: dict[str, list[str]] = {}
        for name in algorithm.outputs:
            if not algorithm.tensors[name].constant:
                self.many |= {name} & {*readers}  # an output that a step reads too
                self._add(name, f"d{name} given" if name in self.many else f"d{name}")

    def _add(self, name: str, gradient: str) -> str:
        part = self.algorithm.tensors[name]
        self.tensors[gradient] = replace(part, name=gradient, element=self.role(part.element))
        self.parts.setdefault(name, []).append(gradient)
        return gradient

    def total(self, name: str) -> str | None:
        """The gradient of a tensor, its parts added; None where it has none."""
        parts = self.parts.get(name)
        if parts is None or len(parts) == 1:
            return parts[0] if parts else None
        self.parts[name] = []
        total = self._add(name, f"d{name}")
        work = float(len(parts) - 1)
        self.steps.append(Step(f"sum d{name}", "map", tuple(parts), (total,), vector=work))
        return total

    def through(self, step: Step) -> None:
        """The gradients of a step's inputs."""
        results = tuple(total for name in step.outputs if (total := self.total(name)) is not None)
        axes = self.algorithm.step_axes(step)
        groups: dict[tuple[str, ...], list[str]] = {}
        # The gradient that an earlier step waits for comes last: it is still in the caches.
        for name in sorted(dict.fromkeys(step.inputs), key=lambda name: name in self.makers):
            part = self.algorithm.tensors[name]
            if results and not part.constant:
                lost = tuple(axis for axis in axes if axis not in part.axes)
                if step.kind == "contraction":
                    self._product(step, name, lost, results)
                else:
                    groups.setdefault(lost, []).append(name)
        for lost, names in sorted(groups.items(), key=lambda item: len(item[0])):
            self._map(step, names, lost, results)

    def _outputs(self, step: Step, names: Sequence[str]) -> tuple[str, ...]:
        """The gradients of some inputs of a step."""
        marks = {name: f" of {step.name}" if name in self.many else "" for name in names}
        return tuple(self._add(name, f"d{name}{mark}") for name, mark in marks.items())

    def _product(
        self, step: Step, name: str, lost: tuple[str, ...], results: tuple[str, ...]
    ) -> None:
        """The product that makes the gradient of an operand."""
        others = tuple(x for x in step.inputs if x != name) or (name,)
        outputs = self._outputs(step, (name,))
        mark = f"d{name} of {step.name}"
        self.steps.append(Step(mark, "contraction", (*results, *others), outputs, lost))

    def _map(
        self, step: Step, names: Sequence[str], lost: tuple[str, ...], results: tuple[str, ...]
    ) -> None:
        """The step that makes the gradients of the inputs `names`, which lack the axes `lost`."""
        derivative = step.derivative or _usual(step)
        reads, vector, special = derivative.reads, derivative.vector, derivative.special
        norm = step.kind == "normalisation"
        sums = step.kind == "map" and not (reads or vector or special or lost)
        if sums and len(results) == 1:  # it passes its gradient on
            for name in names:
                self.parts.setdefault(name, []).extend(results)
            return
        if norm and lost:  # a scale's gradient does not depend on the scale, nor on other columns
            reads = tuple(name for name in reads if name not in step.late)
            vector, special = SCALE_VECTOR, 0.0
        kind: StepKind = "reduction" if lost else "normalisation" if norm else "map"
        along = None if lost else step.along
        mark = f"d{' d'.join(names)} of {step.name}"
        reads = tuple(dict.fromkeys((*results, *reads)))
        outputs = self._outputs(step, names)
        self.steps.append(
            Step(mark, kind, reads, outputs, lost, along, vector=vector, special=special)
        )


def _usual(step: Step) -> Derivative:
    """What a derivative reads and costs where its step does not say."""
    if step.kind == "normalisation":
        return Derivative((*step.outputs, *step.late), 2.0 * step.vector)
    return Derivative(step.inputs, 2.0 * step.vector, step.special)


def _again(algorithm: Algorithm, recompute: Collection[str], steps: list[Step]) -> Iterator[Step]:
    """The forward steps that make the tensors in `recompute` again, as far as `steps` need them."""
    needs = {name for step in steps for name in step.inputs}
    again: list[Step] = []
    for step in reversed(algorithm.steps):
        if needs & {*step.outputs} & {*recompute}:
            again.append(step)
            needs |= {*step.inputs}
    return reversed(again)
