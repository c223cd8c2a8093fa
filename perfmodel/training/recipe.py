"""The default recipe of mixed precision of a plan."""

from __future__ import annotations

from perfmodel.training import precision
from perfmodel.training.plan import Plan
from perfmodel.training.precision import Precision


def of(plan: Plan) -> Precision:
    """The plan's recipe, or the default of its types and stack."""
    return precision.load(plan.precision or usual(plan))


def usual(plan: Plan) -> str:
    """The default: fp32 needs no master; FSDP shards fp32 weights; Megatron accumulates in fp32."""
    if plan.wide:
        return "fp32"
    if plan.zero == 3:
        return "fsdp"
    if plan.setting.stack.main_gradients:
        return "megatron"
    return "autocast"
