"""Element-wise operations: activations, dropout, residual sums, rotary positions.

Each is a chain of passes over tensors of one shape. A pass that combines several operations is one
kernel, as hand-fused kernels and compilers make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from perfmodel.algorithms import Rowwise
from perfmodel.algorithms.rowwise import VARIANTS
from perfmodel.networks.operations.operation import Gradients, Operation, Unary
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value, Weight, gradient_of

_MASK = "int8"


@dataclass(frozen=True)
class Pass:
    """One element-wise kernel of a chain. The type `data` is the type of the chain's tensors."""

    variant: str
    """Name of the map."""
    reads_type: str = "data"
    """Type of its inputs."""
    writes_type: str = "data"
    """Type of its outputs."""
    reads: int = 1
    """Number of tensors read."""
    writes: int = 1
    """Number of tensors written; 0: a reduction, whose output is negligible."""
    over: Literal["all", "half", "one"] = "all"
    """Columns of a row that it covers: all, half, or one. A pass over fewer than all does not
    replace the input of the next pass."""
    takes: tuple[str, ...] = ()
    """What it reads: `x0` is the first input, `result 2` what the third pass writes. Empty: what
    the pass before wrote, then inputs that none has read."""

    def columns(self, cols: int) -> int:
        """How many of `cols` columns it covers."""
        return {"all": cols, "half": -(-cols // 2), "one": 1}[self.over]


def chain(
    to: Recorder,
    name: str,
    kind: str,
    passes: Sequence[Pass],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    aside: Sequence[Value] = (),
) -> None:
    """Record passes one after another: each reads what the one before wrote.

    The first reads the inputs, the last writes the outputs. Further tensors that a pass reads are
    inputs, or tensors of its type kept `aside`. Maps with at most one operation an input cost the
    same, so the model treats them as one map.
    """
    first = inputs[0]
    latest, unread = list(inputs), [*inputs, *aside]
    values = {f"x{i}": x for i, x in enumerate(inputs)}
    for i, step in enumerate(passes):
        dtype = first.dtype if step.reads_type == "data" else step.reads_type
        output_dtype = first.dtype if step.writes_type == "data" else step.writes_type
        cols = step.columns(first.cols)
        reads = [values[each] for each in step.takes] or _inputs(
            latest, [*unread, *aside, *inputs], dtype, first.rows * cols, step.reads
        )
        unread = [value for value in unread if value not in reads]
        for j in range(step.reads - len(reads)):
            reads.append(Value(f"{name}.kept {i}.{j}", first.rows, cols, dtype))
        shape = replace(first, cols=cols)
        temporaries = (
            Value(f"{name}.{i}.{j}", shape.rows, shape.cols, output_dtype)
            for j in range(step.writes)
        )
        writes = list(outputs if i == len(passes) - 1 and step.writes else temporaries)
        problem = Rowwise(
            "pointwise",
            first.rows,
            cols,
            dtype,
            step.variant if step.variant in VARIANTS else "",
            inputs=step.reads,
            outputs=step.writes,
            output_dtype=output_dtype if output_dtype != dtype and step.writes else None,
        )
        operands = {"Y": tuple(writes)} if writes else {}
        label = name if len(passes) == 1 else f"{name} {i + 1}"
        to.run(label, kind, problem, {"X": tuple(reads)}, operands, rule=step.variant)
        values |= {f"result {i}": value for value in writes}
        latest = writes if writes and step.over == "all" else latest


def _inputs(
    latest: Sequence[Value], pool: Sequence[Value], dtype: str, elements: int, count: int
) -> list[Value]:
    """Inputs of a pass: what the one before wrote, if type and size match; else tensors kept
    aside."""
    matches = [
        [v for v in group if v.dtype == dtype and v.rows * v.cols == elements]
        for group in (latest, pool)
    ]
    fits = matches[0][:count]
    return fits + [v for v in matches[1] if v not in fits][: count - len(fits)]


@dataclass(frozen=True)
class Map(Operation):
    """A chain of passes forward, and their gradients backward."""

    xs: tuple[Value, ...]
    """Inputs."""
    passes: tuple[Pass, ...]
    """Forward kernels."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Its inputs."""
        return self.xs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """One tensor."""
        return (replace(self.xs[0], name=f"{self.name}.out"),)

    def forward(self, to: Recorder) -> None:
        """The forward passes."""
        chain(to, self.name, "pointwise", self.passes, self.xs, self.outputs)


@dataclass(frozen=True)
class Dropout(Unary):
    """Dropout, with the residual sum where a stack fuses the two."""

    residual: Value | None = None
    """The tensor that the result is added to."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """X, and the residual."""
        return (self.x,) if self.residual is None else (self.x, self.residual)

    @property
    def mask(self) -> Value:
        """The dropout mask: a byte an element."""
        return replace(self.x, name=f"{self.name}.mask", dtype=_MASK)

    def forward(self, to: Recorder) -> None:
        """One kernel, which writes the mask."""
        x = self.x
        problem = Rowwise(
            "pointwise", x.rows, x.cols, x.dtype, "dropout", inputs=len(self.inputs),
            also_outputs=1, also_dtype=_MASK,
        )  # fmt: skip
        reads = {"X": self.inputs, "U": ()}
        to.run(self.name, "pointwise", problem, reads, {"Y": self.outputs[0], "W": self.mask})


# Kernels of Hugging Face's gelu_new (NewGELUActivation: 0.5 x (1 + tanh(√(2/π)(x + 0.044715 x³)))),
# as plain operators: power, product, sum, product, tanh, sum, half, product.
_GELU_NEW = (
    Pass("pow_scalar", takes=("x0",)),
    Pass("mul_scalar"),
    Pass("add", reads=2, takes=("x0", "result 1")),
    Pass("mul_scalar"),
    Pass("tanh"),
    Pass("add_scalar"),
    Pass("mul_scalar", takes=("x0",)),
    Pass("mul", reads=2, takes=("result 6", "result 5")),
)


# Activations that cost as many operations as the named one, and are timed as it.
_SINGLE = {"gelu_new": "gelu"}


def activation(name: str, setting: Setting, x: Value, kind: str, gate: Value | None) -> Map:
    """The activation of an inner layer; gated, it takes two tensors."""
    if gate is not None:
        return _gated_map(name, setting, x, gate, kind)
    if kind == "gelu_new" and setting.stack.plain_gelu_new:
        return Map(name, setting, (x,), _GELU_NEW)
    return Map(name, setting, (x,), (Pass(_SINGLE.get(kind, kind)),))


def _gated_map(name: str, setting: Setting, up: Value, gate: Value, kind: str) -> Map:
    """activation(gate) · up: two kernels by plain operators, one where fused."""
    if setting.stack.fused_gate:
        return Map(name, setting, (gate, up), (Pass("silu_mul", reads=2),))
    return Map(name, setting, (gate, up), (Pass(_SINGLE.get(kind, kind)), Pass("mul", reads=2)))


# Rotary positions by plain operators (transformers, apply_rotary_pos_emb): one half negated, the
# halves swapped, products with sine and cosine, their sum; for queries, then for keys.
_ROTARY = (Pass("neg", over="half"), Pass("copy"), Pass("mul"), Pass("mul"), Pass("add", reads=2))


@dataclass(frozen=True)
class Rotary(Operation):
    """Rotary positions of queries and keys (RoFormer, 2104.09864, section 3.2.2)."""

    q: Value
    """Queries."""
    k: Value
    """Keys."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Queries and keys."""
        return (self.q, self.k)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Both, rotated."""
        return replace(self.q, name=f"{self.name}.q"), replace(self.k, name=f"{self.name}.k")

    def forward(self, to: Recorder) -> None:
        """One kernel for both, or five for each."""
        self._rotate(to, self.name, self.inputs, self.outputs)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The same kernels, with the opposite angle: what a fused kernel's own gradient is
        (flash_attn/layers/rotary.py, ApplyRotaryEmb), and taken for plain operators too."""
        dxs = tuple(gradient_of(x, self.name) for x in self.inputs)
        self._rotate(to, f"{self.name}.gradient", tuple(gradients), dxs)
        return dxs

    def _rotate(
        self, tape: Recorder, name: str, reads: tuple[Value, ...], writes: tuple[Value, ...]
    ) -> None:
        if not self.setting.stack.fused_rotary:
            for part, x, y in zip(("q", "k"), reads, writes, strict=True):
                chain(tape, f"{name} of {part}", "pointwise", _ROTARY, (x,), (y,))
            return
        cols = sum(x.cols for x in reads)
        problem = Rowwise("pointwise", reads[0].rows, cols, reads[0].dtype, "rotary")
        tape.run(name, "pointwise", problem, {"X": reads}, {"Y": writes})


@dataclass(frozen=True)
class Repeat(Unary):
    """Repeat columns, as for a tensor that all heads share."""

    times: int
    """Number of copies."""

    @property
    def outputs(self) -> tuple[Value, ...]:
        """x's columns, `times` times."""
        return (replace(self.x, name=f"{self.name}.out", cols=self.x.cols * self.times),)

    def forward(self, to: Recorder) -> None:
        """One kernel."""
        x = self.x
        copy = Rowwise("pointwise", x.rows, x.cols, x.dtype, outputs=self.times)
        to.run(self.name, "pointwise", copy, {"X": x}, {"Y": self.outputs[0]})


@dataclass(frozen=True)
class Learned(Unary):
    """A learned tensor added to all rows, or a learned scale of each column; it stays in caches."""

    shape: tuple[int, int]
    """Rows and columns of the tensor; a scale has one row."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The tensor."""
        kind: Literal["vector", "embedding"] = "vector" if self.shape[0] == 1 else "embedding"
        return (Weight(f"{self.name}.weight", self.shape, kind),)

    def forward(self, to: Recorder) -> None:
        """One kernel."""
        passes = (Pass("mul_scalar" if self.shape[0] == 1 else "add_scalar"),)
        chain(to, self.name, "pointwise", passes, (self.x,), self.outputs)
