"""A linear layer: Y = X·W + b forward, dX = dY·Wᵀ and dW = Xᵀ·dY backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.elements import element
from perfmodel.networks.finetuning import Stored
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Unary
from perfmodel.networks.recorder import Operands, Recorder
from perfmodel.networks.value import Value, Weight

# A type of 2 bytes: an fp32 write of 4 bytes, less the 2 that the product would have written.
_SPARED = "fp16"


@dataclass(frozen=True)
class Linear(Unary):
    """[rows, n, k]: X of rows × k by W of k × n; of `groups` of them, each on its share of rows.

    Biases are added by the product (an epilogue); their gradient is a column sum of dY.
    """

    out: int
    """Columns of the output, n."""
    bias: bool = False
    """Whether there is a bias."""
    to: tuple[Value, ...] = ()
    """Outputs that the columns are divided among, side by side; empty: one tensor."""
    split: str = ""
    """`out` where devices split W's columns, `in` where they split its rows; empty: all of W."""
    weight: Weight | None = None
    """The parameter, where another operation owns it."""
    groups: int = 1
    """Grouped product: as many parameters, each on its share of the rows (experts)."""
    owned: int = 0
    """Parameters in memory, including those that receive no row; 0: one a product."""
    chosen: int = 0
    """How many of those one token uses."""
    dtype: str = ""
    """Type of the product where it is not the setting's."""

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Y, or the outputs that its columns are divided among."""
        return self.to or (replace(self.x, name=f"{self.name}.out", cols=self.out),)

    @property
    def matrix(self) -> Weight:
        """W."""
        if self.weight is not None:
            return self.weight
        return self._parameter("weight", (self.x.cols, self.out), self.groups)

    def _parameter(self, part: str, shape: tuple[int, ...], count: int) -> Weight:
        kind: Literal["matrix", "vector"] = "matrix" if len(shape) > 1 else "vector"
        name = f"{self.name}.{part}"
        return Weight(name, shape, kind, count, self.chosen, expert=self.chosen > 0)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """W, and b if any."""
        if self.weight is not None:
            parameters = (self.weight,)
        else:
            count = self.owned or self.groups
            parameters = (self._parameter("weight", (self.x.cols, self.out), count),)
        if not self.bias:
            return parameters
        return (*parameters, self._parameter("bias", (self.out,), self.owned or self.groups))

    @property
    def multiplied(self) -> str:
        """Type of the product."""
        return self.dtype or self.setting.dtype

    def _run_product(
        self, tape: Recorder, mark: str, sizes: tuple[int, int, int], reads: Operands, out: Operands
    ) -> None:
        """A grouped product: one kernel, or one a group where the stack loops over them."""
        m, n, k = sizes
        repeat = self.groups if self.setting.stack.experts_apart else 1
        problem = Matmul(m, n, k, self.groups // repeat, self.multiplied)
        name = f"{self.name}{mark}"
        tape.run(
            name, "matmul", problem, reads, out, implementation="torch", repeat=repeat, rule="nk"
        )

    @property
    def _type(self) -> str:
        """Type of the product's operands in memory."""
        return "fp32" if self.multiplied == "tf32" else self.multiplied

    def _operand(self, value: Value, mark: str) -> Value:
        """An operand in the product's memory type."""
        if value.dtype == self._type:
            return value
        name = f"{self.name}: {value.name} as {self._type} ({mark})"
        return Value(name, value.rows, value.cols, self._type)

    def _cast_operand(self, tape: Recorder, value: Value, mark: str) -> Value:
        """The operand, cast by a kernel of its own where its type differs."""
        operand = self._operand(value, mark)
        if operand != value:
            cast = Rowwise(
                "pointwise", value.rows, value.cols, value.dtype, output_dtype=operand.dtype
            )
            name, reads = f"{self.name}.{mark}", {"X": value}
            tape.run(name, "pointwise", cast, reads, {"Y": operand}, rule="quantise")
        return operand

    def forward(self, to: Recorder) -> None:
        """One product, after the weight's cast or dequantisation if there is one."""
        if self.setting.stored is not None:
            self._dequantise(to, self.setting.stored)
        elif self.setting.stack.autocast and not self.setting.wide and self.weight is None:
            self._widen(to, "weight cast", "fp32")
        x, w = self._cast_operand(to, self.x, "cast"), to.weight(self.matrix, self._type)
        sizes = (self.x.rows // self.groups, self.out, self.x.cols)
        self._run_product(to, "", sizes, {"A": x, "B": w}, {"C": self.outputs})

    def _dequantise(self, tape: Recorder, stored: Stored) -> None:
        """The weight in the type of the product, made in each pass (bitsandbytes, MatMul4Bit).

        Quantised scales are dequantised first, by a kernel and a sum with their mean, in fp32.
        """
        bits = stored.bits
        if stored.group:
            rows, cols = self.groups * self.x.cols, -(-self.out // stored.group)
            codes = Value(f"{self.matrix.name} scale codes", rows, cols, "int8")
            scales = Value(f"{self.matrix.name} scales", rows, cols, "fp32")
            tape.weights[codes.name] = None
            passes = (Pass("copy", "int8", "fp32"), Pass("add_scalar", "fp32", "fp32"))
            chain(tape, f"{self.name}.scales", "pointwise", passes, (codes,), (scales,))
            bits += (element("fp32").bits - element("int8").bits) / stored.group
        self._widen(tape, "dequantised", f"bits{float(bits):.6f}")

    def _widen(self, tape: Recorder, mark: str, stored: str) -> None:
        """The weight's copy in the product's type, made in each pass by a kernel of its own."""
        name, rows, cols = self.matrix.name, self.groups * self.x.cols, self.out
        source = Value(f"{name} in {stored}", rows, cols, stored)
        tape.weights[source.name] = None
        problem = Rowwise("pointwise", rows, cols, stored, output_dtype=self._type)
        narrow = Value(name, rows, cols, self._type)
        tape.run(f"{self.name}.{mark}", "pointwise", problem, {"X": source}, {"Y": narrow})

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Its products, and what runs beside them: a stored weight's dequantisation, the
        accumulation of the weight's gradient, the bias's column sum."""
        if self.setting.stored is not None and self.setting.gradients != "weights":
            self._dequantise(to, self.setting.stored)
        dxs = super().backward(to, gradients)
        if not self.setting.trains:
            return dxs
        rows, dtype = self.groups * self.out, matmul_format(self.multiplied).output
        grad = Value(f"d({self.matrix.name})", rows, self.x.cols, dtype)
        mode = self.setting.stack.main_gradients
        if mode == "fused" or (mode == "apart" and grad.dtype == "bf16"):
            self._accumulate(to, grad, apart=mode == "apart")
        if self.bias:
            b, dys = self._bias_sum(gradients), {"X": tuple(gradients)}
            to.run(f"{self.name}.bias gradient", "pointwise", b, dys, {})
        return dxs

    def _accumulate(self, tape: Recorder, grad: Value, *, apart: bool) -> None:
        """The fp32 accumulation of weight gradients over a step, by a kernel of its own, or read
        and written in the product's epilogue (Megatron-LM, gradient_accumulation_fusion)."""
        before = Value(f"main {grad.name}", grad.rows, grad.cols, "fp32")
        if apart:
            size = Rowwise(
                "pointwise", grad.rows, grad.cols, "fp32", also_inputs=1, also_dtype=grad.dtype
            )
            after = Value(f"main {grad.name} new", grad.rows, grad.cols, "fp32")
            reads: Operands = {"X": before, "U": grad}
            tape.run(f"{self.name}.main gradient", "pointwise", size, reads, {"Y": after})
            return
        # 4 bytes read and 4 written, less what the product would have written in its own type.
        size = Rowwise("pointwise", grad.rows, grad.cols, "fp32", output_dtype=_SPARED)
        after = Value(f"main {grad.name} new", grad.rows, grad.cols, _SPARED)
        tape.run(f"{self.name}.main gradient", "pointwise", size, {"X": before}, {"Y": after})

    def _bias_sum(self, dys: Sequence[Value]) -> Rowwise:
        # Norms of heads hand back gradients of rows by head: as many elements.
        rows, elements = self.x.rows, sum(each.rows * each.cols for each in dys)
        return Rowwise("pointwise", rows, elements // rows, dys[0].dtype, outputs=0)
