"""Products of floats in blocks with scales along k, by `tl.dot_scaled`: MXFP8, MXFP4 and NVFP4.

MXFP8 has elements e4m3, MXFP4 has e2m1, both with a scale e8m0 for each 32 (OCP Microscaling
Formats 1.0, section 5); NVFP4 has e2m1 with a scale e4m3 for each 16 and one fp32 scale a tensor
(NVIDIA, Blackwell's NVFP4), which `alpha` is the product of. Both operands are contiguous along k,
two elements e2m1 to a byte, the first in its low half, and so are their scales.

Blackwell's matrix instructions apply the scales. Elsewhere the compiler widens elements to bf16 and
multiplies them by their scales first; it has no such form for scales e4m3, nor on CDNA for two
scaled operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.interpreted import allow_scaled_products
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_fp8, check_offsets, check_positive_counts, check_powers
from perfmodel_kernels.matmul_code import place
from perfmodel_kernels.menus import SKINNY_ROWS, every, tile_rows

from perfmodel.algorithms.matmul import matmul_format
from perfmodel.algorithms.sizes import check_positive
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.schedule import Schedule

allow_scaled_products()

# The product of the scales of whole tensors, which NVFP4 has.
TENSOR_SCALES = 0.125


class Kind(NamedTuple):
    """How an operand is stored."""

    array: str
    """Type of an array of its elements."""
    form: str
    """Triton's name of its elements."""
    packed: int = 1
    """Elements of an entry of the array."""
    block: int = 0
    """Elements along k that have one scale; 0 where there are none."""
    scale: str = "uint8"
    """Type of an array of its scales: e8m0 as bytes, or fp8 for e4m3."""


KINDS = {
    "mxfp8": Kind("fp8", "e4m3", 1, 32),
    "mxfp4": Kind("uint8", "e2m1", 2, 32),
    "nvfp4": Kind("uint8", "e2m1", 2, 16, "fp8"),
    "bf16": Kind("bf16", "bf16"),
}
_PRODUCTS = ("mxfp4", "nvfp4", "w4a8_mxfp4_mxfp8", "w4a16_mxfp4")
# dtype → types of A and of B
OPERANDS = {"mxfp8": ("mxfp8", "mxfp8")} | {
    dtype: (matmul_format(dtype).activations, matmul_format(dtype).weights) for dtype in _PRODUCTS
}


@dataclass(frozen=True)
class Microscaled:
    """C[m,n] = A[m,k]·B[k,n]; raises `ProblemError` for a k of part blocks, and `UnknownName` for
    another type."""

    m: int
    """Rows of A."""
    n: int
    """Columns of B."""
    k: int
    """The axis that is summed over, whole blocks."""
    dtype: str = "mxfp8"
    """A type of `OPERANDS`; the result is bf16."""

    def __post_init__(self) -> None:
        if self.dtype not in OPERANDS:
            raise UnknownName("block-scaled type", self.dtype, OPERANDS)
        for name in ("m", "n", "k"):
            check_positive(name, getattr(self, name))
        if self.k % self.block:
            raise ProblemError(f"k must be whole blocks of {self.block}, but k is {self.k}")

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """How A and B are stored."""
        a, b = OPERANDS[self.dtype]
        return KINDS[a], KINDS[b]

    @property
    def block(self) -> int:
        """Elements along k that have one scale; B always has scales."""
        return self.kinds[1].block

    def sizes(self) -> dict[str, int]:
        """Extent of every axis."""
        return {"b": 1, "m": self.m, "n": self.n, "k": self.k}

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role, scales included."""
        a, b = OPERANDS[self.dtype]
        names = {"data": a, "weights": b, "output": "bf16", "accumulator": "fp32"}
        return {role: element(name) for role, name in names.items()}


@dataclass(frozen=True)
class MicroscaledConfig:
    """Tile and launch order of one product."""

    bm: int = 128
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile."""
    bk: int = 128
    """Step of k, whole blocks."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""
    group_m: int = 8
    """Rows of tiles in a group of the launch order."""


@triton.jit
def matmul_microscaled(
    A, SA, B, SB, C, m, n, k, alpha,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    FORM_A: tl.constexpr, FORM_B: tl.constexpr, PACKED_A: tl.constexpr, PACKED_B: tl.constexpr,
    BLOCK: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One tile of C; EVEN says that BK divides k."""
    row_tiles = tl.cdiv(m, BM)
    _, _, row, column = place(tl.program_id(0), row_tiles, tl.cdiv(n, BN), 1, GROUP)
    m0, n0 = row * BM, column * BN
    down, across, blocks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK // BLOCK)
    rows, columns = m0 + down < m, n0 + across < n
    a_deep, b_deep = tl.arange(0, BK // PACKED_A), tl.arange(0, BK // PACKED_B)
    a_start = A + m0.to(tl.int64) * (k // PACKED_A)
    b_start = B + n0.to(tl.int64) * (k // PACKED_B)
    a_at = down[:, None] * (k // PACKED_A) + a_deep[None, :]
    b_at = across[None, :] * (k // PACKED_B) + b_deep[:, None]
    sa_start = SA + m0.to(tl.int64) * (k // BLOCK)
    sb_start = SB + n0.to(tl.int64) * (k // BLOCK)
    total = tl.full([BM, BN], 0.0, tl.float32)
    for k0 in range(0, k, BK):
        a_inside, b_inside = rows[:, None], columns[None, :]
        sa_inside, sb_inside = rows[:, None], columns[:, None]
        if not EVEN:
            a_inside = a_inside & (a_deep < (k - k0) // PACKED_A)[None, :]
            b_inside = b_inside & (b_deep < (k - k0) // PACKED_B)[:, None]
            left = (blocks < (k - k0) // BLOCK)[None, :]
            sa_inside, sb_inside = sa_inside & left, sb_inside & left
        a = tl.load(a_start + k0 // PACKED_A + a_at, mask=a_inside, other=0.0)
        b = tl.load(b_start + k0 // PACKED_B + b_at, mask=b_inside, other=0.0)
        sb_at = k0 // BLOCK + across[:, None] * (k // BLOCK) + blocks[None, :]
        sb = tl.load(sb_start + sb_at, mask=sb_inside, other=0.0)
        # The interpreter passes plain strings, and the operation wants constants.
        if FORM_A == "bf16":
            total = tl.dot_scaled(a, None, tl.constexpr(FORM_A), b, sb, tl.constexpr(FORM_B), total)
        else:
            sa_at = k0 // BLOCK + down[:, None] * (k // BLOCK) + blocks[None, :]
            sa = tl.load(sa_start + sa_at, mask=sa_inside, other=0.0)
            total = tl.dot_scaled(a, sa, tl.constexpr(FORM_A), b, sb, tl.constexpr(FORM_B), total)
    tl.store(
        C + m0.to(tl.int64) * n + n0 + (down[:, None] * n + across[None, :]),
        (total * alpha).to(C.dtype.element_ty),
        mask=rows[:, None] & columns[None, :],
    )


def _schedule(problem: Microscaled, config: MicroscaledConfig) -> Schedule:
    return tiled_matmul(
        config.bm,
        config.bn,
        config.bk,
        group_m=config.group_m,
        stages=config.stages,
        threads=32 * config.warps,
    )


def _arrays(problem: Microscaled, config: MicroscaledConfig) -> tuple[Array, ...]:
    m, n, k, (a, b) = problem.m, problem.n, problem.k, problem.kinds
    scales = (
        (Array("SA", (m, k // a.block), a.scale, tensor="A", fill="derived"),) if a.block else ()
    )
    return (
        Array("A", (m, k // a.packed), a.array),
        *scales,
        Array("B", (k // b.packed, n), b.array, by_columns=True),
        Array("SB", (n, k // b.block), b.scale, tensor="B", fill="derived"),
        Array("C", (m, n), "bf16", "output"),
    )


def _plan(problem: Microscaled, config: MicroscaledConfig) -> tuple[Launch, ...]:
    bm, bn, bk, n, k = config.bm, config.bn, config.bk, problem.n, problem.k
    a, b = problem.kinds
    check_powers(bm=bm, bn=bn, bk=bk)
    check_positive_counts(group_m=config.group_m)
    if bk < problem.block:
        raise ProblemError(f"a step has whole blocks of {problem.block}, but bk is {bk}")
    check_offsets(bm, bn, max(bm, bn) * max(n, k))
    unscaled = {} if a.block else {"SA": "A"}
    product = launch(
        "matmul", matmul_microscaled, ceil_div(problem.m, bm) * ceil_div(n, bn),
        _arrays(problem, config), config.warps, config.stages, **unscaled,
        m=problem.m, n=n, k=k, alpha=_alpha(problem), BM=bm, BN=bn, BK=bk, GROUP=config.group_m,
        FORM_A=a.form, FORM_B=b.form, PACKED_A=a.packed, PACKED_B=b.packed,
        BLOCK=problem.block, EVEN=k % bk == 0,
    )  # fmt: skip
    return (product,)


def _alpha(problem: Microscaled) -> float:
    """What the sums are multiplied by."""
    return TENSOR_SCALES if problem.dtype == "nvfp4" else 1.0


# Where matrix instructions apply the scales: tcgen05.mma.block_scale of 128 rows, mma.block_scale
# of two operands of one width. Elsewhere elements are widened in registers, which leave room for
# small tiles only.
_NATIVE = {
    "sm_100": ("mxfp8", "mxfp4", "nvfp4", "w4a8_mxfp4_mxfp8"),
    "sm_120": ("mxfp8", "mxfp4", "nvfp4"),
}
# (bm, bn, bk, warps, stages), best guess first, for few rows and for many.
_FEW = ((16, 64, 128, 4, 3), (16, 128, 128, 4, 2))
_FEW_OF_128 = ((128, 64, 256, 4, 3), (128, 128, 256, 4, 2))
_LARGE = {
    "sm_100": ((128, 128, 256, 4, 3), (128, 256, 128, 8, 3), (128, 128, 128, 4, 4)),
    "sm_120": ((64, 128, 128, 4, 2), (128, 64, 128, 8, 2), (64, 64, 128, 4, 3)),
}
_WIDENED = ((64, 64, 64, 8, 3), (32, 64, 128, 4, 2))


def _menu(problem: Microscaled, target: str, units: int) -> tuple[MicroscaledConfig, ...]:
    """Tiles for few rows, or for many."""
    a, b = problem.kinds
    native, few = problem.dtype in _NATIVE.get(target, ()), problem.m <= SKINNY_ROWS
    if a.form == "e4m3":
        check_fp8(target, "mxfp4")
    if b.scale == "fp8" and not native:
        raise ProblemError(f"the compiler widens no scales of e4m3 for {target}; take mxfp4")
    if target.startswith("gfx") and a.block:
        raise ProblemError(f"the compiler widens one operand for {target}; take w4a16_mxfp4")
    if few:
        table = _FEW_OF_128 if native and target == "sm_100" else _FEW
    else:
        table = _LARGE[target] if native else _WIDENED
    return tuple(
        MicroscaledConfig(tile_rows(bm, problem.m), bn, bk, warps, stages)
        for bm, bn, bk, warps, stages in table
    )


def decoded(codes: torch.Tensor, exponent_bits: int, mantissa_bits: int) -> torch.Tensor:
    """Codes of a small float with a sign, as float64.

    (−1)^S · 2^(E − bias) · (1 + M / 2^m), or (−1)^S · 2^(1 − bias) · M / 2^m where E is 0, with
    bias = 2^(e − 1) − 1 (OCP Microscaling Formats 1.0, section 5.3; without NaN).
    """
    codes = codes.long()
    mantissa = (codes & (2**mantissa_bits - 1)).double() / 2**mantissa_bits
    exponent = codes >> mantissa_bits & (2**exponent_bits - 1)
    sign = 1.0 - 2.0 * (codes >> (mantissa_bits + exponent_bits) & 1).double()
    bias = 2 ** (exponent_bits - 1) - 1
    power = torch.exp2(exponent.clamp_min(1).double() - bias)
    return sign * power * (mantissa + (exponent > 0).double())


def values(stored: torch.Tensor, kind: str) -> torch.Tensor:
    """Elements of A or Bᵀ as float64, of [rows, entries along k]."""
    if kind == "bf16":
        return stored.double()
    codes = stored.view(torch.uint8)
    if kind == "e4m3":
        return decoded(codes, 4, 3)
    halves = torch.stack((codes & 15, codes >> 4), dim=-1)
    return decoded(halves.flatten(-2), 2, 1)


def scales(stored: torch.Tensor) -> torch.Tensor:
    """Scales as float64: e4m3, or a byte E of e8m0, which is 2^(E − 127)."""
    if stored.dtype == torch.uint8:
        return torch.exp2(stored.double() - 127)
    return decoded(stored.view(torch.uint8), 4, 3)


def _derive(problem: Microscaled, tensors: Tensors) -> None:
    """Scales from 1/8 to 20, so that no block alone makes the result."""
    generator = torch.Generator().manual_seed(problem.k)
    for name in {"SA", "SB"} & set(tensors):
        powers = torch.randint(-3, 5, tensors[name].shape, generator=generator)
        bytes_ = tensors[name].dtype == torch.uint8
        tensors[name].copy_(powers + 127 if bytes_ else 1.25 * torch.exp2(powers.float()))


def _reference(problem: Microscaled, tensors: Tensors) -> Tensors:
    a, b = problem.kinds
    left = values(tensors["A"].cpu(), a.form)
    right = values(tensors["B"].cpu().mT.contiguous(), b.form)
    if a.block:
        left = left * scales(tensors["SA"].cpu()).repeat_interleave(a.block, dim=1)
    right = right * scales(tensors["SB"].cpu()).repeat_interleave(b.block, dim=1)
    return {"C": _alpha(problem) * left @ right.mT}


_FORMS = tuple(Microscaled(m, 7168, 2048, dtype) for m in (16, 4096) for dtype in OPERANDS)

KERNELS = (
    BundledKernel(
        name="matmul-microscaled",
        summary="matmul of MXFP8, MXFP4 and NVFP4: floats in blocks with a scale each",
        dtypes=tuple(OPERANDS),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (Microscaled(m, n, k, dtype), MicroscaledConfig(*tile))
            for (m, n, k), dtype, tile in (
                ((100, 72, 384), "mxfp8", (32, 64, 128)),
                ((33, 130, 160), "mxfp4", (16, 64, 64)),
                ((40, 64, 144), "nvfp4", (128, 32, 64)),
                ((1, 200, 96), "w4a8_mxfp4_mxfp8", (16, 128, 64)),
                ((65, 32, 256), "w4a16_mxfp4", (32, 32, 64)),
                ((64, 64, 128), "nvfp4", (128, 64, 128)),
            )
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        derive=_derive,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
