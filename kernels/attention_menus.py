"""Tiles to try for the tiled forward kernel, by target, head size and type.

Each entry was chosen from its binary (`perfmodel compile`): no spills in any form, and few vector
and issue cycles a pass compared with those of the matrix unit. Best guess first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfmodel_kernels.common import check_tile, dims, padded, power_of_two

from perfmodel.algorithms import Attention

# The work of one layer at full size: batch 4, 16 heads of 4096 queries and keys.
FORMS = (
    *(
        Attention(4, 16, 16, 4096, 4096, head_dim, causal=causal)
        for head_dim in (64, 128, 256)
        for causal in (False, True)
    ),
    Attention(2, 32, 8, 4096, 4096, 128, causal=True),
)


@dataclass(frozen=True)
class AttentionConfig:
    """A tile of attention."""

    br: int = 128
    """Query rows, of `pack` heads together."""
    bc: int = 64
    """Keys of a step."""
    pack: int = 1
    """Query heads of one key-value head in a tile."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 2
    """Buffers of the pipeline."""
    descriptors: bool = False
    """Whether tiles move by tensor descriptors."""
    specialise: bool = False
    """Whether loads, products and softmax run in specialised warps. Like descriptors, this needs a
    target that supports it."""
    by_bits: bool = False
    """Whether probabilities are rounded to bf16 by integer addition, for targets without an
    instruction that rounds."""

    def __post_init__(self) -> None:
        check_tile(self.bc, br=self.br, pack=self.pack)

    @property
    def rows(self) -> int:
        """Query rows of each head in a tile that `pack` heads share."""
        return max(self.br // self.pack, 1)

    @property
    def tile(self) -> int:
        """Rows of the padded tile: a power of two, of which `rows` × `pack` are used."""
        return max(power_of_two(self.rows * self.pack), 16)


def _pointers(br: int, bc: int, warps: int, stages: int) -> AttentionConfig:
    return AttentionConfig(br, bc, warps=warps, stages=stages)


def _copied(br: int, bc: int, warps: int, stages: int) -> AttentionConfig:
    return AttentionConfig(br, bc, warps=warps, stages=stages, descriptors=True)


def _specialised(br: int, bc: int, warps: int, stages: int) -> AttentionConfig:
    return AttentionConfig(br, bc, warps=warps, stages=stages, descriptors=True, specialise=True)


def _cdna(br: int, bc: int, warps: int, stages: int) -> AttentionConfig:
    return AttentionConfig(br, bc, warps=warps, stages=stages, by_bits=True)


# By target and padded head size. Descriptors need aligned rows, so each menu has an entry
# without them.
MENUS: Mapping[str, Mapping[int, tuple[AttentionConfig, ...]]] = {
    # mma.sync loads operands through registers; tall warp tiles (4 warps) load them least often.
    "sm_80": {
        64: (_pointers(128, 64, 4, 3), _pointers(128, 64, 8, 2), _pointers(64, 64, 4, 3)),
        128: (_pointers(128, 64, 8, 3), _pointers(64, 64, 4, 2), _pointers(128, 32, 8, 3)),
        256: (_pointers(64, 64, 8, 2), _pointers(64, 32, 4, 2), _pointers(32, 64, 4, 2)),
    },
    "sm_89": {
        64: (_pointers(128, 64, 8, 2), _pointers(64, 64, 4, 3), _pointers(64, 64, 4, 2)),
        128: (_pointers(128, 64, 8, 3), _pointers(64, 64, 4, 3), _pointers(128, 32, 8, 3)),
        256: (_pointers(64, 32, 8, 2), _pointers(32, 64, 4, 2), _pointers(32, 32, 4, 2)),
    },
    # Softmax overlaps only with products of other warp groups, in the same block (8 warps) or in
    # another block on the unit. In the order of an H200's times (measured/h200/configs.csv).
    "sm_90": {
        64: (
            _copied(64, 128, 4, 2),  # three blocks a unit
            _pointers(128, 64, 8, 3),
            _copied(128, 64, 8, 3),  # two blocks a unit
            _copied(128, 128, 4, 2),  # two, and the fewest instructions
            _copied(128, 128, 8, 2),
        ),
        128: (
            _copied(128, 128, 8, 3),
            _pointers(128, 64, 8, 3),
            _copied(128, 64, 8, 3),
            _copied(64, 64, 4, 2),  # two blocks a unit
            _copied(128, 128, 8, 2),
        ),
        256: (
            _copied(128, 64, 8, 2),
            _pointers(128, 32, 8, 3),
            _copied(64, 32, 4, 2),  # two blocks a unit
            _copied(64, 64, 4, 2),
        ),
    },
    # Specialised warps overlap the softmax of one tile with the products of the next.
    "sm_100": {
        64: (
            _specialised(128, 128, 8, 2),
            _specialised(128, 128, 4, 2),
            _copied(128, 64, 4, 3),  # two blocks a unit
            _copied(128, 128, 8, 2),
            _pointers(128, 64, 4, 3),
        ),
        128: (
            _specialised(128, 128, 8, 2),
            _specialised(128, 64, 8, 3),
            _copied(128, 64, 4, 2),  # two blocks a unit
            _copied(128, 128, 8, 2),
            _pointers(64, 64, 4, 2),
        ),
        256: (
            _copied(128, 64, 8, 2),
            _copied(64, 64, 4, 2),
            _pointers(64, 32, 4, 2),
        ),
    },
    # mma.sync again, with 99 KiB of shared memory.
    "sm_120": {
        64: (_copied(128, 64, 4, 3), _copied(64, 64, 4, 3), _pointers(64, 64, 4, 3)),
        128: (_copied(128, 64, 8, 2), _copied(128, 32, 8, 2), _pointers(128, 32, 8, 3)),
        256: (_copied(16, 64, 4, 2), _pointers(64, 32, 8, 2), _pointers(32, 64, 4, 2)),
    },
    "gfx942": {
        64: (
            _cdna(128, 64, 4, 1),  # three blocks a unit
            _cdna(128, 32, 4, 2),  # four
            _cdna(128, 64, 4, 2),
            _cdna(256, 64, 8, 2),
        ),
        128: (
            _cdna(128, 32, 4, 1),  # two blocks a unit
            _cdna(128, 64, 4, 1),
            _cdna(256, 64, 8, 2),
            _cdna(128, 32, 4, 2),
        ),
        256: (
            _cdna(128, 32, 4, 1),
            _cdna(64, 32, 4, 1),  # two blocks a unit
            _cdna(128, 32, 4, 2),
        ),
    },
}

# fp32 products run on the vector unit of NVIDIA's devices, and tiles are twice as large.
SINGLE: Mapping[int, tuple[AttentionConfig, ...]] = {
    64: (_pointers(32, 32, 4, 2), _pointers(16, 32, 4, 2)),
    128: (_pointers(32, 64, 8, 2), _pointers(16, 32, 8, 2)),
    256: (_pointers(16, 32, 8, 2), _pointers(16, 16, 4, 2)),
}
SINGLE_CDNA: Mapping[int, tuple[AttentionConfig, ...]] = {
    64: (_pointers(128, 32, 4, 1), _pointers(64, 32, 4, 1)),
    128: (_pointers(64, 32, 4, 1), _pointers(32, 32, 4, 1)),
    256: (_pointers(32, 32, 4, 1), _pointers(64, 32, 4, 1)),
}


def menu_of(problem: Attention, target: str, units: int) -> tuple[AttentionConfig, ...]:
    """Configs worth trying, best guess first; none where the target cannot multiply the type."""
    del units
    if target not in MENUS or (problem.dtype == "fp8" and target == "sm_80"):
        return ()
    tables = MENUS[target]
    if problem.dtype == "fp32":
        tables = SINGLE_CDNA if target == "gfx942" else SINGLE
    _, _, group, seq_q, _, d, e = dims(problem)
    size = min(max(padded(d), padded(e), 64), 256)
    return _packed(tables[size], group, seq_q)


def _packed(
    menu: tuple[AttentionConfig, ...], group: int, seq_q: int
) -> tuple[AttentionConfig, ...]:
    """The menu with grouped heads in one tile: of every entry if queries are few, else of the
    first.

    The number of heads in a tile is a power of two that divides the group, or the whole group. With
    few queries this fills the tile; with many it only reduces the share of tiles cut by the
    diagonal.
    """
    if group == 1:
        return menu
    even = group & -group
    pack = even if even > 1 else group
    if seq_q * 2 > menu[0].br:
        return (*menu[:1], replace(menu[0], pack=min(pack, 8)), *menu[1:])
    most = max(menu[0].br // power_of_two(seq_q), 1)
    return tuple(replace(config, pack=min(group, most)) for config in menu)


def every_config() -> tuple[AttentionConfig, ...]:
    """All configs of all menus; first those that support any row alignment."""
    tables = (MENUS["sm_90"], *MENUS.values(), SINGLE, SINGLE_CDNA)
    return tuple(
        dict.fromkeys(
            config for table in tables for size in (128, 64, 256) for config in table[size]
        )
    )
