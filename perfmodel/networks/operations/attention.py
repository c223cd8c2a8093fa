"""Attention: one fused kernel, or products and a softmax with the scores in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.library import load
from perfmodel.elements import element
from perfmodel.networks.network import Indexer, SelfAttention
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.recorder import Operands, Recorder
from perfmodel.networks.value import Value, Weight

_Operand = Value | tuple[Value, ...]


@dataclass(frozen=True)
class AttentionOperation(Operation):
    """Fields and tensors that fused and unfused attention share."""

    of: SelfAttention
    """Heads, mask and widths."""
    q: tuple[Value, ...]
    """Queries, tokens × (heads · width); one tensor, or several side by side."""
    k: tuple[Value, ...]
    """Keys, tokens × (key-value heads · width), cached ones included."""
    v: tuple[Value, ...]
    """Values, in the shape of the keys."""
    batch: int
    """Number of sequences."""
    heads: int
    """Query heads of this device."""
    kv_heads: int
    """Key-value heads of this device."""
    seq_q: int
    """Queries of a sequence."""
    seq_kv: int
    """Keys of a sequence."""
    dropout: bool = False
    """Whether dropout applies to the softmax's result."""
    rms: bool = False
    """Whether the network has RMS norms, as Llama and the families after it."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Queries, keys, values."""
        return (*self.q, *self.k, *self.v)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """A learned score for each head, where heads have sinks."""
        return (Weight(f"{self.name}.sinks", (self.heads,), "vector"),) if self.of.sinks else ()

    @property
    def data(self) -> str:
        """Type of the queries."""
        return self.q[0].dtype

    @property
    def tokens(self) -> int:
        """Queries of all sequences."""
        return self.batch * self.seq_q

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Tokens × (heads · width of the values)."""
        cols = self.heads * self.of.value_width
        return (Value(f"{self.name}.out", self.tokens, cols, self.data),)


@dataclass(frozen=True)
class FusedAttention(AttentionOperation):
    """One kernel forward; backward, kernels that recompute the scores."""

    @property
    def statistics(self) -> tuple[Value, ...]:
        """Log-sum-exp of the scores: a number for each query and head."""
        return (Value(f"{self.name}.L", self.tokens, self.heads, "fp32"),)

    @property
    def problem(self) -> Attention:
        """The attention operator, forward; independent chunks count as sequences, and keys that
        an indexer chooses as a window of as many."""
        reach = self.of.window if self.of.indexer is None else self.of.indexer.chosen
        window = reach if 0 < reach < self.seq_kv else None
        width, chunk = self.of.value_width, self.of.chunk
        chunks = self.seq_q // chunk if 0 < chunk < self.seq_q and self.seq_q % chunk == 0 else 1
        batch, seq_q, seq_kv = self.batch * chunks, self.seq_q // chunks, self.seq_kv // chunks
        document = self.setting.document
        if document < min(seq_q, seq_kv):
            batch = max(int(batch * seq_q * self.setting.fill / document), 1)
            seq_q = seq_kv = document
        return Attention(
            batch,
            self.heads,
            self.kv_heads,
            seq_q,
            seq_kv,
            self.of.score_width,
            None if width == self.of.score_width else width,
            causal=self.of.causal,
            window=window,
            dtype=self.data,
            dropout=self.dropout,
        )

    def forward(self, to: Recorder) -> None:
        """One kernel."""
        reads: Operands = {"Q": self.q, "K": self.k, "V": self.v}
        kernel, problem = self.setting.flash_kernel(), self.problem
        writes = {"O": self.outputs[0]}
        part = self._part(reads, writes)
        to.run(self.name, "attention", problem, reads, writes, implementation=kernel, part=part)

    def _part(self, *operands: Operands) -> tuple[str, ...]:
        """Operands of which padding is not touched: all, where documents do not fill a row."""
        setting = self.setting
        if setting.document == setting.seq:
            return ()
        return tuple(name for group in operands for name in group)


@dataclass(frozen=True)
class KeyChoice(Operation):
    """Scores of an indexer over all keys, and the best of each query. It has no gradient: an
    indexer is trained apart from the network (DeepSeek-V3.2-Exp, section 2.1.1)."""

    of: Indexer
    """The indexer."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """None that have gradients."""
        return ()

    @property
    def outputs(self) -> tuple[Value, ...]:
        """None that have gradients."""
        return ()

    def forward(self, to: Recorder) -> None:
        """Scores, and a pass over them for the choice."""
        setting, sizes = self.setting, self.of
        keys = setting.past + setting.seq
        queries = setting.batch * setting.seq
        heads = Value(f"{self.name}.q", queries, sizes.heads * sizes.size, setting.data)
        key = Value(f"{self.name}.k", setting.batch * keys, sizes.size, setting.data)
        weights = Value(f"{self.name}.w", queries, sizes.heads, "fp32")
        scores = Value(f"{self.name}.scores", queries, keys, "fp32")
        problem = index_problem(
            sizes, batch=setting.batch, seq_q=setting.seq, keys=keys, dtype=setting.data
        )
        reads: Operands = {"Q": heads, "K": key, "w": weights}
        to.run(f"{self.name}.scores", "attention", problem, reads, {"I": scores})
        best = Rowwise("softmax", queries, keys, "fp32")
        chosen = Value(f"{self.name}.chosen", queries, keys, "fp32")
        to.run(f"{self.name}.best", "attention", best, {"X": scores}, {"Y": chosen})


def index_problem(
    of: Indexer, *, batch: object, seq_q: object, keys: object, dtype: str
) -> DeclaredProblem:
    """The problem of an indexer's scores; arrays are as many problems."""
    sizes = {
        "batch": batch, "heads": of.heads, "seq": keys, "seq_q": seq_q, "seq_kv": keys,
        "head_dim": of.size,
    }  # fmt: skip
    return DeclaredProblem(load("index-scores"), sizes, dtype)


@dataclass(frozen=True)
class UnfusedAttention(AttentionOperation):
    """Batched products of heads, a softmax over scores, and element-wise maps, each a kernel.

    Grouped keys are repeated for every query head, because plain operators need them so.
    """

    @property
    def pairs(self) -> int:
        """Sequences × heads: the batch of the products."""
        return self.batch * self.heads

    @property
    def score_rows(self) -> int:
        """Rows of the scores."""
        return self.pairs * self.seq_q

    def _scores(self, mark: str, dtype: str = "") -> Value:
        return Value(f"{self.name}.{mark}", self.score_rows, self.seq_kv, dtype or self.data)

    @property
    def _operands(self) -> tuple[tuple[Value, ...], ...]:
        """Queries, keys and values in the layout of the products: one head after another."""
        if not self._needs_copies:
            return self.q, self.k, self.v
        width, value = self.of.score_width, self.of.value_width
        shapes = {
            "q": (self.pairs * self.seq_q, width),
            "k": (self.pairs * self.seq_kv, width),
            "v": (self.pairs * self.seq_kv, value),
        }
        return tuple(
            (Value(f"{self.name}.{part}", *shape, self.data),) for part, shape in shapes.items()
        )

    @property
    def _needs_copies(self) -> bool:
        return self.setting.stack.head_copies or self.heads != self.kv_heads

    @property
    def _wide_softmax(self) -> bool:
        """Whether the softmax's fp32 result is kept beside its 16-bit copy: under autocast, and in
        transformers' code of the families after Llama, but for gpt-oss and its sinks."""
        stack = self.setting.stack
        fp32 = stack.autocast or (stack.fp32_softmax and self.rms and not self.of.sinks)
        return (fp32 or self._eager_softmax) and not self.setting.wide

    @property
    def _eager_softmax(self) -> bool:
        """Whether PyTorch's operators stand in for a fused softmax (Megatron-LM, fused_softmax)."""
        return self.pairs % self.setting.stack.softmax_multiple != 0

    @property
    def weights_of(self) -> Value:
        """The softmax's result."""
        return self._scores("weights", "fp32" if self._wide_softmax else "")

    def _product(
        self,
        tape: Recorder,
        mark: str,
        sizes: tuple[int, int, int],
        a: _Operand,
        b: _Operand,
        c: _Operand,
        stored: str = "",
    ) -> None:
        """A batched product of `sizes` rows, columns and inner extent."""
        problem = Matmul(*sizes, self.pairs, self.setting.multiplied)
        name, reads = f"{self.name}.{mark}", {"A": a, "B": b}
        tape.run(name, "matmul", problem, reads, {"C": c}, implementation="torch", rule=stored)

    def _copies(
        self, tape: Recorder, mark: str, pairs: Sequence[tuple[_Operand, _Operand]]
    ) -> None:
        """Layout copies between tokens × heads and heads × tokens; keys are repeated for query
        heads."""
        for i, (x, y) in enumerate(pairs):
            size_bytes = min(_bytes(x), _bytes(y))
            ins, outs = int(_bytes(x) // size_bytes), int(_bytes(y) // size_bytes)
            size = int(size_bytes // element(self.data).bytes)
            rows = self.seq_q if size % self.seq_q == 0 else 1
            problem = Rowwise("pointwise", size // rows, rows, self.data, inputs=ins, outputs=outs)
            tape.run(f"{self.name}.{mark} {i + 1}", "pointwise", problem, {"X": x}, {"Y": y})

    def _passes(self) -> list[Pass]:
        """Element-wise maps between the first product and the softmax."""
        stack = self.setting.stack
        if self._eager_softmax:
            cast = [] if self.setting.wide else [Pass("copy", "data", "fp32")]
            return [*cast, *(Pass(variant, "fp32", "fp32") for variant in ("div_scalar", "where"))]
        if stack.joins_maps:
            return []
        scale = [Pass("div_scalar")] if stack.scale_pass else []
        mask = [Pass("where" if self.of.causal else "add")] if stack.mask == "pass" else []
        return [*scale, *mask]

    def forward(self, to: Recorder) -> None:
        """Copies, scores, scale and mask, softmax, dropout, values, and the copy back."""
        q, k, v = self._operands
        if self._needs_copies:
            self._copies(to, "copy", [(self.q, q), (self.k, k), (self.v, v)])
        width, value = self.of.score_width, self.of.value_width
        scores = self._scores("scores")
        self._product(to, "scores", (self.seq_q, self.seq_kv, width), q, k, scores, "nk")
        masked = scores
        if self._passes():
            masked = self._scores("masked", "fp32" if self._eager_softmax else "")
            chain(to, f"{self.name}.mask", "pointwise", self._passes(), (scores,), (masked,))
        weights = self._softmax(to, masked)
        if self.dropout:
            weights = self._dropout(to, weights)
        out = self.outputs[0]
        context = out
        if self._needs_copies:
            context = Value(f"{self.name}.laid", self.score_rows, value, out.dtype)
        self._product(to, "values", (self.seq_q, value, self.seq_kv), weights, v, context)
        if self._needs_copies:
            self._copies(to, "copy back", [(context, out)])

    def _softmax(self, tape: Recorder, scores: Value) -> Value:
        """The softmax; under autocast in fp32 with the result cast to 16 bits."""
        weights = self.weights_of
        problem = Rowwise(
            "softmax",
            scores.rows,
            scores.cols,
            scores.dtype,
            output_dtype=weights.dtype if weights.dtype != scores.dtype else None,
        )
        name, library = f"{self.name}.softmax", self.setting.stack.library
        tape.run(name, "softmax", problem, {"X": scores}, {"Y": weights}, implementation=library)
        if not self._wide_softmax or self.dropout:
            return weights
        narrow = self._scores("narrow")
        cast = (Pass("copy", "fp32", narrow.dtype),)
        chain(tape, f"{self.name}.narrow", "pointwise", cast, (weights,), (narrow,))
        return narrow

    def _dropout(self, tape: Recorder, weights: Value) -> Value:
        """Dropout of the softmax's result: a kernel, or none where the compiler fuses it into the
        softmax."""
        output, mask = self._scores("dropped"), self._scores("mask", "int8")
        problem = Rowwise(
            "pointwise",
            weights.rows,
            weights.cols,
            weights.dtype,
            "dropout",
            output_dtype=output.dtype if output.dtype != weights.dtype else None,
            also_outputs=1,
            also_dtype="int8",
        )
        reads: Operands = {"X": weights, "U": ()}
        tape.run(f"{self.name}.dropout", "pointwise", problem, reads, {"Y": output, "W": mask})
        return output


def _bytes(operand: _Operand) -> float:
    return sum(v.bytes for v in (operand if isinstance(operand, tuple) else (operand,)))
