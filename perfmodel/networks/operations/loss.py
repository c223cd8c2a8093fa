"""Cross-entropy over logits: softmax, the target's logarithm, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Operation, gradient_of
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value


@dataclass(frozen=True)
class Loss(Operation):
    """Cross-entropy. `eager`: an fp32 copy of the logits, its logarithmic softmax, both in memory
    (4 + 4 bytes a logit beside the logits); `fused`: in place, in one pass each way."""

    logits: Value
    """Tokens × vocabulary."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The logits."""
        return (self.logits,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The loss: one number, with no tensor of its own."""
        return ()

    @property
    def _eager(self) -> bool:
        return self.setting.stack.loss == "eager"

    def _wide(self, part: str) -> Value:
        return Value(f"{self.name}.{part}", self.logits.rows, self.logits.cols, "fp32")

    @property
    def saves(self) -> tuple[Value, ...]:
        """The softmax's logarithm in fp32, or the logits in whose place the gradient goes."""
        return (self._wide("log softmax"),) if self._eager else (self.logits,)

    def forward(self, to: Recorder) -> None:
        """Cast and softmax, or one reading pass."""
        x = self.logits
        if not self._eager:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp", outputs=0)
            to.run(self.name, "loss", problem, {"X": x}, {})
            return
        if x.dtype != "fp32":
            wide = self._wide("logits")
            chain(to, f"{self.name}.cast", "loss", (Pass("copy", "data", "fp32"),), (x,), (wide,))
            x = wide
        problem = Rowwise("softmax", x.rows, x.cols, "fp32")
        library = self.setting.stack.library
        to.run(
            self.name, "loss", problem, {"X": x}, {"Y": self.saves[0]}, implementation=library
        )

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Softmax less the target, cast back; or in place."""
        x = self.logits
        made = gradient_of(x, self.name)
        if not self._eager:
            problem = Rowwise("pointwise", x.rows, x.cols, x.dtype, "exp")
            to.run(f"{self.name}.gradient", "loss", problem, {"X": x}, {"Y": made})
            return (made,)
        seed = self._wide("target")
        fill = Rowwise("pointwise", x.rows, x.cols, "fp32", "copy", inputs=0)
        to.run(f"{self.name}.target", "loss", fill, {"X": ()}, {"Y": seed})
        dx = made if x.dtype == "fp32" else self._wide("gradient")
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
            chain(to, f"{self.name}.cast back", "loss", cast, (dx,), (made,))
        return (made,)
