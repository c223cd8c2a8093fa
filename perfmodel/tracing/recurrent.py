"""Recurrent layers and cells as the products and maps that they run.

A layer is one product of all its inputs with the input's weights, and then for each step a map of
the gates to the next state and a product of that state with its weights (Appleyard et al. 2016,
1604.01946, section 3): so cuDNN runs it, where no step waits for a larger product than it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.rowwise import VARIANTS
from perfmodel.tracing.operation import Operand, Operation
from perfmodel.tracing.registry import Call, operation

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@operation(*(f"aten.{kind}_cell" for kind in _GATES))
def cell(call: Call) -> Sequence[Operation]:
    """One step: two products and a map."""
    state = call["hx"]
    states = state if isinstance(state, list) else [state]
    x = call["input"]
    recurrence = _Recurrence(call, x.shape[0], states[0].shape[-1], steps=1)
    inputs = recurrence.product("inputs", x, call["w_ih"])
    hidden = recurrence.product("hidden", states[0], call["w_hh"])
    gates = (*inputs.writes, *hidden.writes)
    return inputs, hidden, recurrence.state("", gates, states[1:], call.outputs)


@operation(*(f"aten.{kind}" for kind in _GATES))
def layers(call: Call) -> Operation | Sequence[Operation]:
    """Layers over all steps, in one direction or in both; packed sequences by their bytes."""
    if call["input"] is None:
        return call.by_bytes("matmul")
    return list(_layers(call))


def _layers(call: Call) -> Iterator[Operation]:
    x: Operand = call["input"]
    state = call["hx"]
    states = state if isinstance(state, list) else [state]
    steps = x.shape[1 if call["batch_first"] else 0]
    rnn = _Recurrence(call, states[0].shape[-2], states[-1].shape[-1], steps)
    width = states[0].shape[-1]  # of what a step gives on: less than the state where projected
    projects = width != rnn.hidden
    directions = 2 if call["bidirectional"] else 1
    final, cells = int(call["num_layers"]) - 1, range(len(states))
    count = 2 + 2 * bool(call["has_biases"]) + projects
    last: list[Operand] = []
    for layer in range(final + 1):
        outputs: list[Operand] = []
        for direction in range(directions):
            place = f"{layer}.{direction}"
            start = (directions * layer + direction) * count
            weights = call["params"][start : start + count]
            out = _out(call, f"{place}.out", (rnn.batch, width))
            if layer == final and directions == 1:
                out = replace(out, tensor=call.out.tensor)
            carry = [_out(call, f"{place}.{i}", (rnn.batch, rnn.hidden)) for i in cells]
            state = carry[0] if projects else out
            inputs = rnn.product(f"{place}.inputs", x, weights[0])
            yield inputs
            yield rnn.state(place, inputs.writes, states[1:], [state, *carry[1:]])
            if projects:
                yield rnn.product(f"{place}.projected", state, weights[-1], out, steps)
            yield rnn.product(f"{place}.hidden", out, weights[1], runs=steps)
            outputs.append(replace(out, shape=(steps * rnn.batch, width)))
            last += [out, *carry[1:]]
        x = outputs[0]
        if directions > 1:
            x = _out(call, f"{layer}.out", (steps * rnn.batch, directions * width))
            x = replace(x, tensor=call.out.tensor) if layer == final else x
            yield _concatenation(call, f"{layer}.join", outputs, x)
    for i in cells:
        yield _concatenation(call, f"last.{i}", last[i :: len(states)], call.outputs[1 + i])


def _out(call: Call, ending: str, shape: tuple[int, ...]) -> Operand:
    return Operand(f"{call.name}.{ending}", shape, call.out.dtype)


def _concatenation(call: Call, ending: str, parts: Sequence[Operand], out: Operand) -> Operation:
    """States side by side, as the caller sees them."""
    name = f"{call.name}.{ending}"
    return Operation(
        name, "aten.cat", call.module, "pointwise", tuple(parts), (out,), domain=out.shape
    )


@dataclass(frozen=True)
class _Recurrence:
    """A recurrence by its sizes."""

    call: Call
    batch: int
    hidden: int
    steps: int

    @property
    def kind(self) -> str:
        """lstm, gru, rnn_tanh or rnn_relu."""
        return self.call.aten.removeprefix("aten.").removesuffix("_cell")

    def product(
        self, ending: str, x: Operand, weight: Operand, target: Operand | None = None, runs: int = 1
    ) -> Operation:
        """Rows of x, those of one run, with a weight stored by rows."""
        columns, inner = weight.shape
        rows = x.elements // inner
        out = target or _out(self.call, ending, (rows, columns))
        problem = Matmul(rows, columns, inner, dtype=x.dtype)
        operands = {"A": (x,), "B": (weight,), "C": (out,)}
        flops = 2.0 * rows * columns * inner * runs
        kernel = self.call.known("matmul", problem, operands, flops=flops)
        name = f"{self.call.name}.{ending}"
        return replace(kernel, name=name, writes=(out,), repeat=runs)

    def state(
        self,
        ending: str,
        inputs: Sequence[Operand],
        cells: Sequence[Operand],
        outputs: Sequence[Operand],
    ) -> Operation:
        """The map of gates to a state, in each step."""
        count, shape = _GATES[self.kind], (self.batch, 1, self.hidden)
        reads = [replace(x, shape=(self.batch, count, self.hidden)) for x in inputs]
        reads += [replace(x, shape=shape, spread=()) for x in cells]
        # Of the gates of an LSTM three are sigmoids and one a tangent, as is what leaves the cell.
        vector, special = VARIANTS["tanh" if self.kind == "rnn_tanh" else "sigmoid"]
        return Operation(
            f"{self.call.name}.{ending}.state",
            self.call.aten,
            self.call.module,
            "pointwise",
            tuple(reads),
            tuple(replace(x, shape=shape) for x in outputs),
            vector_ops=vector + 2.0,
            special_ops=special,
            domain=reads[0].shape,
            reduced=(1,) if count > 1 else (),
            repeat=self.steps,
        )
