"""Matrix products as an operator: plain, batched, and of low-precision weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Matmul, Problem
from perfmodel.algorithms.expressions import evaluate
from perfmodel.algorithms.grouped import GroupedMatmul
from perfmodel.algorithms.matmul import FORMATS, kernel_type
from perfmodel.errors import ProblemError
from perfmodel.operators.library import Chosen, LibraryOperator, multiplied_as
from perfmodel.operators.operator import Request
from perfmodel.operators.options import Choice, Option, dtype, size
from perfmodel.plaintext import quoted
from perfmodel.timing import matmul
from perfmodel.timing.libraries import GemmFacts, resolve, usual
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.spread import family_of_matmul


class GemmOperator(LibraryOperator):
    """Matrix multiplication."""

    name = "gemm"
    about = "Matrix product C[m,n] = A[m,k] B[k,n], batched; low-precision weights too."
    schedules = ("auto", "tiled", "split-k")
    tile = ("m", "n", "slices")
    own_tile = ("m", "n", "k", "warps", "stages", "group", "slices")
    chunk = 256  # its menu has a hundred columns and more
    needed: tuple[str, ...] = ("m", "n", "k")
    free_sizes: tuple[str, ...] = ("m", "n", "k", "batch")
    options: tuple[Option, ...] = (
        size("m", "-m", "--m", default="4096", help="Rows of C: {size}."),
        size("n", "-n", "--n", default="4096", help="Columns of C."),
        size("k", "-k", "--k", default="4096", help="Summed dimension."),
        size("batch", default="1", help="Products."),
        dtype(FORMATS),
    )

    def problem(self, **given: Any) -> Matmul:
        """A `Matmul`."""
        return Matmul(**given)

    def same_call(self, sizes: Mapping[str, Any]) -> np.ndarray | None:
        """Strided batches apart: they have their own kernels."""
        return np.asarray(np.asarray(sizes.get("batch", 1)) > 1, dtype=np.int64)

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """C = A·B; its backward pass is two products: dA = dC·Bᵀ and dB = Aᵀ·dC."""
        m, n, k, batch = (sizes[name] for name in ("m", "n", "k", "batch"))
        dtype = row["dtype"]
        forward: Problem = Matmul(m, n, k, batch, dtype)
        sides = ((m, k, n), (k, n, m))
        backward: list[Problem] = [Matmul(*side, batch, dtype, gradient=True) for side in sides]
        parts = {"fwd": [forward], "bwd": backward, "fwdbwd": [forward, *backward]}
        if row["direction"] not in parts:
            direction = quoted(str(row["direction"]))
            raise ProblemError(f"direction is {direction}; it is {', '.join(parts)}")
        return parts[row["direction"]]

    def family(self, problem: Problem) -> str:
        """The family by how the operands are stored and multiplied."""
        return family_of_matmul(problem.dtype)

    def called_as(self, problem: Any) -> str:
        """Batched and gradients: the floor of torch.bmm. Plain: that of torch.nn.Linear.

        Its bias takes a plain product to cuBLASLt, which looks up its algorithm in every call.
        """
        return "bmm" if problem.batched or problem.gradient else "gemm"

    def few_rows(self, problem: Any, kernel: GemmFacts) -> Any:
        """Problems with few enough rows m."""
        return np.asarray(problem.m) <= kernel.few_rows

    def kernels(self, problem: Matmul, request: Request, here: Machine) -> Chosen:
        """The requested class, or the usual one."""
        label = kernel_type(problem.dtype)
        dtype, widening = multiplied_as(problem.compute_type, label, here)
        implementation = request.implementation
        if request.schedule == "tiled" and implementation is None:
            return usual("gemm", dtype, here), widening
        kernel, notes = resolve("gemm", implementation, dtype, here, batched=problem.batched)
        return kernel, (*widening, *notes)

    def plans(
        self,
        problem: Matmul,
        schedule: str,
        kernel: GemmFacts,
        setting: Setting,
    ) -> list[Plan]:
        """One kernel, and a second one where slices of k are added up."""
        if schedule == "tiled":
            kernel = replace(kernel, splits=(1,))
        return [matmul.plan(problem, kernel, setting)]


class GroupedOperator(GemmOperator):
    """Products of groups of rows, each with its own matrix."""

    name = "grouped-gemm"
    about = "Products of groups of rows, a matrix a group: experts, evenly loaded or not."
    options = (
        size("m", "-m", "--m", default="8192", help="Rows of all groups: tokens times `chosen`."),
        size("n", "-n", "--n", default="4096", help="Columns of C."),
        size("k", "-k", "--k", default="4096", help="Summed dimension."),
        size("batch", "--groups", default="8", help="Groups, on all ranks."),
        size("chosen", default="1", help="Groups of each token."),
        size("ranks", default="1", help="Devices that the groups are spread over."),
        Choice(
            "skew",
            ("--skew",),
            "0",
            "Exponent of the power law that loads are drawn from; 0: even.",
            metavar="NUMBER",
        ),
        dtype(FORMATS),
    )
    needed = ("m", "n", "k", "batch")
    free_sizes = ()  # rows of groups are no plain number

    @property
    def library(self) -> str:  # type: ignore[override]
        """Its kernels are products'."""
        return "gemm"

    def problem(self, **given: Any) -> Matmul:
        """A `GroupedMatmul`."""
        skew = given.get("skew")
        if isinstance(skew, str):
            given["skew"] = evaluate(skew, {})
        return GroupedMatmul(**given)

    def same_call(self, sizes: Mapping[str, Any]) -> None:
        """One call times all."""

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """One grouped product."""
        values = {name: sizes[name] for name in self.measured_sizes if name in sizes}
        return [self.problem(**values, dtype=row["dtype"])]

    def called_as(self, problem: Any) -> str:
        """The floor of a product."""
        return "gemm"
