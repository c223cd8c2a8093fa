"""Cross-entropy over logits: softmax and the target's logarithm, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Unary, gradient_of
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value

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
    def saves(self) -> tuple[Value, ...]:
        """The fp32 log-softmax, or the logits that the gradient overwrites."""
        return (self._fp32_value("softmax") if self._form in ("eager", "parts") else self.x,)

    def forward(self, to: Recorder) -> None:
        """Cast and softmax, a pass for each step, or one reading pass.

        Devices that share the vocabulary reduce three numbers a token: maximum, sum, and the
        target's logit (1909.08053, section 3).
        """
        x = self.x
        if self._form == "parts":
            passes = [p for p in _BY_PARTS if x.dtype != "fp32" or p.variant != "copy"]
            chain(to, self.name, "loss", passes, (x,), self.saves)
        elif self._form == "eager":
            self._eager_forward(to)
        else:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp", outputs=0)
            to.run(self.name, "loss", problem, {"X": x}, {})
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
        tape.run(self.name, "loss", problem, {"X": x}, {"Y": self.saves[0]}, implementation=library)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Softmax minus the one-hot target, cast back; or in place."""
        x, name = self.x, f"{self.name}.gradient"
        gradient = gradient_of(x, self.name)
        back = [] if x.dtype == "fp32" else [Pass("copy", "fp32", x.dtype)]
        if self._form == "parts":
            chain(to, name, "loss", [_BY_PARTS_BACK, *back], self.saves, (gradient,))
        elif self._form == "eager":
            seed = self._fp32_value("target")
            fill = Rowwise("pointwise", x.rows, x.cols, "fp32", inputs=0)
            to.run(f"{self.name}.target", "loss", fill, {"X": ()}, {"Y": seed})
            dx = self._fp32_value("gradient") if back else gradient
            problem = Rowwise("softmax", x.rows, x.cols, "fp32", direction="bwd")
            reads, library = {"Y": self.saves[0], "dY": seed}, self.setting.stack.library
            to.run(name, "loss", problem, reads, {"dX": dx}, implementation=library)
            if back:
                chain(to, f"{self.name}.cast back", "loss", back, (dx,), (gradient,))
        else:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp")
            to.run(name, "loss", problem, {"X": x}, {"Y": gradient})
        return (gradient,)
