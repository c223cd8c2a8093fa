"""Configs of the matmul kernels, and which are worth trying for a problem on a target.

Tables are for 16-bit operands, best guess first: steps of k are twice as deep for 8-bit ones, and
fp32 has tables of its own (it runs on the vector unit, whose operands descriptors would spill).
No entry spills or lacks room on its target. `persistent` in a table counts the blocks that one unit
holds; a menu multiplies it by the units. Tiles are "large" where one of 128 × 128 for every unit is
there, "skinny" for up to 32 rows, else "small".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from perfmodel_kernels.common import ceil_div, power_of_two

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.errors import ProblemError


@dataclass(frozen=True)
class MatmulConfig:
    """Tile, launch order and split of one matmul.

    `group_m` rows of tiles launch together (None: columns of tiles, one after the other);
    `split_k` is the extent of k that one block sums (None: all of it); `persistent` is the number
    of blocks that share all tiles (None: a block a tile), `flatten` makes one loop of its tiles and
    their steps, so that a tile's first loads fly while the last one is stored. `descriptors` says how tiles move:
    "none" by pointers, "host" by tensor descriptors that the host makes, "block" by descriptors
    that each block makes once (the same bytes; what Hopper's warp specialisation can cut in two).
    With descriptors a tile of C leaves in `subtiles` column slices (1, 2 or 4), each through a
    smaller buffer, and `specialise` gives loads and products warps of their own.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    group_m: int | None = 8
    split_k: int | None = None
    persistent: int | None = None
    flatten: bool = False
    warps: int = 8
    stages: int = 3
    descriptors: str = "none"
    subtiles: int = 1
    specialise: bool = False


Table = tuple[MatmulConfig, ...]
Tables = Mapping[str, Table]
Menu = Callable[[Matmul, str, int], Table]

# Rows up to which a tile is as high as the product, and the least that tensor cores multiply.
SKINNY_ROWS = 32
FEWEST_ROWS = 16
# Steps of k that a slice has at least: fewer only fill and drain the pipeline.
FEWEST_STEPS = 4
# Units that `every` config is listed for: those of an H100. A menu takes those of its device.
USUAL_UNITS = 132
_WITHOUT_FP8 = {
    "sm_80": "has no 8-bit floats",
    "gfx942": "multiplies e4m3fnuz, and e4m3fn would be widened in software",
}


def by_pointers(
    bm: int, bn: int, bk: int, warps: int, stages: int,
    resident: int | None = None, flatten: bool = False,
) -> MatmulConfig:  # fmt: skip
    """A config without descriptors."""
    return MatmulConfig(
        bm, bn, bk, persistent=resident, flatten=flatten, warps=warps, stages=stages
    )  # fmt: skip


def by_host(
    bm: int, bn: int, bk: int, warps: int, stages: int,
    subtiles: int = 1, resident: int | None = None, specialise: bool = False,
) -> MatmulConfig:  # fmt: skip
    """A config with descriptors that the host makes; flattened where it is persistent."""
    return MatmulConfig(
        bm, bn, bk, persistent=resident, flatten=resident is not None, warps=warps, stages=stages,
        descriptors="host", subtiles=subtiles, specialise=specialise,
    )  # fmt: skip


def by_block(
    bm: int, bn: int, bk: int, stages: int, subtiles: int = 1, resident: int | None = None
) -> MatmulConfig:
    """A config that Hopper's compiler gives a warp group for loads and two for products."""
    return MatmulConfig(
        bm, bn, bk, persistent=resident, warps=4, stages=stages, descriptors="block",
        subtiles=subtiles, specialise=True,
    )  # fmt: skip


# ---- A block a tile ------------------------------------------------------------------------------

# What every NVIDIA target can launch: at most 96 KiB of shared memory.
_PLAIN: Tables = {
    "large": (
        by_pointers(128, 256, 64, 8, 3),
        by_pointers(128, 128, 32, 4, 4),
        by_pointers(128, 128, 64, 8, 3),
        by_pointers(64, 128, 32, 4, 4),
    ),
    "small": (
        by_pointers(64, 128, 32, 4, 4),
        by_pointers(64, 64, 64, 4, 4),
        by_pointers(128, 64, 32, 4, 4),
        by_pointers(32, 64, 64, 4, 4),
    ),
    "skinny": (
        by_pointers(16, 64, 64, 4, 6),
        by_pointers(16, 32, 128, 4, 5),
        by_pointers(16, 128, 64, 4, 5),
    ),
}
_PLAIN_FP32: Tables = {
    "large": (
        by_pointers(128, 128, 16, 8, 4),
        by_pointers(128, 64, 16, 4, 4),
        by_pointers(64, 128, 16, 4, 4),
        by_pointers(128, 128, 32, 8, 3),
    ),
    "small": (
        by_pointers(64, 64, 16, 4, 4),
        by_pointers(64, 128, 16, 4, 4),
        by_pointers(64, 64, 32, 4, 3),
        by_pointers(32, 64, 32, 4, 3),
    ),
    "skinny": (
        by_pointers(16, 64, 32, 4, 4),
        by_pointers(16, 32, 64, 4, 4),
        by_pointers(16, 64, 64, 4, 3),
    ),
}
_HOPPER: Tables = {
    "large": (
        by_host(128, 256, 64, 8, 4),
        by_block(128, 256, 64, 3),
        by_host(256, 128, 64, 8, 4),
        by_host(128, 128, 64, 4, 3),
        by_pointers(128, 256, 64, 8, 3),
        by_pointers(128, 128, 64, 8, 3),
    ),
    "small": (
        by_host(128, 128, 64, 8, 4),
        by_host(64, 128, 64, 4, 4),
        by_host(128, 64, 64, 4, 4),
        by_host(64, 64, 64, 4, 5),
        by_pointers(64, 64, 64, 4, 4),
        by_pointers(128, 64, 64, 4, 4),
    ),
    "skinny": (
        by_host(16, 128, 64, 4, 5),
        by_host(16, 64, 128, 4, 4),
        by_host(64, 64, 64, 4, 5),
        *_PLAIN["skinny"],
    ),
}
_BLACKWELL: Tables = {
    "large": (
        by_host(128, 256, 64, 8, 4, specialise=True),
        by_host(256, 256, 64, 8, 3),
        by_host(128, 256, 64, 8, 4),
        by_host(128, 128, 64, 4, 3),
        by_pointers(128, 256, 64, 8, 3),
        by_pointers(128, 128, 64, 8, 3),
    ),
    "small": _HOPPER["small"],
    "skinny": _HOPPER["skinny"],
}
# int8 has no tcgen05 instruction in Triton: operands pass through registers (mma.sync).
_BLACKWELL_INT8: Tables = {
    "large": (
        by_host(128, 128, 64, 4, 3),
        by_host(256, 128, 64, 8, 3),
        by_host(128, 256, 64, 8, 4),
        by_host(128, 128, 32, 8, 4),
        by_pointers(128, 128, 32, 4, 4),
    ),
    "small": _HOPPER["small"],
    "skinny": _HOPPER["skinny"],
}
_CDNA: Tables = {
    "large": (
        by_pointers(256, 256, 64, 8, 2),
        by_pointers(256, 128, 64, 8, 2),
        by_pointers(128, 256, 64, 8, 2),
        by_pointers(256, 128, 32, 4, 2),
        by_pointers(128, 128, 64, 4, 2),
    ),
    "small": (
        by_pointers(128, 128, 64, 4, 2),
        by_pointers(128, 64, 64, 4, 2),
        by_pointers(64, 128, 64, 4, 2),
        by_pointers(64, 64, 64, 4, 2),
    ),
    "skinny": (
        by_pointers(16, 64, 64, 4, 2),
        by_pointers(16, 64, 128, 4, 2),
        by_pointers(16, 128, 64, 4, 2),
    ),
}
_CDNA_FP32: Tables = {
    "large": (
        by_pointers(256, 128, 16, 8, 2),
        by_pointers(128, 128, 32, 4, 2),
        by_pointers(128, 128, 16, 4, 2),
        by_pointers(128, 64, 16, 4, 2),
    ),
    "small": (
        by_pointers(128, 64, 16, 4, 2),
        by_pointers(64, 64, 32, 4, 2),
        by_pointers(64, 64, 16, 4, 2),
    ),
    "skinny": (
        by_pointers(16, 64, 32, 4, 2),
        by_pointers(16, 64, 64, 4, 2),
        by_pointers(16, 32, 64, 4, 2),
    ),
}

# Rows that are not aligned: a load an element, and addresses of all of them in registers.
_RAGGED: Tables = {
    "large": (
        by_pointers(128, 128, 32, 8, 3),
        by_pointers(64, 128, 32, 8, 3),
        by_pointers(128, 64, 32, 8, 3),
        by_pointers(64, 64, 32, 4, 3),
    ),
    "small": (
        by_pointers(64, 64, 32, 4, 3),
        by_pointers(64, 128, 32, 8, 3),
        by_pointers(64, 64, 64, 8, 3),
    ),
    "skinny": (
        by_pointers(16, 64, 32, 4, 3),
        by_pointers(16, 32, 64, 4, 3),
    ),
}

# ---- k over the grid -----------------------------------------------------------------------------

_TMA_SPLIT: Tables = {
    "small": (
        by_host(64, 128, 64, 4, 4),
        by_host(128, 64, 64, 4, 4),
        by_host(64, 64, 64, 4, 5),
        by_pointers(64, 64, 64, 4, 4),
        by_pointers(128, 64, 64, 4, 4),
    ),
    "skinny": (
        by_host(16, 128, 64, 4, 5),
        by_host(16, 64, 128, 4, 4),
        by_pointers(16, 64, 64, 4, 6),
        by_pointers(16, 32, 128, 4, 5),
    ),
}
_PLAIN_FP32_SPLIT: Tables = {
    "small": (
        by_pointers(64, 128, 16, 4, 4),
        by_pointers(64, 64, 32, 4, 3),
        by_pointers(128, 64, 16, 4, 4),
    ),
    "skinny": (by_pointers(16, 64, 32, 4, 4), by_pointers(16, 32, 64, 4, 4)),
}

# ---- Persistent ----------------------------------------------------------------------------------

_PLAIN_PERSISTENT: Table = (
    by_pointers(128, 128, 32, 4, 3, resident=2),
    by_pointers(128, 128, 64, 8, 3, resident=1),
    by_pointers(64, 64, 64, 4, 3, resident=2),
)
_FP32_PERSISTENT: Table = (
    by_pointers(128, 128, 16, 8, 3, resident=1, flatten=True),
    by_pointers(64, 64, 16, 4, 3, resident=4, flatten=True),
)
_HOPPER_PERSISTENT: Table = (
    by_host(128, 256, 64, 8, 4, subtiles=2, resident=1),
    by_block(128, 256, 64, 3, resident=1),
    by_block(128, 256, 64, 4, subtiles=2, resident=1),
    by_host(256, 128, 64, 8, 4, subtiles=2, resident=1),
    by_host(128, 128, 64, 4, 3, subtiles=2, resident=2),
    by_pointers(128, 256, 64, 8, 3, resident=1, flatten=True),
)
_BLACKWELL_PERSISTENT: Table = (
    by_host(128, 256, 64, 8, 4, subtiles=2, resident=1, specialise=True),
    by_host(256, 256, 64, 8, 3, subtiles=4, resident=1),
    by_host(256, 128, 64, 8, 4, subtiles=2, resident=1, specialise=True),
    by_host(128, 256, 64, 8, 4, subtiles=2, resident=1),
    by_host(128, 128, 64, 4, 3, subtiles=2, resident=2),
    by_pointers(128, 128, 64, 8, 3, resident=1, flatten=True),
)
_BLACKWELL_INT8_PERSISTENT: Table = (
    by_host(128, 256, 64, 8, 4, subtiles=2, resident=1),
    by_host(128, 128, 64, 4, 3, subtiles=2, resident=2),
    by_pointers(128, 128, 32, 8, 3, resident=1, flatten=True),
)
_CDNA_PERSISTENT: Table = (
    by_pointers(256, 128, 64, 8, 2, resident=1),
    by_pointers(128, 256, 64, 8, 2, resident=1),
    by_pointers(128, 128, 64, 4, 2, resident=2),
)
_CDNA_FP32_PERSISTENT: Table = (
    by_pointers(256, 128, 16, 8, 2, resident=1),
    by_pointers(128, 128, 16, 4, 2, resident=3),
    by_pointers(128, 128, 32, 4, 2, resident=2),
)
_RAGGED_PERSISTENT: Table = (
    by_pointers(128, 64, 32, 8, 3, resident=1, flatten=True),
    by_pointers(64, 128, 32, 8, 3, resident=1, flatten=True),
    by_pointers(64, 64, 32, 4, 3, resident=2, flatten=True),
)
_CDNA_RAGGED_PERSISTENT: Table = (
    by_pointers(128, 128, 32, 8, 2, resident=1),
    by_pointers(128, 64, 32, 4, 2, resident=3),
    by_pointers(64, 64, 32, 4, 2, resident=4),
)

# By family of targets and type ("" for all types that have no table of their own).
Form = tuple[str, str]
_TILES: Mapping[Form, Tables] = {
    ("plain", ""): _PLAIN,
    ("plain", "fp32"): _PLAIN_FP32,
    ("hopper", ""): _HOPPER,
    ("hopper", "fp32"): _PLAIN_FP32,
    ("blackwell", ""): _BLACKWELL,
    ("blackwell", "int8"): _BLACKWELL_INT8,
    ("blackwell", "fp32"): _PLAIN_FP32,
    ("cdna", ""): _CDNA,
    ("cdna", "fp32"): _CDNA_FP32,
    ("ragged", ""): _RAGGED,
    ("cdna-ragged", ""): _CDNA,
}
_SPLIT: Mapping[Form, Tables] = {
    **_TILES,
    ("plain", "fp32"): _PLAIN_FP32_SPLIT,
    ("hopper", ""): _TMA_SPLIT,
    ("hopper", "fp32"): _PLAIN_FP32_SPLIT,
    ("blackwell", ""): _TMA_SPLIT,
    ("blackwell", "int8"): _TMA_SPLIT,
    ("blackwell", "fp32"): _PLAIN_FP32_SPLIT,
}
_PERSISTENT: Mapping[Form, Table] = {
    ("plain", ""): _PLAIN_PERSISTENT,
    ("plain", "fp32"): _FP32_PERSISTENT,
    ("hopper", ""): _HOPPER_PERSISTENT,
    ("hopper", "fp32"): _FP32_PERSISTENT,
    ("blackwell", ""): _BLACKWELL_PERSISTENT,
    ("blackwell", "int8"): _BLACKWELL_INT8_PERSISTENT,
    ("blackwell", "fp32"): _FP32_PERSISTENT,
    ("cdna", ""): _CDNA_PERSISTENT,
    ("cdna", "fp32"): _CDNA_FP32_PERSISTENT,
    ("ragged", ""): _RAGGED_PERSISTENT,
    ("cdna-ragged", ""): _CDNA_RAGGED_PERSISTENT,
}


def by_columns(problem: Matmul) -> bool:
    """Whether B is stored column by column: 8-bit operands of the matrix unit are."""
    return matmul_format(problem.dtype).compute in ("fp8", "int8")


def _shape(problem: Matmul, units: int) -> str:
    if problem.m <= SKINNY_ROWS:
        return "skinny"
    tiles = problem.batch * ceil_div(problem.m, 128) * ceil_div(problem.n, 128)
    return "large" if tiles >= units else "small"


def _fitted(config: MatmulConfig, problem: Matmul) -> MatmulConfig:
    """A table's config for the problem's type and rows."""
    wide = by_columns(problem)
    rows = max(FEWEST_ROWS, power_of_two(problem.m)) if config.bm == FEWEST_ROWS else config.bm
    return replace(config, bm=rows, bk=config.bk * (2 if wide else 1))


def _aligned(problem: Matmul) -> bool:
    """Whether descriptors can serve: rows of A, B and C are multiples of 16 bytes."""
    kinds = matmul_format(problem.dtype)
    widths = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
    b_row = problem.k if by_columns(problem) else problem.n
    rows = (
        problem.k * widths[kinds.activations],
        b_row * widths[kinds.weights],
        problem.n * widths[kinds.output],
    )
    return not any(row % 16 for row in rows)


def _form(problem: Matmul, target: str) -> Form:
    """(family of targets, type) that tables are kept for.

    Raises `ProblemError` for fp8 on a target without it.
    """
    compute = matmul_format(problem.dtype).compute
    if compute == "fp8" and target in _WITHOUT_FP8:
        raise ProblemError(f"{target} {_WITHOUT_FP8[target]}; take w8a8_int8 or a 16-bit type")
    family = {"sm_90": "hopper", "sm_100": "blackwell", "gfx942": "cdna"}.get(target, "plain")
    if not _aligned(problem):
        family = "cdna-ragged" if family == "cdna" else "ragged"
    return family, compute if (family, compute) in _TILES else ""


def one_block_a_tile(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul`."""
    table = _TILES[_form(problem, target)][_shape(problem, units)]
    return tuple(_fitted(config, problem) for config in table)


def persistent(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul-persistent`: as many blocks as `units` units hold."""
    return tuple(
        replace(_fitted(config, problem), persistent=units * (config.persistent or 1))
        for config in _PERSISTENT[_form(problem, target)]
    )


def split_k(problem: Matmul, target: str, units: int) -> Table:
    """The menu of `matmul-split-k`: slices enough for two blocks a unit, two at the least."""
    shape = "skinny" if problem.m <= SKINNY_ROWS else "small"
    fitted = (_fitted(config, problem) for config in _SPLIT[_form(problem, target)][shape])
    return tuple(dict.fromkeys(_sliced(config, problem, 2 * units) for config in fitted))


def _sliced(config: MatmulConfig, problem: Matmul, blocks: int) -> MatmulConfig:
    """`config` with slices of k so many that there are about `blocks` blocks."""
    tiles = problem.batch * ceil_div(problem.m, config.bm) * ceil_div(problem.n, config.bn)
    most = problem.k // (FEWEST_STEPS * config.bk)
    slices = max(2, min(ceil_div(blocks, tiles), most))
    return replace(config, split_k=ceil_div(ceil_div(problem.k, slices), config.bk) * config.bk)


def every(menu_of: Menu, forms: Iterable[Matmul]) -> Table:
    """All configs of a kernel's menus, once each, those that take any problem first."""
    found: dict[MatmulConfig, None] = {}
    for problem, target in product(forms, ("sm_80", "sm_90", "sm_100", "gfx942")):
        with suppress(ProblemError):
            found |= dict.fromkeys(menu_of(problem, target, USUAL_UNITS))
    return tuple(sorted(found, key=lambda config: config.descriptors != "none"))
