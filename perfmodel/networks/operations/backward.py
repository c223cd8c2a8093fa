"""An operation's backward pass from its forward kernels, by one rule a kind of kernel.

    product            dA = dC·Bᵀ and dB = Aᵀ·dC, two kernels
    another operator   its own backward problem: attention, norms, softmax, declared algorithms
    map                what autograd launches for it, an operand at a time

Kernels are gone through from the last to the first, as the steps of an algorithm are
(`perfmodel.algorithms.gradient`). Gradients that meet at one tensor are added by kernels of their
own. What a library launches otherwise is said by the operation that it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.algorithms import Matmul, Problem, Rowwise
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.algorithms.rowwise import VARIANTS
from perfmodel.graph import Edge, Node
from perfmodel.networks.recorder import Operands, Recorder
from perfmodel.networks.value import Value, gradient_of

_PASSED = ("add", "sub", "add_scalar", "quantise")
"""Maps that pass their gradient on; quantisation does by convention (straight-through)."""
_MIRRORED = ("", "copy", "neg", "mul_scalar", "div_scalar", "where", "rotary")
"""Linear maps of one operand: the same kernel the other way. Rotary turns by the opposite angle."""
_LINEAR = {"dA": "dgrad", "dB": "wgrad"}
"""Names of the gradients of a product with a weight."""
_RESULT = {"tanh": "mul", "sigmoid": "mul", "relu": "where"}
"""Maps whose derivative is made of their result, and the kernel that applies it."""


@dataclass
class Backward:
    """The gradients of one operation's tensors, as kernels are recorded."""

    mark: str
    """The operation: its gradients are `of` it."""
    forward: Recorder
    """Its forward pass."""
    to: Recorder
    """What is recorded into."""
    wanted: Collection[str]
    """Tensors that gradients are wanted of: inputs, weights."""
    weights: Collection[str]
    """Names of parameters."""
    statistics: Mapping[str, Value]
    """What the forward pass saved of rows, by operand."""

    def __post_init__(self) -> None:
        self._parts: dict[str, list[Value]] = defaultdict(list)
        self._live = {*self.wanted}
        for node in self.forward.nodes:
            if any(name in self._live for edge in node.reads for name in edge.tensors):
                self._live |= {name for edge in node.writes for name in edge.tensors}

    def run(self, gradients: Mapping[str, Value]) -> None:
        """Record the backward pass, from the gradients of the outputs."""
        for name, gradient in gradients.items():
            self._parts[name].append(gradient)
        forward = self.forward
        for node, kind, name in reversed(
            [*zip(forward.nodes, forward.kinds, forward.rules, strict=True)]
        ):
            results = {
                edge.operand: totals
                for edge in node.writes
                if (totals := tuple(x for t in edge.tensors if (x := self.total(t)) is not None))
            }
            if not results or not any(t in self._live for e in node.reads for t in e.tensors):
                continue
            problem = node.problem
            if isinstance(problem, Rowwise) and problem.op == "pointwise":
                self._map(node, kind, problem, problem.variant or name, results["Y"])
            else:
                self._operator(node, kind, name, results)

    def total(self, name: str) -> Value | None:
        """The gradient of a tensor, its parts added; None where it has none."""
        parts = self._parts[name]
        while len(parts) > 1:
            first, second, *rest = parts
            total = replace(first, name=f"{first.name} + {len(self.to.nodes)}")
            problem = Rowwise("pointwise", first.rows, first.cols, first.dtype, inputs=2)
            label = f"sum {len(self.to.nodes)} of d({name})"
            self.to.run(label, "pointwise", problem, {"X": (first, second)}, {"Y": total})
            parts[:] = [total, *rest]
        return parts[0] if parts else None

    def _values(self, edge: Edge) -> tuple[Value, ...]:
        tensors = (self.forward.tensors[name] for name in edge.tensors)
        return tuple(Value(t.name, t.shape[0], t.shape[1], t.dtype) for t in tensors)

    def _gradient(self, value: Value) -> Value:
        """A contribution to the gradient of a tensor, which a kernel is about to write."""
        if value.name in self.weights:
            return replace(value, name=f"d({value.name})")
        parts = self._parts[value.name]
        mark = f"{self.mark} {len(parts) + 1}" if parts else self.mark
        gradient = gradient_of(value, mark)
        parts.append(gradient)
        return gradient

    def _operator(
        self, node: Node, kind: str, stored: str, results: dict[str, tuple[Value, ...]]
    ) -> None:
        """The operator's own backward kernels: a row-wise one of its gradient's type, a product
        after the cast of the gradient if its operands are of another one."""
        problem, dtype = node.problem, ""
        values = {edge.operand: self._values(edge) for edge in node.edges}
        if isinstance(problem, Rowwise):
            problem = replace(problem, dtype=results["Y"][0].dtype, output_dtype=None)
        elif isinstance(problem, Matmul):
            dtype = matmul_format(problem.dtype).output
            form, dy = values["A"][0].dtype, results["C"]
            results["C"] = tuple(
                x if x.dtype == form else self._cast(x, form, f"{node.name}.cast {i}")
                for i, x in enumerate(dy)
            )
        saved = {name: (value,) for name, value in self.statistics.items()}
        known = {**saved, **values, **{f"d{name}": totals for name, totals in results.items()}}
        kernels = problem.backward(stored=stored or "kn")
        for kernel in kernels:
            outputs = dict(zip(kernel.problem.algorithm().outputs, kernel.makes, strict=True))
            if not any(x.name in self._live for name in kernel.makes for x in values[name]):
                continue
            part = "gradient" if len(kernels) == 1 else f"d{kernel.makes[0]}"
            if part in _LINEAR and values["B"][0].name in self.weights:
                part = _LINEAR[part]
            reads = {n: known[of] for n, of in kernel.operands.items() if n not in outputs}
            writes = {
                name: tuple(self._gradient(replace(x, dtype=dtype or x.dtype)) for x in values[of])
                for name, of in outputs.items()
            }
            task = kernel.problem
            if isinstance(task, Matmul):
                task = replace(task, gradient=False)  # within a pass it has no call of its own
            casts: Sequence[Value] = ()
            if isinstance(task, Rowwise) and writes["dX"][0].dtype != task.dtype:
                casts = writes["dX"]
                wide = (replace(x, name=f"wide {x.name}", dtype=task.dtype) for x in casts)
                writes["dX"] = tuple(wide)
            self._record(f"{node.name}.{part}", kind, task, reads, writes, node)
            for x, y in zip(writes["dX"] if casts else (), casts, strict=True):
                self._cast(x, y.dtype, f"{node.name}.narrow", y)

    def _map(
        self, node: Node, kind: str, problem: Rowwise, name: str, results: tuple[Value, ...]
    ) -> None:
        """What autograd launches for a map."""
        values = {edge.operand: self._values(edge) for edge in node.edges}
        xs = values["X"]
        passed = xs[1:] if name == "dropout" else xs if name in _PASSED else ()
        xs = tuple(x for x in xs if x not in passed)
        for x in passed:
            self._parts[x.name] += results

        def run(
            variant: str, reads: Sequence[Value], writes: Sequence[Value], part: str = "",
            **fields: Any,
        ) -> None:  # fmt: skip
            dtype, output = reads[0].dtype, writes[0].dtype
            sizes = {"inputs": len(reads), "outputs": len(writes), **fields}
            task = Rowwise(
                "pointwise", problem.rows, problem.cols, dtype,
                variant if variant in VARIANTS else "",
                output_dtype=output if output != dtype else None, **sizes,
            )  # fmt: skip
            operands = {"X": tuple(reads)} | ({"U": values["W"]} if "also_inputs" in fields else {})
            label = f"{node.name}.gradient{part}"
            self._record(label, kind, task, operands, {"Y": tuple(writes)}, node)

        if name in _MIRRORED:
            outputs = [self._gradient(x) for x in xs]
            run(name, results, outputs, inputs=problem.outputs, outputs=problem.inputs)
        elif name == "dropout":
            gradient, also = self._gradient(xs[0]), problem.also_dtype
            run("", results, [gradient], also_inputs=1, also_dtype=also)
        elif name == "mul":
            for i, x in enumerate(xs):
                others = [y for y in xs if y != x]
                run(name, [*results, *others], [self._gradient(x)], f" {i + 1}")
        elif name in _RESULT:
            run(_RESULT[name], [*results, *values["Y"]], [self._gradient(xs[0])])
        elif name == "pow_scalar":
            power, scaled = (replace(xs[0], name=f"{node.name}.derivative {i}") for i in "12")
            run(name, xs, [power], " 1")
            run("mul_scalar", [power], [scaled], " 2")
            run("mul", [*results, scaled], [self._gradient(xs[0])], " 3")
        elif xs:
            run(f"{name}_gradient", [*results, *xs], [self._gradient(x) for x in xs])

    def _cast(self, x: Value, dtype: str, name: str, result: Value | None = None) -> Value:
        """A value in another type, by a kernel of its own."""
        y = result or replace(x, name=f"{name} of {x.name}", dtype=dtype)
        problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, output_dtype=dtype)
        self.to.run(name, "pointwise", problem, {"X": x}, {"Y": y})
        return y

    def _record(
        self, name: str, kind: str, problem: Problem, reads: Operands, writes: Operands, like: Node
    ) -> None:
        """A kernel as the forward kernel `like` is: its library, its runs, operands in part."""
        parts = {edge.operand: edge.part for edge in like.edges}
        if isinstance(problem, Rowwise) and problem.op == "pointwise":
            parts = {"X": parts["Y"], "Y": parts["X"]}
        else:
            parts |= {f"d{operand}": part for operand, part in parts.items()}
        rest = all(parts.values())
        for values in reads.values():
            for x in values if isinstance(values, tuple) else (values,):
                if x.name in self.weights and x.name not in self.to.written:
                    self.to.weights[x.name] = None
        self.to.run(
            name, kind, problem, reads, writes, repeat=like.repeat,
            implementation=like.implementation,
            part=[operand for operand in (*reads, *writes) if parts.get(operand, rest)],
        )  # fmt: skip
