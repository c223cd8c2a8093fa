"""Convolutions as grouped products over taps and channels, and their gradients.

At every position p of its coarse side a filter of r taps lies on the fine side: the image is fine
and the result coarse, and in a transposed convolution the other way round. Either way

    FLOPs = 2 · coarse elements · weights of one filter

and so it is for both gradients (Dumoulin and Visin 2016, 1603.07285). Each is a product whose
result has columns of one group, and whose inner size is what the FLOPs leave for an element of the
result. Taps find again what their neighbours have read: the image comes from memory once.

Where each channel has filters of its own there are no columns: the sum over taps is declared with
its windows, and its schedule is searched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.algorithms import Matmul, Problem
from perfmodel.algorithms.declaration import declare
from perfmodel.algorithms.problem import BackwardKernel
from perfmodel.operators.declared import DeclaredOperator
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.registry import Call, operation

_NAMES = tuple(f"aten.conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))


@dataclass(frozen=True)
class _Convolution:
    """A convolution by its tensors, which its product calls A, B and C."""

    image: Operand
    weight: Operand
    out: Operand
    strides: tuple[int, ...]
    groups: int
    transposed: bool

    @property
    def coarse(self) -> Operand:
        """The side with a position for each place of the filter."""
        return self.image if self.transposed else self.out

    @property
    def flops(self) -> float:
        """Of the forward pass, and of each gradient."""
        return 2.0 * self.coarse.elements * math.prod(self.weight.shape[1:])

    def problem(self, result: str) -> Problem:
        """What makes A, B or C of the two others."""
        if self.groups > 1 and self.weight.shape[1] == 1:
            return self._depthwise(result)
        target = {"A": self.image, "B": self.weight, "C": self.out}[result]
        taps = self.weight.shape[2:]
        columns = (self.image if result == "A" else self.out).shape[-len(taps) - 1] // self.groups
        if result == "B" and self.transposed:
            columns *= math.prod(taps)
        rows = target.elements // (columns * self.groups)
        inner = max(round(self.flops / (2.0 * target.elements)), 1)
        dtype = self.image.dtype if self.image.floating else "int8"
        return Matmul(rows, columns, inner, self.groups, dtype, gradient=result != "C")

    def backward(self, operand: str) -> BackwardKernel:
        """What makes the gradient of the image (A) or of the weight (B)."""
        problem, gradient = self.problem(operand), f"d{operand}"
        if isinstance(problem, Matmul):
            sides = ("dC", "B") if operand == "A" else ("A", "dC")
            return BackwardKernel(problem, dict(zip("ABC", (*sides, gradient), strict=True)))
        return BackwardKernel(problem, {"A": "A", "B": "B", "C": "dC", operand: gradient})

    def _depthwise(self, result: str) -> Problem:
        """A sum over taps alone, of channels (g) with filters (f) of their own."""
        taps, positions = self.weight.shape[2:], self.coarse.shape[-len(self.strides) :]
        filters = self.weight.shape[0] // self.groups
        batch = self.coarse.elements // math.prod((self.groups, filters, *positions))
        fine, coarse = ("C", "A") if self.transposed else ("A", "C")
        extents = (self.out if self.transposed else self.image).shape[-len(taps) :]
        axes = {"n": batch, "g": self.groups, "f": filters}
        windows = []
        for i, (extent, tap, stride) in enumerate(zip(positions, taps, self.strides, strict=True)):
            if result == fine:  # filters that reach beyond the edge write nothing there
                extent = min(extent, max((extents[i] - tap) // stride + 1, 1))
                tap = min(tap, extents[i])
            axes |= {f"p{i}": extent, f"r{i}": tap}
            windows.append([f"p{i}", f"r{i}", stride])
        spots, places = ([f"{letter}{i}" for i in range(len(taps))] for letter in "pr")
        layout = {fine: ["n", "g", *spots, *places], "B": ["g", "f", *places],
               coarse: ["n", "g", "f", *spots]}  # fmt: skip
        types = {"A": self.image.dtype, "B": self.weight.dtype, "C": self.out.dtype}
        tensors: dict[str, Any] = {name: {"axes": layout[name], "element": name} for name in types}
        tensors[fine]["windows"] = windows
        sums = [axis for axis in axes if axis not in layout[result]]
        step = {"contraction": [x for x in "ABC" if x != result], "to": result, "over": sums}
        declaration = declare(name="convolution", axes=axes, types=types, tensors=tensors,
                              steps={"multiply": step}, outputs=[result])  # fmt: skip
        return DeclaredOperator(declaration).problem()


@operation(*_NAMES, "aten.convolution", "aten._convolution")
def convolution(call: Call) -> Operation | None:
    """Of any groups, strides, dilations and paddings, also transposed."""
    image, weight = call.first("input", "self"), call["weight"]
    if image is None or weight is None:  # no elements: the result is the bias
        return call.map()
    dimensions = len(weight.shape) - 2
    strides = call["stride"] or [1]
    conv = _Convolution(
        image,
        weight,
        call.out,
        tuple(int(n) for n in strides) * (dimensions if len(strides) == 1 else 1),
        int(call["groups"] or 1),
        "transpose" in call.aten or bool(call["transposed"]),
    )
    operands = {"A": (image,), "B": (weight,), "C": call.outputs[:1]}
    return replace(
        call.known("matmul", conv.problem("C"), operands, flops=conv.flops),
        gradients=(conv.backward("A"), conv.backward("B")),
    )
