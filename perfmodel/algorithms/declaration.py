"""Algorithms of one's own: a short declaration, in YAML or as the same plain data in Python.

    name: matmul
    parameters: {m: 4096, n: 4096, k: 4096}
    axes: {m: m, n: n, k: k}
    tensors: {A: [m, k], B: [k, n], C: {axes: [m, n], element: output}}
    steps:
      multiply: {contraction: [A, B], to: C, over: k}
    outputs: C

A user sets the parameters; the extents of axes are expressions of them. A step has its kind with
its inputs, its outputs (`to`), and the axes that it sums over (`over`) or normalises (`along`).
Steps may be in any order. The whole declaration is checked before anything is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfmodel.algorithms.algorithm import Algorithm, Derivative, Step, Tensor
from perfmodel.algorithms.case import Case, Declaration, is_whole
from perfmodel.algorithms.declarationform import (
    KINDS,
    DeclarationForm,
    DerivativeForm,
    MaskForm,
    StepForm,
    TensorForm,
    keys,
    needed,
)
from perfmodel.algorithms.expressions import evaluate, resolve
from perfmodel.algorithms.plaindata import Place, PlainData, as_text
from perfmodel.algorithms.sizes import LARGEST
from perfmodel.elements import element
from perfmodel.errors import PerfmodelError
from perfmodel.plaintext import printable, quoted

__all__ = ["Case", "Declaration", "declare", "read"]

# Roles with default types: results of at least 16 bits, sums and statistics in fp32.
_ROLES = ("data", "output", "accumulator", "statistic")
_MOST = 100  # axes, parameters, tensors and steps, of each
_MOST_OPERATIONS = 1_000_000  # vector operations and special functions, each, of an element


def declare(**data: Any) -> Declaration:
    """The declaration in plain data, keys as in YAML. Raises `ProblemError` for errors in it."""
    return _Builder(PlainData.given("declaration", data)).build()


def read(path: str | Path) -> Declaration:
    """The declaration in a YAML file; raises `SpecError`, "file:line: message", in one line."""
    return _Builder(PlainData.of_file(path)).build()


class _Builder:
    """One pass over plain data."""

    def __init__(self, plain: PlainData) -> None:
        self._plain, self._data, self._fail = plain, plain.data, plain.fail

    def build(self) -> Declaration:
        self._plain.top("declaration", keys(DeclarationForm), needed(DeclarationForm))
        axes = self._table("axes")
        parameters = self._table("parameters")
        types = {str(role): str(name) for role, name in self._table("types").items()}
        parts = {
            name: self._tensor(name, entry, axes) for name, entry in self._table("tensors").items()
        }
        self._roles(parts, types)
        steps = [self._step(name, entry, parts) for name, entry in self._table("steps").items()]
        sequence = self._sequence(steps)
        outputs = self._plain.names(("outputs",), self._data["outputs"])
        self._check_outputs(outputs, steps, parts)
        mask = self._mask(axes)
        self._expressions(axes, parameters, mask)
        operator = self._operator()
        algorithm = Algorithm(str(self._data["name"]), tuple(axes), parts, sequence, outputs)
        about, source = (printable(str(self._data.get(k, ""))) for k in ("about", "source"))
        return Declaration(
            algorithm, about, source, parameters, axes, types, mask, operator,
            self._limits(parameters), self._recomputed(steps),
        )  # fmt: skip

    def _table(self, key: str) -> dict[str, Any]:
        return self._plain.table(key, _MOST)

    def _tensor(self, name: str, entry: Any, axes: Mapping[str, Any]) -> Tensor:
        path = ("tensors", name)
        table = entry if isinstance(entry, Mapping) else {"axes": entry}
        self._plain.keys(path, table, keys(TensorForm))
        names = self._plain.names(path, table.get("axes", ()))
        for axis in names:
            self._plain.declared(path, "axis", axis, axes)
        if len(set(names)) < len(names):
            self._fail(path, f"{name} names an axis twice: {', '.join(names)}")
        windows = []
        entries = table.get("windows", ())
        for item in entries if isinstance(entries, list | tuple) else (entries,):
            ends = tuple(item) if isinstance(item, list | tuple) else ()
            stride = ends[2] if len(ends) == 3 else 1
            fits = is_whole(stride) and 1 <= stride <= LARGEST
            if len(ends) not in (2, 3) or not fits or any(end not in names for end in ends[:2]):
                rule = f"a window is [axis, tap] or [axis, tap, stride], not {as_text(item)}"
                self._fail(path, rule)
            windows.append((ends[0], ends[1], int(stride)))
        constant = table.get("constant", False)
        if not isinstance(constant, bool):
            self._fail((*path, "constant"), f"constant is true or false, not {as_text(constant)}")
        role = str(table.get("element", "data"))
        return Tensor(name, names, role, tuple(windows), constant)

    def _roles(self, parts: Mapping[str, Tensor], types: Mapping[str, str]) -> None:
        for role, name in types.items():
            try:
                name == "data" or element(name)
            except PerfmodelError as error:
                self._fail(("types", role), str(error))
        for part in parts.values():
            if part.element not in types and part.element not in _ROLES:
                roles = ", ".join(dict.fromkeys((*_ROLES, *types)))
                self._fail(
                    ("tensors", part.name),
                    f"{part.name} has the element role {part.element!r} without a type; add it to "
                    f"types, or use one of {roles}",
                )

    def _step(self, name: str, entry: Any, parts: Mapping[str, Tensor]) -> Step:
        path = ("steps", name)
        if not isinstance(entry, Mapping):
            self._fail(path, "a step is a mapping such as {contraction: [A, B], to: C, over: k}")
        self._plain.keys(path, entry, keys(StepForm))
        kinds = [kind for kind in KINDS if kind in entry]
        if len(kinds) != 1:
            self._fail(
                path, f"step {name} has one kind, of {', '.join(KINDS)}; it has {len(kinds)}"
            )
        if "to" not in entry:
            self._fail(path, f"step {name} does not say what it makes; add to: NAME")
        kind = kinds[0]
        inputs, outputs = self._plain.names(path, entry[kind]), self._plain.names(path, entry["to"])
        for tensor in (*inputs, *outputs, *self._plain.names(path, entry.get("late", ()))):
            self._plain.declared(path, "tensor", tensor, parts)
        reduces = self._plain.names(path, entry.get("over", ()))
        axis = entry.get("along")
        if axis is not None and not isinstance(axis, str):
            self._fail((*path, "along"), f"along names one axis, not {as_text(axis)}")
        step = Step(
            name, kind, inputs, outputs, reduces, axis,  # type: ignore[arg-type]
            self._plain.names(path, entry.get("late", ())),
            *self._operations(path, entry), self._derivative(path, entry, (*inputs, *outputs)),
        )  # fmt: skip
        self._check_axes(path, step, parts)
        return step

    def _operations(self, path: Place, entry: Mapping[str, Any]) -> tuple[float, float]:
        """Vector operations and special functions an element."""
        numbers = [entry.get(key, 0) for key in ("vector", "special")]
        for key, value in zip(("vector", "special"), numbers, strict=True):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value <= _MOST_OPERATIONS:
                rule = f"{key} is operations per element, up to {_MOST_OPERATIONS:,}"
                self._fail((*path, key), f"{rule}, not {as_text(value)}")
        return float(numbers[0]), float(numbers[1])

    def _derivative(
        self, path: Place, entry: Mapping[str, Any], operands: Sequence[str]
    ) -> Derivative | None:
        """What a step's gradient takes, where it says so."""
        if "derivative" not in entry:
            return None
        path, table = (*path, "derivative"), entry["derivative"]
        if not isinstance(table, Mapping):
            self._fail(path, "a derivative is a mapping such as {reads: [X], vector: 2}")
        self._plain.keys(path, table, keys(DerivativeForm))
        place, known = (*path, "reads"), dict.fromkeys(operands)
        reads = self._plain.names(place, table.get("reads", ()))
        for name in reads:
            self._plain.declared(place, "tensor of the step", name, known)
        return Derivative(reads, *self._operations(path, table))

    def _limits(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Comparisons of parameters, which the defaults must satisfy."""
        limits = self._plain.names(("limits",), self._data.get("limits", ()))
        values = resolve(parameters, "parameters")
        for limit in limits:
            self._check_value(("limits",), limit, values)
            if evaluate(limit, values) is not True:
                rule = f"{quoted(limit)} is no comparison that holds for the defaults"
                self._fail(("limits",), f"{rule}; write one such as top_k <= experts")
        return limits

    def _recomputed(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """Tensors that the backward pass makes again: results of steps."""
        tensors = self._plain.names(("recompute",), self._data.get("recompute", ()))
        results = {name: None for step in steps for name in step.outputs}
        for name in tensors:
            self._plain.declared(("recompute",), "result of a step", name, results)
        return tensors

    def _check_axes(self, path: Place, step: Step, parts: Mapping[str, Tensor]) -> None:
        """Axes that a step reads, sums, normalises and writes must agree."""
        name = step.name
        axes = dict.fromkeys(axis for n in step.inputs for axis in parts[n].axes)
        for axis in (*step.reduces, *((step.along,) if step.along else ())):
            if axis not in axes:
                verb = "normalises along" if axis == step.along else "sums over"
                names = ", ".join(axes)
                self._fail(
                    path, f"step {name} {verb} {axis!r}, which no input has; they have {names}"
                )
        if (step.kind == "normalisation") != (step.along is not None):
            self._fail(path, f"step {name}: along goes with a normalisation, and only with one")
        if step.kind == "contraction" and (len(step.inputs) != 2 or len(step.outputs) != 1):
            self._fail(path, f"step {name}: a contraction reads two tensors and makes one")
        for output in step.outputs:
            out = set(parts[output].axes)
            if extra := sorted(out - axes.keys()):
                self._fail(
                    path, f"step {name}: {output} has the axis {extra[0]!r}, which no input has"
                )
            if clash := sorted(out & set(step.reduces)):
                self._fail(path, f"step {name} sums over {clash[0]!r}, but {output} keeps it")
            gaps = [a for a in axes if a not in out and a not in step.reduces and a != step.along]
            if gaps:
                self._fail(path, f"step {name}: {output} loses {gaps[0]!r}; add over: {gaps[0]}")

    def _sequence(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Steps in an order in which every tensor is made before it is read."""
        maker: dict[str, str] = {}
        for step in steps:
            for name in step.outputs:
                if name in maker:
                    path = ("steps", step.name)
                    self._fail(path, f"{name} is made twice, by {maker[name]} and {step.name}")
                maker[name] = step.name
        queue, sequence = list(steps), list[Step]()
        while queue:
            outputs = {name for step in sequence for name in step.outputs}
            candidates = (s for s in queue if all(n in outputs or n not in maker for n in s.inputs))
            head = next(candidates, None)
            if head is None:
                ring = " → ".join(_ring(queue, maker))
                self._fail(("steps", queue[0].name), f"steps form a cycle: {ring}")
            sequence.append(head)
            queue.remove(head)
        return tuple(sequence)

    def _check_outputs(
        self, outputs: Sequence[str], steps: Sequence[Step], parts: Mapping[str, Tensor]
    ) -> None:
        makers = {name: step for step in steps for name in step.outputs}
        operands = {name for step in steps for name in (*step.inputs, *step.outputs)}
        for name in outputs:
            self._plain.declared(("outputs",), "tensor", name, parts)
            if name not in makers:
                self._fail(("outputs",), f"no step makes the output {name!r}")
        for name in parts:
            if name not in operands:
                self._fail(("tensors", name), f"no step uses the tensor {name!r}")
        inputs = {name for step in steps for name in step.inputs}
        for name, step in makers.items():
            if name not in inputs and name not in outputs:
                self._fail(("steps", step.name), f"{name} is neither read nor an output")

    def _mask(self, axes: Mapping[str, Any]) -> dict[str, Any] | None:
        mask = self._table("mask")
        if not mask:
            return None
        self._plain.keys(("mask",), mask, keys(MaskForm))
        for end in ("query", "key"):
            if end not in mask:
                self._fail(("mask",), f"a mask names its query and its key axis; {end} is missing")
            self._plain.declared(("mask", end), "axis", str(mask[end]), axes)
        return mask

    def _operator(self) -> dict[str, Any] | None:
        """The built-in operator that computes the same, with sizes as expressions of the
        parameters."""
        operator = self._table("operator")
        if not operator:
            return None
        if not isinstance(operator.get("name"), str):
            self._fail(("operator",), "an operator has a name, such as {name: gemm, m: m, n: n}")
        return operator

    def _expressions(
        self,
        axes: Mapping[str, Any],
        parameters: Mapping[str, Any],
        mask: Mapping[str, Any] | None,
    ) -> None:
        """Every expression must use known parameters (a mask's also axes) and give a number."""
        try:
            values = resolve(parameters, "parameters")
        except PerfmodelError as error:
            self._fail(("parameters",), str(error))
        for axis, entry in axes.items():
            self._check_value(("axes", axis), entry, values)
        for field, entry in self._table("operator").items():
            if field != "name":
                self._check_value(("operator", field), entry, values)
        for key, entry in (mask or {}).items():
            if key not in ("query", "key"):
                sizes = {axis: evaluate(text, values) for axis, text in axes.items()}
                self._check_value(("mask", key), entry, {**values, **sizes})

    def _check_value(self, path: Place, entry: Any, values: Mapping[str, Any]) -> None:
        try:
            evaluate(entry, values)
        except PerfmodelError as error:
            self._fail(path, str(error))


def _ring(steps: Sequence[Step], maker: Mapping[str, str]) -> list[str]:
    """Names of steps that form a cycle, the first again at the end."""
    sources = {s.name: [maker[n] for n in s.inputs if n in maker] for s in steps}
    path = [steps[0].name]
    while True:
        step = next(name for name in sources[path[-1]] if name in sources)
        if step in path:
            return [*path[path.index(step) :], step][::-1]
        path.append(step)
