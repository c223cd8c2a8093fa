"""Forward attention with specialised warps for loads and for products (Gluon, Hopper).

The kernel is in attention_hopper.py. Gluon has no interpreter, so the kernel cannot be replayed:
its results must be checked on a device before its times count.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel_kernels.attention_hopper import attention_forward
from perfmodel_kernels.attention_menus import FORMS
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    check_forward,
    check_tile,
    dims,
    forward_reference,
    inputs,
    padded,
    scale_of,
)

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Argument, Array, BundledKernel, Descriptor, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled

NAME = "attention-gluon"
_GROUP_ROWS = 64  # of one wgmma
_SWIZZLE_BYTES = 128
_LOADER_REGISTERS = 24
# Registers of a thread in a group, by groups; all groups and the loader's four warps share 65536.
_GROUP_REGISTERS = {2: 240, 3: 160}


@dataclass(frozen=True)
class GluonConfig:
    """A tile of the Hopper kernel: groups of 64 query rows by `bc` keys."""

    bc: int = 128
    """Keys of a step."""
    stages: int = 2
    """Buffers of keys and of values."""
    groups: int = 2
    """Groups of warps."""
    turns: bool = True
    """Whether the groups take turns in issuing their products."""

    def __post_init__(self) -> None:
        check_tile(self.bc, stages=self.stages)
        if self.groups not in _GROUP_REGISTERS:
            raise ProblemError(f"groups must be 2 or 3, not {self.groups}")

    @property
    def br(self) -> int:
        """Query rows of a block."""
        return self.groups * _GROUP_ROWS


def check(kernel: str, problem: Attention, widest: int) -> None:
    """Raise `ProblemError` for what no Gluon kernel with heads of `widest` columns can do."""
    check_forward(kernel, problem)
    _, _, _, _, _, d, e = dims(problem)
    if problem.window:
        raise ProblemError(f"{kernel} knows no window; take attention-tiled")
    if d != e or padded(d) > widest:
        raise ProblemError(
            f"{kernel} takes queries and values of one head dimension up to {widest}, not {d} and "
            f"{e}; take attention-tiled"
        )
    if (problem.kv_dtype or problem.dtype) != problem.dtype:
        raise ProblemError(
            f"{kernel} takes keys and values of the queries' type; leave kv_dtype out"
        )


def arrays(problem: Attention, config: object) -> tuple[Array, ...]:
    """Q, K and V, then O and L."""
    b, g, r, q, _, _, e = dims(problem)
    return (
        *inputs(problem),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def arguments(problem: Attention, query_rows: int, bc: int) -> dict[str, Argument]:
    """Descriptors of tiles of `query_rows` queries and `bc` keys, and the scalars."""
    b, g, r, q, x, d, _ = dims(problem)
    wide = columns(problem)
    rows, keys = (1, query_rows, wide), (1, bc, wide)
    return {
        "Q": Descriptor("Q", (b * g * r, q, d), rows, _SWIZZLE_BYTES),
        "K": Descriptor("K", (b * g, x, d), keys, _SWIZZLE_BYTES),
        "V": Descriptor("V", (b * g, x, d), keys, _SWIZZLE_BYTES),
        "OUT": Descriptor("O", (b * g * r, q, d), rows, _SWIZZLE_BYTES),
        "L": "L",
        "scale": scale_of(problem) * LOG2E,
        "group": r,
        "seq_q": q,
        "seq_kv": x,
    }


def columns(problem: Attention) -> int:
    """Columns of a head's tile in shared memory: at least the width of a swizzle."""
    return max(padded(problem.head_dim), _SWIZZLE_BYTES // 2)


def blocks(problem: Attention, br: int) -> int:
    """Thread blocks with one tile of `br` query rows each."""
    b, g, r, q, _, _, _ = dims(problem)
    return b * g * r * ceil_div(q, br)


def _plan(problem: Attention, config: GluonConfig) -> tuple[Launch, ...]:
    check(NAME, problem, 256)
    launch = Launch(
        "tiled-forward",
        attention_forward,
        (blocks(problem, config.br),),
        arguments(problem, _GROUP_ROWS, config.bc),
        {
            "STAGES": config.stages,
            "GROUPS": config.groups,
            "CAUSAL": problem.causal,
            "TURNS": config.turns,
            "REGISTERS": _GROUP_REGISTERS[config.groups],
            "LOADER_REGISTERS": _LOADER_REGISTERS,
        },
        num_warps=4,
        num_stages=config.stages,
    )
    return (launch,)


def _schedule(problem: Attention, config: GluonConfig) -> Schedule:
    return tiled(
        problem.mask(),
        config.br,
        config.bc,
        order=3,
        stages=config.stages,
        threads=128 * (config.groups + 1),
    )


def reference(problem: Attention, tensors: Tensors) -> Tensors:
    """O and L in float64."""
    found = forward_reference(problem, tensors)
    return {"O": found["O"], "L": found["L"]}


def menu_of(problem: Attention, target: str, units: int) -> tuple[GluonConfig, ...]:
    """Configs worth trying, best guess first: those that fit the head dimension without spills."""
    del target, units
    wide = padded(problem.head_dim)
    if wide <= 64:
        return (GluonConfig(128, 2), GluonConfig(128, 2, turns=False), GluonConfig(64, 3, groups=3))
    if wide <= 128:
        return (GluonConfig(128, 2), GluonConfig(128, 2, turns=False), GluonConfig(64, 4))
    return (GluonConfig(64, 2), GluonConfig(64, 2, turns=False))


def case(shape: tuple[int, ...], dtype: str, config: object, **more: object) -> tuple:
    """A small problem with its config."""
    return Attention(*shape, dtype=dtype, **more), config


# Ragged ends, grouped heads, causal masks with more and with fewer keys than queries.
CASES = (
    case((2, 4, 4, 512, 512, 128), "bf16", GluonConfig()),
    case((1, 4, 2, 300, 777, 128), "fp16", GluonConfig(), causal=True),
    case((1, 6, 2, 513, 130, 128), "bf16", GluonConfig(turns=False), causal=True),
    case((2, 3, 1, 100, 1000, 64), "fp16", GluonConfig(64, 3, groups=3)),
    case((1, 2, 2, 1, 65, 64), "bf16", GluonConfig(128, 3), causal=True),
    case((1, 2, 1, 640, 640, 40), "fp16", GluonConfig(64, 4, groups=3), causal=True),
    case((1, 2, 2, 200, 500, 256), "bf16", GluonConfig(64, 2), causal=True),
    # The last key opens a tile.
    case((1, 2, 2, 257, 257, 128), "fp16", GluonConfig(), causal=True),
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="tiled attention forward with specialised warps, FlashAttention-3's order",
        dtypes=("fp16", "bf16"),
        configs=(
            GluonConfig(128, 2),
            GluonConfig(128, 2, turns=False),
            GluonConfig(64, 4),
            GluonConfig(64, 2),
            GluonConfig(64, 2, turns=False),
            GluonConfig(64, 3, groups=3),
        ),
        cases=CASES,
        arrays=arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=reference,
        menu_of=menu_of,
        forms=FORMS,
        targets=("sm_90",),
        style_like="attention-gluon",
        interpreted=False,
    ),
)
