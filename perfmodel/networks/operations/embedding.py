"""Embeddings: table rows gathered by token, plus rows for positions and types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.operation import Gradients, Operation
from perfmodel.networks.recorder import Operands, Recorder
from perfmodel.networks.value import Value, Weight


@dataclass(frozen=True)
class Embedding(Operation):
    """Tokens → rows of a table, plus rows of the `added` tables."""

    rows: int
    """Tokens."""
    hidden: int
    """Columns."""
    vocabulary: int
    """Rows of the table on this device."""
    added: tuple[tuple[str, int], ...] = ()
    """Further tables, name and rows: positions, token types."""
    shared: bool = False
    """Whether another segment owns the main table."""
    distances: tuple[int, int] = (0, 0)
    """Rows and columns of a table of attention biases by distance (T5)."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Empty: tokens have no gradient."""
        return ()

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Tokens × hidden."""
        return (Value(f"{self.name}.out", self.rows, self.hidden, self.setting.data),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The tables."""
        main = Weight(
            f"{self.name}.weight", (self.vocabulary, self.hidden), "embedding", shared=self.shared
        )
        tables = (
            Weight(f"{self.name}.{name}", (rows, self.hidden), "embedding")
            for name, rows in self.added
        )
        if not self.distances[0]:
            return (main, *tables)
        return (main, *tables, Weight(f"{self.name}.distances", self.distances, "embedding"))

    @property
    def _tables(self) -> tuple[Weight, ...]:
        """The tables whose rows are summed."""
        return self.weights[: 1 + len(self.added)]

    def forward(self, to: Recorder) -> None:
        """A gather for each table, and a sum for each table after the first."""
        partial: Value | None = None
        for i, weight in enumerate(self._tables):
            table = to.weight(weight, self.setting.data)
            last = i == len(self._tables) - 1
            rows = Value(f"{weight.name} rows", self.rows, self.hidden, self.setting.data)
            term = self.outputs[0] if last and partial is None else rows
            self._gather(to, weight, table, term)
            if partial is None:
                partial = term
                continue
            total = (
                self.outputs[0]
                if last
                else Value(f"{weight.name} sum", self.rows, self.hidden, term.dtype)
            )
            add = Rowwise("pointwise", self.rows, self.hidden, term.dtype, inputs=2)
            to.run(f"{weight.name} add", "embedding", add, {"X": (partial, term)}, {"Y": total})
            partial = total

    def _gather(self, tape: Recorder, weight: Weight, table: Value, output: Value) -> None:
        """A gather of table rows; a table smaller than its output stays in the caches."""
        name, cached = f"{weight.name} gather", table.bytes < output.bytes
        inputs = 0 if cached else 1
        gather = Rowwise("pointwise", self.rows, self.hidden, output.dtype, inputs=inputs)
        reads: Operands = {"X": () if cached else table}
        tape.run(name, "embedding", gather, reads, {"Y": output}, part=() if cached else ("X",))

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The table's gradient zeroed, and rows added into it."""
        dtype = self.setting.data
        for weight in self._tables:
            rows = weight.shape[0]
            gradient = Value(f"d({weight.name})", rows, self.hidden, dtype)
            zero = Rowwise("pointwise", rows, self.hidden, dtype, inputs=0)
            to.run(f"{weight.name} zero", "embedding", zero, {"X": ()}, {"Y": gradient})
            add = Rowwise("pointwise", self.rows, self.hidden, dtype, inputs=2, outputs=0)
            name = f"{weight.name} scatter"
            operands = (gradients[0], Value(f"{weight.name} old", self.rows, self.hidden, dtype))
            to.run(name, "embedding", add, {"X": operands}, {})
        return ()
