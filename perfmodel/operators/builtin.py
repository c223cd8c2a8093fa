"""The operators whose libraries' kernels are known, by name."""

from __future__ import annotations

from collections.abc import Mapping

from perfmodel.operators import rowwise
from perfmodel.operators.attention import AttentionOperator
from perfmodel.operators.gemm import GemmOperator, GroupedOperator
from perfmodel.operators.operator import Operator

BUILT_IN: Mapping[str, Operator] = {
    item.name: item
    for item in (AttentionOperator(), GemmOperator(), GroupedOperator(), *rowwise.OPERATORS)
}
