"""Tables of matmul configs by family of targets, type and shape; `matmul_menus` picks from them.

Tables are for 16-bit operands, best guess first; for 8-bit operands a menu doubles the steps of k.
fp32 has separate tables, since it runs on the vector unit, whose operands would spill with
descriptors. No entry spills or exceeds its target's memory.

`persistent` counts the blocks that one unit holds; a menu multiplies it by the units. A shape is
"large" if it has a tile of 128 x 128 for every unit, "skinny" for up to 32 rows, else "small".
"""

from __future__ import annotations

from collections.abc import Mapping

from perfmodel_kernels.matmul_config import MatmulConfig

Table = tuple[MatmulConfig, ...]
Tables = Mapping[str, Table]


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


def by_block(bm: int, bn: int, bk: int, stages: int, resident: int | None = None) -> MatmulConfig:
    """A config for which Hopper's compiler uses one warp group for loads and two for products."""
    return MatmulConfig(
        bm, bn, bk, persistent=resident, warps=4, stages=stages, descriptors="block",
        specialise=True,
    )  # fmt: skip


# ---- A block a tile ------------------------------------------------------------------------------

# Configs for every NVIDIA target: at most 96 KiB of shared memory.
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
# Half as deep: the addresses of 128 bytes of k for 256 columns would spill.
_PLAIN_8BIT: Tables = {
    **_PLAIN,
    "large": (by_pointers(128, 256, 32, 8, 4), *_PLAIN["large"][1:]),
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
# Blackwell without tensor memory (mma.sync) and with 99 KiB: addresses of pointers would spill.
_GEFORCE: Tables = {
    "large": (
        by_host(128, 128, 64, 8, 3),
        by_host(128, 256, 32, 8, 3),
        by_host(256, 128, 32, 8, 3),
        by_host(128, 128, 32, 4, 4),
        by_pointers(128, 128, 32, 4, 4),
    ),
    "small": (
        by_host(64, 128, 64, 4, 3),
        by_host(64, 64, 64, 4, 4),
        by_pointers(64, 64, 64, 4, 4),
        by_pointers(32, 64, 64, 4, 4),
    ),
    "skinny": _PLAIN["skinny"],
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

# For unaligned rows: one load for each element, with all addresses in registers.
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
_GEFORCE_PERSISTENT: Table = (
    by_host(128, 128, 64, 8, 2, subtiles=2, resident=1),
    by_host(128, 128, 32, 4, 2, subtiles=2, resident=2),
    by_host(64, 128, 64, 4, 2, subtiles=2, resident=3),
    by_pointers(64, 128, 32, 4, 3, resident=2),
)
_GEFORCE_FP32_PERSISTENT: Table = (
    by_pointers(128, 128, 16, 8, 3, resident=1, flatten=True),
    by_pointers(64, 64, 16, 4, 2, resident=4, flatten=True),
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
TILES: Mapping[Form, Tables] = {
    ("plain", ""): _PLAIN,
    ("plain", "fp8"): _PLAIN_8BIT,
    ("plain", "int8"): _PLAIN_8BIT,
    ("plain", "fp32"): _PLAIN_FP32,
    ("hopper", ""): _HOPPER,
    ("hopper", "fp32"): _PLAIN_FP32,
    ("blackwell", ""): _BLACKWELL,
    ("blackwell", "int8"): _BLACKWELL_INT8,
    ("blackwell", "fp32"): _PLAIN_FP32,
    ("geforce", ""): _GEFORCE,
    ("geforce", "fp32"): _PLAIN_FP32,
    ("cdna", ""): _CDNA,
    ("cdna", "fp32"): _CDNA_FP32,
    ("ragged", ""): _RAGGED,
    ("cdna-ragged", ""): _CDNA,
}
SPLIT: Mapping[Form, Tables] = {
    **TILES,
    ("plain", "fp32"): _PLAIN_FP32_SPLIT,
    ("hopper", ""): _TMA_SPLIT,
    ("hopper", "fp32"): _PLAIN_FP32_SPLIT,
    ("blackwell", ""): _TMA_SPLIT,
    ("blackwell", "int8"): _TMA_SPLIT,
    ("blackwell", "fp32"): _PLAIN_FP32_SPLIT,
    ("geforce", "fp32"): _PLAIN_FP32_SPLIT,
}
PERSISTENT: Mapping[Form, Table] = {
    ("plain", ""): _PLAIN_PERSISTENT,
    ("plain", "fp8"): _PLAIN_PERSISTENT,
    ("plain", "int8"): _PLAIN_PERSISTENT,
    ("plain", "fp32"): _FP32_PERSISTENT,
    ("hopper", ""): _HOPPER_PERSISTENT,
    ("hopper", "fp32"): _FP32_PERSISTENT,
    ("blackwell", ""): _BLACKWELL_PERSISTENT,
    ("blackwell", "int8"): _BLACKWELL_INT8_PERSISTENT,
    ("blackwell", "fp32"): _FP32_PERSISTENT,
    ("geforce", ""): _GEFORCE_PERSISTENT,
    ("geforce", "fp32"): _GEFORCE_FP32_PERSISTENT,
    ("cdna", ""): _CDNA_PERSISTENT,
    ("cdna", "fp32"): _CDNA_FP32_PERSISTENT,
    ("ragged", ""): _RAGGED_PERSISTENT,
    ("cdna-ragged", ""): _CDNA_RAGGED_PERSISTENT,
}
