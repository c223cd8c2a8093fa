"""Cross-entropy over logits: softmax and the target's logarithm, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Operation, gradient_of
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
class Loss(Operation):
    """Cross-entropy, in one of three forms.

    `eager`: an fp32 copy of the logits and its log-softmax, both in memory (4 + 4 bytes a logit
    beside the logits). `parts`: a kernel for each step, in fp32, in place. `fused`: in place, one
    pass forward and one backward.
    """

    logits: Value
    """Tokens × vocabulary."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The logits."""
        return (self.logits,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The loss: one number, not kept as a tensor."""
        return ()

    @property
    def _eager(self) -> bool:
        return self.setting.stack.loss == "eager"

    @property
    def _by_parts(self) -> bool:
        return self.setting.stack.loss == "parts"

    def _fp32_value(self, part: str) -> Value:
        return Value(f"{self.name}.{part}", self.logits.rows, self.logits.cols, "fp32")

    @property
    def saves(self) -> tuple[Value, ...]:
        """The fp32 log-softmax, or the logits that the gradient overwrites."""
        if self._eager or self._by_parts:
            return (self._fp32_value("softmax"),)
        return (self.logits,)

    def forward(self, to: Recorder) -> None:
        """Cast and softmax, a pass for each step, or one reading pass.

        Devices that share the vocabulary reduce three numbers a token: maximum, sum, and the
        target's logit (1909.08053, section 3).
        """
        self._softmax(to)
        if self.setting.shards.tensor > 1:
            for part in ("maximum", "sum", "target"):
                statistic = Value(f"{self.name}.{part}", self.logits.rows, 1, "fp32")
                to.exchange(statistic.name, "all-reduce", "tensor", statistic.bytes, statistic)

    def _softmax(self, tape: Recorder) -> None:
        """The kernels of the forward pass."""
        x = self.logits
        if self._by_parts:
            passes = [p for p in _BY_PARTS if x.dtype != "fp32" or p.variant != "copy"]
            chain(tape, self.name, "loss", passes, (x,), self.saves)
            return
        if not self._eager:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp", outputs=0)
            tape.run(self.name, "loss", problem, {"X": x}, {})
            return
        if x.dtype != "fp32":
            copy = self._fp32_value("logits")
            chain(tape, f"{self.name}.cast", "loss", (Pass("copy", "data", "fp32"),), (x,), (copy,))
            x = copy
        problem = Rowwise("softmax", x.rows, x.cols, "fp32")
        library = self.setting.stack.library
        tape.run(self.name, "loss", problem, {"X": x}, {"Y": self.saves[0]}, implementation=library)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Softmax minus the one-hot target, cast back; or in place."""
        x = self.logits
        gradient = gradient_of(x, self.name)
        if self._by_parts:
            copy = Pass("copy", "fp32", x.dtype)
            passes = [_BY_PARTS_BACK, *([copy] if x.dtype != "fp32" else [])]
            chain(to, f"{self.name}.gradient", "loss", passes, self.saves, (gradient,))
            return (gradient,)
        if not self._eager:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp")
            to.run(f"{self.name}.gradient", "loss", problem, {"X": x}, {"Y": gradient})
            return (gradient,)
        seed = self._fp32_value("target")
        fill = Rowwise("pointwise", x.rows, x.cols, "fp32", inputs=0)
        to.run(f"{self.name}.target", "loss", fill, {"X": ()}, {"Y": seed})
        dx = gradient if x.dtype == "fp32" else self._fp32_value("gradient")
        problem = Rowwise("softmax", x.rows, x.cols, "fp32", direction="bwd")
        to.run(
            f"{self.name}.gradient",
            "loss",
            problem,
            {"Y": self.saves[0], "dY": seed},
            {"dX": dx},
            implementation=self.setting.stack.library,
        )
        if x.dtype != "fp32":
            cast = (Pass("copy", "fp32", x.dtype),)
            chain(to, f"{self.name}.cast back", "loss", cast, (dx,), (gradient,))
        return (gradient,)
