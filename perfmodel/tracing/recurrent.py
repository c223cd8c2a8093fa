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
from perfmodel.tracing.operand import Operand
from perfmodel.tracing.operation import Operation
from perfmodel.tracing.registry import Call, operation

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@operation(*(f"aten.{kind}_cell" for kind in _GATES))
def cell(call: Call) -> Sequence[Operation]:
    """One step: two products and a map."""
    state = call["hx"]
    states = state if isinstance(state, list) else [state]
    x = call["input"]
    sized = _Recurrence(call, x.shape[0], states[0].shape[-1], steps=1)
    inputs = sized.product("inputs", x, call["w_ih"])
    hidden = sized.product("hidden", states[0], call["w_hh"])
    gates = (*inputs.writes, *hidden.writes)
    return inputs, hidden, sized.state("", gates, states[1:], call.outputs)


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
    sized = _Recurrence(call, states[0].shape[-2], states[-1].shape[-1], steps)
    width = states[0].shape[-1]  # of what a step gives on: less than the state where projected
    projected = width != sized.hidden
    directions = 2 if call["bidirectional"] else 1
    final, cells = int(call["num_layers"]) - 1, range(len(states))
    each = 2 + 2 * bool(call["has_biases"]) + projected
    last: list[Operand] = []
    for layer in range(final + 1):
        made: list[Operand] = []
        for direction in range(directions):
            place = f"{layer}.{direction}"
            at = (directions * layer + direction) * each
            weights = call["params"][at : at + each]
            out = _out(call, f"{place}.out", (sized.batch, width))
            if layer == final and directions == 1:
                out = replace(out, tensor=call.out.tensor)
            kept = [_out(call, f"{place}.{i}", (sized.batch, sized.hidden)) for i in cells]
            state = kept[0] if projected else out
            inputs = sized.product(f"{place}.inputs", x, weights[0])
            yield inputs
            yield sized.state(place, inputs.writes, states[1:], [state, *kept[1:]])
            if projected:
                yield sized.product(f"{place}.projected", state, weights[-1], out, steps)
            yield sized.product(f"{place}.hidden", out, weights[1], runs=steps)
            made.append(replace(out, shape=(steps * sized.batch, width)))
            last += [out, *kept[1:]]
        x = made[0]
        if directions > 1:
            x = _out(call, f"{layer}.out", (steps * sized.batch, directions * width))
            x = replace(x, tensor=call.out.tensor) if layer == final else x
            yield _joined(call, f"{layer}.join", made, x)
    for i in cells:
        yield _joined(call, f"last.{i}", last[i :: len(states)], call.outputs[1 + i])


def _out(call: Call, ending: str, shape: tuple[int, ...]) -> Operand:
    return Operand(f"{call.name}.{ending}", shape, call.out.dtype)


def _joined(call: Call, ending: str, parts: Sequence[Operand], made: Operand) -> Operation:
    """States side by side, as the caller sees them."""
    name = f"{call.name}.{ending}"
    return Operation(
        name, "aten.cat", call.module, "pointwise", tuple(parts), (made,), domain=made.shape
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
        self, ending: str, x: Operand, weight: Operand, made: Operand | None = None, runs: int = 1
    ) -> Operation:
        """Rows of x, those of one run, with a weight stored by rows."""
        columns, inner = weight.shape
        rows = x.elements // inner
        out = made or _out(self.call, ending, (rows, columns))
        problem = Matmul(rows, columns, inner, dtype=x.dtype)
        operands = {"A": (x,), "B": (weight,), "C": (out,)}
        flops = 2.0 * rows * columns * inner * runs
        found = self.call.known("matmul", problem, operands, flops=flops)
        name = f"{self.call.name}.{ending}"
        return replace(found, name=name, writes=(out,), repeat=runs)

    def state(
        self,
        ending: str,
        gates: Sequence[Operand],
        cells: Sequence[Operand],
        outputs: Sequence[Operand],
    ) -> Operation:
        """The map of gates to a state, in each step."""
        many, one = _GATES[self.kind], (self.batch, 1, self.hidden)
        reads = [replace(x, shape=(self.batch, many, self.hidden)) for x in gates]
        reads += [replace(x, shape=one, spread=()) for x in cells]
        # Of the gates of an LSTM three are sigmoids and one a tangent, as is what leaves the cell.
        vector, special = VARIANTS["tanh" if self.kind == "rnn_tanh" else "sigmoid"]
        return Operation(
            f"{self.call.name}.{ending}.state",
            self.call.aten,
            self.call.module,
            "pointwise",
            tuple(reads),
            tuple(replace(x, shape=one) for x in outputs),
            vector_ops=vector + 2.0,
            special_ops=special,
            domain=reads[0].shape,
            reduced=(1,) if many > 1 else (),
            repeat=self.steps,
        )
