"""Forward attention with specialised warps for every kind of work (Gluon, Blackwell).

The kernel is in attention_blackwell.py. Like the one for Hopper (attention_gluon.py), its results
must be checked on a device before its times count.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel_kernels.attention_blackwell import attention_forward
from perfmodel_kernels.attention_gluon import (
    arguments,
    arrays,
    blocks,
    case,
    check,
    columns,
    reference,
)
from perfmodel_kernels.attention_menus import FORMS
from perfmodel_kernels.common import check_tile, padded

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.compiled.targets import TENSOR_MEMORY_COLUMNS
from perfmodel.proof.kernel import BundledKernel, Launch
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled

NAME = "attention-gluon-blackwell"
_TILES = 2  # query tiles in flight
_TILE_ROWS = 128  # lanes of tensor memory
_WIDEST = 128  # columns of a head: O of two tiles takes half of tensor memory
_PART = 32  # columns of O that are rescaled at once
# Registers of a thread of the softmax groups, of the group that corrects O, and of the loader's and
# the products' warps (four are reserved): 65536 in all.
_REGISTERS = (184, 104, 40)
_WARPS = 16
_MOST_SLACK = 15  # half precision ends below 2^16


@dataclass(frozen=True)
class BlackwellConfig:
    """A tile of the Blackwell kernel: two of 128 query rows by `bc` keys."""

    bc: int = 128
    """Keys of a step."""
    stages: int = 4
    """Buffers of keys or values."""
    ahead: int = 1
    """Key tiles whose scores are in tensor memory for each query tile."""
    slack: int = 8
    """A row's maximum is updated, and O rescaled, once one of its probabilities would exceed
    2^`slack`."""

    def __post_init__(self) -> None:
        check_tile(self.bc, stages=self.stages)
        if self.ahead not in (1, 2):
            raise ProblemError(f"ahead must be 1 or 2, not {self.ahead}")
        if self.stages < 2 * self.ahead:
            raise ProblemError(
                f"stages must be at least {2 * self.ahead} with ahead {self.ahead}, not "
                f"{self.stages}: keys come {self.ahead} tiles before values"
            )
        if not 0 <= self.slack <= _MOST_SLACK:
            raise ProblemError(f"slack must be from 0 to {_MOST_SLACK}, not {self.slack}")

    @property
    def br(self) -> int:
        """Query rows of a block."""
        return _TILES * _TILE_ROWS


def _check(problem: Attention, config: BlackwellConfig) -> None:
    """Raise `ProblemError` for what the kernel cannot do."""
    check(NAME, problem, _WIDEST)
    needed = _TILES * (config.ahead * config.bc + columns(problem))
    if needed > TENSOR_MEMORY_COLUMNS:
        raise ProblemError(
            f"{config} needs {needed} columns of tensor memory for heads of {problem.head_dim}, "
            f"and there are {TENSOR_MEMORY_COLUMNS}; take a smaller bc or ahead"
        )


def _plan(problem: Attention, config: BlackwellConfig) -> tuple[Launch, ...]:
    _check(problem, config)
    softmax, correction, others = _REGISTERS
    launch = Launch(
        "tiled-forward",
        attention_forward,
        (blocks(problem, config.br),),
        arguments(problem, _TILE_ROWS, config.bc),
        {
            "STAGES": config.stages,
            "AHEAD": config.ahead,
            "CAUSAL": problem.causal,
            "SLACK": config.slack,
            "PART": _PART,
            "SOFTMAX_REGISTERS": softmax,
            "CORRECTION_REGISTERS": correction,
            "OTHER_REGISTERS": others,
        },
        num_warps=4,
        num_stages=config.stages,
    )
    return (launch,)


def _schedule(problem: Attention, config: BlackwellConfig) -> Schedule:
    return tiled(
        problem.mask(),
        config.br,
        config.bc,
        order=3,
        stages=config.stages // 2,
        threads=32 * _WARPS,
    )


def menu_of(problem: Attention, target: str, units: int) -> tuple[BlackwellConfig, ...]:
    """Configs worth trying, best guess first: those that fit the head dimension without spills."""
    del target, units
    if padded(problem.head_dim) <= 64:
        return (BlackwellConfig(128, 8), BlackwellConfig(64, 12, ahead=2))
    return (BlackwellConfig(128, 4), BlackwellConfig(64, 8, ahead=2))


# Ragged ends, grouped heads, and causal masks with more and with fewer keys than queries. With
# slack 0, O is rescaled in every key tile that raises a maximum.
CASES = (
    case((2, 4, 4, 512, 512, 128), "bf16", BlackwellConfig()),
    case((1, 4, 2, 300, 777, 128), "fp16", BlackwellConfig(slack=0), causal=True),
    case((1, 6, 2, 513, 130, 128), "bf16", BlackwellConfig(64, 8, 2), causal=True),
    case((2, 3, 1, 100, 1000, 64), "fp16", BlackwellConfig(64, 12, 2, slack=0)),
    case((1, 2, 2, 1, 65, 64), "bf16", BlackwellConfig(128, 8), causal=True),
    case((1, 2, 1, 640, 640, 40), "fp16", BlackwellConfig(64, 5), causal=True),
    case((1, 2, 2, 200, 500, 128), "bf16", BlackwellConfig(64, 4, 2, slack=0), causal=True),
    # The last key opens a tile.
    case((1, 2, 2, 257, 257, 128), "fp16", BlackwellConfig(), causal=True),
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="tiled attention forward with specialised warps and tensor memory, "
        "FlashAttention-4's order",
        dtypes=("fp16", "bf16"),
        configs=(
            BlackwellConfig(128, 4),
            BlackwellConfig(64, 8, ahead=2),
            BlackwellConfig(128, 8),
            BlackwellConfig(64, 12, ahead=2),
        ),
        cases=CASES,
        arrays=arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=reference,
        menu_of=menu_of,
        forms=tuple(form for form in FORMS if form.head_dim <= _WIDEST),
        targets=("sm_100",),
        style_like="flash4",
        interpreted=False,
    ),
)
