"""Tiles of the attention backward pass, and those worth trying on each target."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel_kernels.common import ceil_div, dims, power_of_two

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError

NAME = "attention-backward"


@dataclass(frozen=True)
class BackwardConfig:
    """`br` query rows a step by `bc` keys a block."""

    br: int = 64
    """Query rows of a step."""
    bc: int = 128
    """Keys of a block."""
    warps: int = 8
    """Warps of a block."""
    stages: int = 2
    """Buffers of the pipeline."""
    query_br: int = 0
    """Query rows of a block in the separate kernel for dQ; 0: no such kernel, and dQ is summed
    atomically."""
    query_bc: int = 64
    """Keys of a step of that kernel."""
    query_warps: int = 4
    """Warps of its block."""
    query_stages: int = 2
    """Buffers of its pipeline."""
    spread: bool = False
    """Whether every query head of a group has its own block."""
    descriptors: bool = False
    """Whether tiles move by tensor descriptors."""
    turned: bool = False
    """Whether dQ is computed transposed, for targets whose matrix instructions need more rows than
    `br`."""
    by_bits: bool = False
    """Whether bf16 is rounded by integer addition, for targets without an instruction that rounds.
    """

    def __post_init__(self) -> None:
        tiles = (self.br, self.bc, *((self.query_br, self.query_bc) if self.apart else ()))
        for size in tiles:
            if size < 16 or size != power_of_two(size):
                raise ProblemError(f"tiles of {NAME} are powers of two from 16 on, not {size}")

    @property
    def apart(self) -> bool:
        """Whether dQ has a separate kernel."""
        return self.query_br != 0


def _apart(
    keys: tuple[int, int, int, int], queries: tuple[int, int, int, int], **more: bool
) -> BackwardConfig:
    """A config with a separate kernel for dQ: (br, bc, warps, stages) of both kernels."""
    return BackwardConfig(*keys, *queries, **more)


# By target and the widest head dimension: best guess first, chosen from compiled code (no spill up
# to 128, cycles of the busiest pipe by resident blocks, bytes at the L2). Summing dQ atomically
# needs only 5 products a tile and comes first where a block has room for it. With a second kernel,
# tiles are smaller and more blocks are resident. The last entry of each list with descriptors
# supports unaligned rows.
_HOPPER = {  # 64 and 128 in the order of an H200's times (measured/h200/configs.csv)
    64: (
        BackwardConfig(64, 64, 4, 2, descriptors=True),
        _apart((64, 64, 4, 2), (128, 64, 8, 2), descriptors=True),
        BackwardConfig(128, 128, 8, 2, descriptors=True),
        BackwardConfig(64, 128, 8, 2),
        BackwardConfig(64, 128, 8, 2, descriptors=True),
    ),
    128: (
        _apart((64, 64, 4, 2), (128, 128, 8, 2), descriptors=True),
        BackwardConfig(64, 128, 8, 2, descriptors=True),
        BackwardConfig(64, 64, 4, 1, descriptors=True),
        BackwardConfig(32, 128, 8, 2, turned=True),
    ),
    256: (
        BackwardConfig(64, 64, 8, 1, descriptors=True),
        _apart((64, 64, 8, 1), (128, 64, 8, 1), descriptors=True),
        _apart((32, 64, 8, 1), (64, 64, 8, 1)),
    ),
}
# A block uses all of a unit's tensor memory, or half of it (64 keys of head dimension 64). With 128
# keys and 8 warps registers spill, since ptxas uses at most 128.
_BLACKWELL = {
    64: (
        BackwardConfig(64, 64, 4, 2, descriptors=True),
        _apart((64, 64, 4, 2), (128, 64, 4, 2), descriptors=True),
        BackwardConfig(64, 128, 4, 2, descriptors=True),
        BackwardConfig(64, 64, 4, 2),
    ),
    128: (
        BackwardConfig(64, 128, 4, 2, descriptors=True, turned=True),
        _apart((64, 128, 4, 2), (128, 64, 4, 2), descriptors=True),
        BackwardConfig(32, 128, 8, 2, turned=True),
    ),
    256: (
        BackwardConfig(32, 64, 4, 1, descriptors=True, turned=True),
        _apart((64, 64, 8, 1), (128, 64, 8, 1), descriptors=True),
        BackwardConfig(32, 64, 8, 1, turned=True),
    ),
}
_CDNA = {
    64: (
        BackwardConfig(16, 128, 4, 1, by_bits=True),
        _apart((16, 128, 4, 1), (128, 32, 4, 1), by_bits=True),
        BackwardConfig(64, 128, 4, 1, by_bits=True),
    ),
    128: (
        _apart((16, 64, 4, 2), (128, 32, 4, 1), by_bits=True),
        BackwardConfig(16, 64, 4, 1, by_bits=True),
        BackwardConfig(32, 128, 4, 1, by_bits=True),
    ),
    256: (
        BackwardConfig(16, 64, 4, 1, by_bits=True),
        _apart((16, 64, 4, 1), (64, 16, 4, 1), by_bits=True),
        BackwardConfig(16, 32, 4, 1, by_bits=True),
    ),
}
# Warp-level matrix instructions with operands in registers: blocks are small.
_BY_WARPS = {
    64: (
        _apart((32, 64, 4, 2), (64, 32, 4, 2)),
        _apart((32, 64, 4, 2), (64, 64, 4, 2)),
        BackwardConfig(64, 32, 4, 2),
        BackwardConfig(32, 32, 4, 2),
    ),
    128: (
        _apart((32, 64, 4, 1), (64, 32, 4, 2)),
        BackwardConfig(64, 32, 8, 2),
        BackwardConfig(32, 32, 4, 1),
        _apart((32, 32, 4, 2), (64, 32, 4, 2)),
    ),
    256: (
        _apart((16, 32, 4, 1), (64, 16, 4, 1)),
        BackwardConfig(16, 32, 4, 1),
        BackwardConfig(16, 16, 4, 1),
    ),
}
# Only CDNA has full-precision fp32 matrix instructions, and fp32 has twice the bytes.
_PRECISE = {
    64: (BackwardConfig(16, 32, 4, 1), BackwardConfig(16, 16, 4, 1)),
    128: (BackwardConfig(16, 16, 4, 1),),
    256: (BackwardConfig(16, 16, 4, 1),),
}
_PRECISE_CDNA = {
    64: (BackwardConfig(32, 64, 4, 1), BackwardConfig(16, 32, 4, 1)),
    128: (BackwardConfig(32, 64, 4, 1), BackwardConfig(16, 32, 4, 1)),
    256: (BackwardConfig(16, 32, 4, 1),),
}
_MENUS = {"sm_90": _HOPPER, "sm_100": _BLACKWELL, "gfx942": _CDNA}
_EVERY = (_HOPPER, _BLACKWELL, _CDNA, _BY_WARPS, _PRECISE, _PRECISE_CDNA)

# Blocks a unit below which each query head has its own block: with so few blocks, the last wave
# leaves much of the machine idle.
FEW_BLOCKS = 2


def configs() -> tuple[BackwardConfig, ...]:
    """Every config of every menu."""
    plain = [config for menu in _EVERY for tiles in menu.values() for config in tiles]
    return tuple(dict.fromkeys([*plain, *(replace(config, spread=True) for config in plain)]))


def menu(problem: Attention, target: str, units: int) -> tuple[BackwardConfig, ...]:
    """Configs for a problem on a target with so many compute units, best guess first.

    If each query head has its own block, all configs are so, and the best tile is also listed
    without.
    """
    b, g, r, _, x, d, e = dims(problem)
    widths = [width for width in _HOPPER if width >= max(d, e)] or [max(_HOPPER)]
    table = _MENUS.get(target, _BY_WARPS)
    if problem.dtype == "fp32":
        table = _PRECISE_CDNA if table is _CDNA else _PRECISE
    tiles = table[widths[0]]
    if r == 1:
        return tiles
    few = b * g * ceil_div(x, tiles[0].bc) < FEW_BLOCKS * units
    ways = tuple(replace(config, spread=few) for config in tiles)
    return (ways[0], replace(ways[0], spread=not few), *ways[1:])


_SHAPES = ((64, 16), (128, 16), (256, 16), (128, 4))

# Full-size problems: head dimensions with and without a mask, and one with grouped queries.
FORMS = tuple(
    Attention(4, 16, kv, 4096, 4096, d, causal=causal, direction="bwd")
    for d, kv in _SHAPES
    for causal in ((False, True) if kv == 16 else (True,))
)
