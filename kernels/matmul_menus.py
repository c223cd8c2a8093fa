"""Which matmul configs are worth trying for a problem on a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.limits import check_fp8
from perfmodel_kernels.matmul_config import MatmulConfig
from perfmodel_kernels.matmul_tables import PERSISTENT, SPLIT, TILES, Form, Table
from perfmodel_kernels.menus import SKINNY_ROWS, slice_extent, tile_rows

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.elements import element

Menu = Callable[[Matmul, str, int], Table]

# Rows of A, B and C that descriptors can serve are multiples of so many bytes.
ROW_BYTES = 16
_FAMILIES = {"sm_90": "hopper", "sm_100": "blackwell", "sm_120": "geforce", "gfx942": "cdna"}


def by_columns(problem: Matmul) -> bool:
    """Whether B is stored in column-major order, as 8-bit operands of the matrix unit are."""
    return matmul_format(problem.dtype).compute in ("fp8", "int8")


def _shape(problem: Matmul, units: int) -> str:
    if problem.m <= SKINNY_ROWS:
        return "skinny"
    tiles = problem.batch * ceil_div(problem.m, 128) * ceil_div(problem.n, 128)
    return "large" if tiles >= units else "small"


def _fitted(config: MatmulConfig, problem: Matmul) -> MatmulConfig:
    """A table's config for the problem's type and rows."""
    step = config.bk * (2 if by_columns(problem) else 1)
    return replace(config, bm=tile_rows(config.bm, problem.m), bk=step)


def _aligned(problem: Matmul) -> bool:
    """Whether descriptors can be used: rows of A, B and C are multiples of 16 bytes."""
    kinds = matmul_format(problem.dtype)
    rows = (
        (problem.k, kinds.activations),
        (problem.k if by_columns(problem) else problem.n, kinds.weights),
        (problem.n, kinds.output),
    )
    return not any(extent * element(dtype).bytes % ROW_BYTES for extent, dtype in rows)


def _form(problem: Matmul, target: str) -> Form:
    """The key of the tables: (family of targets, type). Raises `ProblemError` for fp8 on a target
    without it."""
    compute = matmul_format(problem.dtype).compute
    if compute == "fp8":
        check_fp8(target, "w8a8_int8 or a 16-bit type")
    family = _FAMILIES.get(target, "plain")
    if not _aligned(problem):
        family = "cdna-ragged" if family == "cdna" else "ragged"
    return family, compute if (family, compute) in TILES else ""


def one_block_a_tile(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul`."""
    table = TILES[_form(problem, target)][_shape(problem, units)]
    return tuple(_fitted(config, problem) for config in table)


def persistent(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul-persistent`: as many blocks as `units` units hold."""
    return tuple(
        replace(_fitted(config, problem), persistent=units * (config.persistent or 1))
        for config in PERSISTENT[_form(problem, target)]
    )


def split_k(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul-split-k`: enough slices for two blocks a unit, and at least two."""
    shape = "skinny" if problem.m <= SKINNY_ROWS else "small"
    fitted = (_fitted(config, problem) for config in SPLIT[_form(problem, target)][shape])
    return tuple(dict.fromkeys(_sliced(config, problem, 2 * units) for config in fitted))


def _sliced(config: MatmulConfig, problem: Matmul, blocks: int) -> MatmulConfig:
    """`config` with k split so that there are about `blocks` blocks."""
    tiles = problem.batch * ceil_div(problem.m, config.bm) * ceil_div(problem.n, config.bn)
    split = slice_extent(problem.k, config.bk, ceil_div(blocks, tiles), fewest=2)
    return replace(config, split_k=split)
