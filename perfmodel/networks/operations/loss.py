"""Cross-entropy over logits: softmax and the target's logarithm, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.algorithms import Rowwise
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.library import load
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Unary
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value, gradient_of

# Megatron-LM's vocabulary-parallel loss (tensor_parallel/cross_entropy.py): in fp32 the maximum,
# less the maximum, exponentials, their sum, the quotient; backward the product with the loss's
# gradient.
_BY_PARTS = (
    Pass("copy", "data", "fp32"),
    Pass("add", "fp32", "", writes=0),
    Pass("sub", "fp32", "fp32"),
    Pass("exp", "fp32", "fp32"),
    Pass("add", "fp32", "", writes=0),
    Pass("div", "fp32", "fp32"),
)
_BY_PARTS_BACK = Pass("mul_scalar", "fp32", "fp32")


_NUMBERS = ("label", "loss")
"""Numbers a token beside the logits: the target, and its loss."""


@dataclass(frozen=True)
class Loss(Unary):
    """Cross-entropy of logits, tokens × vocabulary, in one of three forms.

    `eager`: an fp32 copy of the logits and its log-softmax, both in memory (4 + 4 bytes a logit
    beside the logits). `parts`: a kernel for each step, in fp32, in place. `fused`: in place, one
    pass forward and one backward. `in-place` and `chunked` are timed as fused.
    """

    hidden: int = 1
    """Columns of the rows that the head multiplies."""

    @property
    def spared_bytes(self) -> float:
        """Bytes of logits and gradient that never exist together, of the two that the passes name.

        In place the gradient overwrites the logits, in fp32 a chunk at a time (torchtune,
        CEWithChunkedOutputLoss: 8 chunks). Chunked, the head's product runs with the loss over
        vocabulary/hidden chunks (Liger Kernel, fused_linear_cross_entropy.py).
        """
        stack, x = self.setting.stack, self.x
        if self._form == "in-place":
            chunk = x.rows * x.cols * 4.0 / stack.loss_chunks if stack.loss_chunks else 0.0
            return x.bytes - chunk
        if self._form != "chunked":
            return 0.0
        chunks = max(-(-x.cols // self.hidden), 1)
        return 2.0 * x.bytes * (1.0 - 1.0 / min(chunks, x.rows))

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The loss: one number, not kept as a tensor."""
        return ()

    @property
    def _form(self) -> str:
        """`eager`, `parts`, or another word for fused."""
        return self.setting.stack.loss

    def _fp32_value(self, part: str) -> Value:
        return replace(self.x, name=f"{self.name}.{part}", dtype="fp32")

    @property
    def statistics(self) -> tuple[Value, ...]:
        """The logarithm of the sum of a row's exponentials, where no softmax is kept."""
        if self._form in ("eager", "parts"):
            return ()
        return (Value(f"{self.name}.lse", self.x.rows, 1, "fp32"),)

    @property
    def _softmax(self) -> Value:
        """The softmax that `parts` keeps, or the logarithm of it that `eager` does."""
        return self._fp32_value("softmax")

    def forward(self, to: Recorder) -> None:
        """Cast and softmax, a pass for each step, or one reading pass.

        Devices that share the vocabulary reduce three numbers a token: maximum, sum, and the
        target's logit (1909.08053, section 3).
        """
        x = self.x
        if self._form == "parts":
            passes = [p for p in _BY_PARTS if x.dtype != "fp32" or p.variant != "copy"]
            chain(to, self.name, "loss", passes, (x,), (self._softmax,))
        elif self._form == "eager":
            self._eager_forward(to)
        else:
            sizes = {"tokens": x.rows, "vocabulary": x.cols}
            problem = DeclaredProblem(load("softmax-cross-entropy"), sizes, x.dtype)
            label, loss = (Value(f"{self.name}.{part}", x.rows, 1, "fp32") for part in _NUMBERS)
            writes = {"loss": loss, "lse": self.statistics[0]}
            to.run(self.name, "loss", problem, {"Z": x, "label": label}, writes)
        if self.setting.shards.tensor > 1:
            for part in ("maximum", "sum", "target"):
                statistic = Value(f"{self.name}.{part}", x.rows, 1, "fp32")
                to.exchange(statistic.name, "all-reduce", "tensor", statistic.bytes, statistic)

    def _eager_forward(self, tape: Recorder) -> None:
        """A copy in fp32, and a softmax of it."""
        x = self.x
        if x.dtype != "fp32":
            copy = self._fp32_value("logits")
            chain(tape, f"{self.name}.cast", "loss", (Pass("copy", "data", "fp32"),), (x,), (copy,))
            x = copy
        problem = Rowwise("softmax", x.rows, x.cols, "fp32")
        library = self.setting.stack.library
        tape.run(self.name, "loss", problem, {"X": x}, {"Y": self._softmax}, implementation=library)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """That of its kernels, from the gradient of one number a token; `parts` has a function of
        its own (Megatron-LM, _VocabParallelCrossEntropy.backward)."""
        x, name = self.x, f"{self.name}.gradient"
        if self._form == "parts":
            back = [] if x.dtype == "fp32" else [Pass("copy", "fp32", x.dtype)]
            gradient = gradient_of(x, self.name)
            chain(to, name, "loss", [_BY_PARTS_BACK, *back], (self._softmax,), (gradient,))
            return (gradient,)
        if self._form != "eager":
            given = Value(f"d({self.name})", x.rows, 1, "fp32")
            return self.derived(to, {f"{self.name}.loss": given})
        seed = self._fp32_value("target")  # of all log-softmax only the target's has a gradient
        fill = Rowwise("pointwise", x.rows, x.cols, "fp32", inputs=0)
        to.run(f"{self.name}.target", "loss", fill, {"X": ()}, {"Y": seed})
        return self.derived(to, {self._softmax.name: seed})
