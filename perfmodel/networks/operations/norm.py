"""Norms: layer norm in one kernel; an RMS norm in one, or in several by plain operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.maps import Pass, chain
from perfmodel.networks.operations.operation import Gradients, Unary
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value, Weight, gradient_of

# Hugging Face's LlamaRMSNorm (modeling_llama.py): cast to fp32, square, mean; on one number a row,
# add epsilon and take the reciprocal square root; scale, cast back, multiply by the weight. In fp32
# there are no casts.
_WIDENED = (
    Pass("copy", "data", "fp32"),
    Pass("mul", "fp32", "fp32"),
    Pass("add", "fp32", "", writes=0),
    Pass("add_scalar", "fp32", "fp32", over="one"),
    Pass("rsqrt", "fp32", "fp32", over="one"),
    Pass("mul", "fp32", "fp32"),
    Pass("copy", "fp32", "data"),
    Pass("mul", "data", "data"),
)
# Its gradient by autograd: the weight product (two kernels, one a sum over rows), the casts, the
# scaled product (two, one a sum over the row), the square, and the sum of both branches.
_WIDENED_BACK = (
    Pass("mul", "data", "data"),
    Pass("mul", "data", "", reads=2, writes=0),
    Pass("copy", "data", "fp32"),
    Pass("mul", "fp32", "fp32"),
    Pass("mul", "fp32", "", reads=2, writes=0),
    Pass("mul", "fp32", "fp32", reads=2),
    Pass("add", "fp32", "fp32", reads=2),
    Pass("copy", "fp32", "data"),
)


@dataclass(frozen=True)
class Norm(Unary):
    """A layer norm or an RMS norm over rows."""

    op: str
    """layernorm or rmsnorm."""
    bias: bool = False
    """Whether it has a bias beside its weight."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Weight, and bias where there is one."""
        gamma = Weight(f"{self.name}.weight", (self.x.cols,), "vector")
        beta = Weight(f"{self.name}.bias", (self.x.cols,), "vector")
        return (gamma, beta) if self.bias else (gamma,)

    @property
    def fused(self) -> bool:
        """Whether it is one kernel."""
        return self.op == "layernorm" or self.setting.stack.fused_norm

    @property
    def _kept(self) -> tuple[Value, ...]:
        """What the gradient by plain operators reads: the tensor that the weight multiplies, and X
        as it was widened."""
        x, narrow = self.x, not self.setting.wide
        wide = replace(x, name=f"{self.name}.0.0", dtype="fp32") if narrow else x
        scaled = replace(x, name=f"{self.name}.{6 if narrow else 4}.0")
        return (scaled, wide) if self.setting.trains else (wide,)

    @property
    def statistics(self) -> tuple[Value, ...]:
        """Reciprocal standard deviation of each row; for a layer norm the mean too."""
        names = ("mean", "rstd") if self.op == "layernorm" else ("rstd",)
        return tuple(Value(f"{self.name}.{name}", self.x.rows, 1, "fp32") for name in names)

    def _vectors(self, tape: Recorder) -> dict[str, Value]:
        names = ("gamma", "beta") if self.op == "layernorm" else ("gamma",)
        vectors = {}
        for name in names:
            weight = Weight(f"{self.name}.{name}", (self.x.cols,), "vector")
            tape.weights[weight.name] = None
            vectors[name] = Value(weight.name, 1, self.x.cols, self.x.dtype)
        return vectors

    def forward(self, to: Recorder) -> None:
        """One kernel, or eight by plain operators."""
        if not self.fused:
            passes = _fp32_passes(_WIDENED) if self.setting.wide else _WIDENED
            chain(to, self.name, "norm", passes, (self.x,), self.outputs)
            return
        statistics = (
            {}
            if not self.setting.training
            else {value.name.rpartition(".")[2]: value for value in self.statistics}
        )
        to.run(
            self.name,
            "norm",
            Rowwise(self.op, self.x.rows, self.x.cols, self.x.dtype),
            {"X": self.x, **self._vectors(to)},
            {"Y": self.outputs[0], **statistics},
            implementation=self.setting.stack.library if self.op == "layernorm" else None,
        )

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The norm's own, or what autograd runs for plain operators."""
        if self.fused:
            return super().backward(to, gradients)
        passes = _fp32_passes(_WIDENED_BACK) if self.setting.wide else _WIDENED_BACK
        if not self.setting.trains:
            passes = (passes[0], *passes[2:])  # no sum over rows for the weight
        dx, name = gradient_of(self.x, self.name), f"{self.name}.gradient"
        chain(to, name, "norm", passes, (gradients[0],), (dx,), aside=self._kept)
        return (dx,)


def _fp32_passes(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """The passes without casts, when every tensor is fp32 already."""
    return tuple(
        replace(step, reads_type="data", writes_type="data" if step.writes else "")
        for step in passes
        if step.variant != "copy"
    )
