"""Attention backward whose gradients of keys and values come from specialised warps (Hopper).

D and dQ are made by the kernels of `attention-backward`; dK and dV by that of backward_hopper.py.
Gluon has no interpreter, so the whole cannot be replayed: tests run its source in a model of Gluon,
and its results must be checked on a device before its times count.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel_kernels.attention_backward import (
    arrays_of,
    check,
    delta_launch,
    derive,
    query_launch,
    schedule_of,
)
from perfmodel_kernels.attention_gluon import columns
from perfmodel_kernels.backward_hopper import hopper_key_gradients
from perfmodel_kernels.backward_menu import BackwardConfig
from perfmodel_kernels.common import (
    LOG2E,
    backward_reference,
    ceil_div,
    dims,
    padded,
    scale_of,
)
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_positive_counts

from perfmodel.algorithms import Attention
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Descriptor, Launch
from perfmodel.schedules.schedule import Schedule

NAME = "attention-gluon-backward"
_GROUP_KEYS = 64  # of one wgmma
_GROUPS = 2
_SWIZZLE_BYTES = 128
_WIDEST = 128  # columns of a head whose dK and dV fit in a group's registers
_LOADER_REGISTERS = 24
_GROUP_REGISTERS = 240  # of a thread; both groups and the loader's four warps share 65536


@dataclass(frozen=True)
class GluonBackwardConfig:
    """128 keys by `br` query rows a step, and the tiles of the kernel for dQ."""

    br: int = 64
    """Query rows of a step."""
    stages: int = 2
    """Buffers of queries and of dO."""
    query_br: int = 128
    """Query rows of a block of the kernel for dQ."""
    query_bc: int = 64
    """Keys of a step of that kernel."""
    query_warps: int = 8
    """Warps of its block."""
    query_stages: int = 2
    """Buffers of its pipeline."""

    def __post_init__(self) -> None:
        assert self.plain  # raises for tiles that are no powers of two
        check_positive_counts(stages=self.stages)

    @property
    def bc(self) -> int:
        """Keys of a block."""
        return _GROUPS * _GROUP_KEYS

    @property
    def plain(self) -> BackwardConfig:
        """The same tiles for the kernels of `attention-backward`."""
        keys = (self.br, self.bc, 4 * (_GROUPS + 1), self.stages)
        queries = (self.query_br, self.query_bc, self.query_warps, self.query_stages)
        return BackwardConfig(*keys, *queries, descriptors=True)


def _check(problem: Attention) -> None:
    check(problem)
    *_, d, e = dims(problem)
    if problem.window:
        raise ProblemError(f"{NAME} knows no window; take attention-backward")
    if d != e or padded(d) > _WIDEST:
        raise ProblemError(
            f"{NAME} takes queries and values of one head dimension up to {_WIDEST}, not {d} and "
            f"{e}; take attention-backward"
        )


def _plan(problem: Attention, config: GluonBackwardConfig) -> tuple[Launch, ...]:
    _check(problem)
    b, g, r, q, x, d, _ = dims(problem)
    rows, keys = (1, config.br, columns(problem)), (1, _GROUP_KEYS, columns(problem))
    tiles = {
        **dict.fromkeys(("Q", "dO"), ((b * g * r, q, d), rows)),
        **dict.fromkeys(("K", "V", "dK", "dV"), ((b * g, x, d), keys)),
    }
    gradients = launch(
        "key-gradients", hopper_key_gradients, b * g * ceil_div(x, config.bc),
        _arrays(problem, config), 4, config.stages,
        **{name.upper(): Descriptor(name, *tile, _SWIZZLE_BYTES) for name, tile in tiles.items()},
        NORM="N", DELTA="D", scale=scale_of(problem) * LOG2E, root=scale_of(problem), group=r,
        seq_q=q, seq_kv=x, STAGES=config.stages, CAUSAL=problem.causal,
        REGISTERS=_GROUP_REGISTERS, LOADER_REGISTERS=_LOADER_REGISTERS,
    )  # fmt: skip
    return delta_launch(problem), gradients, query_launch(problem, config.plain)


def _arrays(problem: Attention, config: GluonBackwardConfig) -> tuple[Array, ...]:
    return arrays_of(problem, config.plain)


def _schedule(problem: Attention, config: GluonBackwardConfig) -> Schedule:
    return schedule_of(problem, config.plain)


# Two tiles of scores, dK and dV of 64 keys of 128 columns leave registers for 32 query rows.
_NARROW = (GluonBackwardConfig(64, 2), GluonBackwardConfig(64, 3))
_WIDE = (GluonBackwardConfig(32, 2), GluonBackwardConfig(32, 4))


def _menu(problem: Attention, target: str, units: int) -> tuple[GluonBackwardConfig, ...]:
    del target, units
    return _NARROW if padded(problem.head_dim) <= 64 else _WIDE


def _case(shape: tuple[int, ...], dtype: str, config: GluonBackwardConfig, **more: bool) -> tuple:
    return Attention(*shape, dtype=dtype, direction="bwd", **more), config


_FORMS = tuple(
    Attention(4, 16, kv, 4096, 4096, d, causal=causal, direction="bwd")
    for d, kv in ((64, 16), (128, 16), (128, 4))
    for causal in ((False, True) if kv == 16 else (True,))
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="attention backward with specialised warps for dK and dV",
        dtypes=("fp16", "bf16"),
        configs=(*_WIDE, *_NARROW),
        cases=(
            _case((2, 4, 4, 256, 256, 128), "bf16", GluonBackwardConfig(32)),
            _case((1, 4, 2, 100, 277, 128), "fp16", GluonBackwardConfig(32, 4), causal=True),
            _case((1, 6, 2, 513, 130, 128), "bf16", GluonBackwardConfig(32), causal=True),
            _case((2, 3, 1, 100, 300, 64), "fp16", GluonBackwardConfig()),
            _case((1, 2, 1, 320, 320, 40), "fp16", GluonBackwardConfig(), causal=True),
            # The last key opens a tile.
            _case((1, 2, 2, 257, 257, 64), "fp16", GluonBackwardConfig(64, 3), causal=True),
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=backward_reference,
        derive=derive,
        menu_of=_menu,
        forms=_FORMS,
        targets=("sm_90",),
        style_like="attention-gluon",
        interpreted=False,
    ),
)
