"""The output of a product with an adapter beside it: Y = X·W + s·X·A·B, or DoRA's rescaled sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Operation
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value, Weight, gradient_of


@dataclass(frozen=True)
class Adapted(Operation):
    """The sum of the base's outputs and the adapter's.

    Each is scaled and added by kernels of their own (PEFT, lora/layer.py), by one where maps share
    a kernel, or in the epilogue of the adapter's product, which then reads the base's output too
    (Unsloth, kernels/utils.py: addmm_).
    """

    bases: tuple[Value, ...]
    """Outputs of the frozen product."""
    deltas: tuple[Value, ...]
    """Outputs of the adapter."""
    makes: tuple[Value, ...]
    """The sums."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Outputs of the frozen product, then of the adapter."""
        return (*self.bases, *self.deltas)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The sums."""
        return self.makes

    def forward(self, to: Recorder) -> None:
        """Scale and sum."""
        stack = self.setting.stack
        for base, delta, y in zip(self.bases, self.deltas, self.makes, strict=True):
            if stack.fused_adapters:
                read = Rowwise("pointwise", y.rows, y.cols, y.dtype, outputs=0)
                part = ("X", "Y")  # the product has written the sum
                to.run(
                    f"{y.name} sum", "pointwise", read, {"X": (base, delta)}, {"Y": y}, part=part,
                    rule="add",
                )  # fmt: skip
                continue
            term = delta if stack.joins_maps else renamed(delta, "scaled")
            if term != delta:
                scale = (Pass("mul_scalar"),)
                chain(to, f"{y.name} scale", "pointwise", scale, (delta,), (term,))
            add = (Pass("add", reads=2),)
            chain(to, f"{y.name} sum", "pointwise", add, (base, term), (y,))


@dataclass(frozen=True)
class Magnitude(Operation):
    """DoRA (2402.09353, section 4): Y = (m / |W + s·A·B|)·(X·W + s·X·A·B), a trained m and a norm
    a column. The norm has no gradient (section 4.3), so its kernels run forward alone."""

    base: Value
    """Output of the frozen product."""
    delta: Value
    """Output of the adapter."""
    makes: Value
    """The result."""
    width: int
    """Columns of X."""
    rank: int
    """Rank of the adapter."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Outputs of the frozen product and of the adapter."""
        return (self.base, self.delta)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The result."""
        return (self.makes,)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """m, a number a column."""
        return (Weight(f"{self.name}.magnitude", (self.base.cols,), "vector"),)

    def forward(self, to: Recorder) -> None:
        """A·B, its sum with W, the norm of each column, and the rescaled sum."""
        out, dtype, joined = self.base.cols, self.base.dtype, self.setting.stack.joins_maps
        update = Value(f"{self.name}.update", out, self.width, dtype)
        weight = Value(f"{self.name}.base weight", out, self.width, dtype)
        factors = (Value(f"{self.name}.{part}", rows, cols, dtype) for part, rows, cols in
                   (("B", out, self.rank), ("A", self.rank, self.width)))  # fmt: skip
        to.weights[weight.name] = None
        product = Matmul(out, self.width, self.rank, 1, self.setting.data)
        a, b = factors
        to.run(f"{self.name}.update", "matmul", product, {"A": a, "B": b}, {"C": update})
        direction = Value(f"{self.name}.direction", out, self.width, dtype)
        if not joined:
            scale = (Pass("mul_scalar"),)
            chain(to, f"{self.name}.scale", "pointwise", scale, (update,), (renamed(update, "s"),))
            update = renamed(update, "s")
        add = (Pass("add", reads=2),)
        chain(to, f"{self.name}.direction", "pointwise", add, (update, weight), (direction,))
        norm = Rowwise("pointwise", out, self.width, dtype, outputs=0)
        to.run(f"{self.name}.norm", "pointwise", norm, {"X": direction}, {})
        terms = self.inputs
        if not joined:
            terms = tuple(renamed(x, "rescaled") for x in self.inputs)
            for x, y in zip(self.inputs, terms, strict=True):
                chain(to, f"{y.name} scale", "pointwise", (Pass("mul"),), (x,), (y,))
        chain(to, self.name, "pointwise", add, terms, (self.makes,))

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The gradient rescaled for either output, and the gradient of m, a sum over rows."""
        dxs = tuple(gradient_of(x, self.name) for x in self.inputs)
        for dx in dxs:
            name = f"{self.name}.gradient of {dx.name}"
            chain(to, name, "pointwise", (Pass("mul"),), tuple(gradients), (dx,))
        x = self.base
        sums = Rowwise("pointwise", x.rows, x.cols, x.dtype, inputs=3, outputs=0)
        reads = {"X": (gradients[0], *self.inputs)}
        to.run(f"{self.name}.magnitude gradient", "pointwise", sums, reads, {})
        return dxs


def renamed(value: Value, mark: str) -> Value:
    """A value of the same shape under another name."""
    return replace(value, name=f"{value.name} {mark}")
