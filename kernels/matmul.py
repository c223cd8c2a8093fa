"""Tiled matmul in three forms: one tile of C a block, split-K, and persistent blocks.

C[b] = A[b]·B[b] in fp32 (int32 for integers), fp16, bf16, fp8 and int8. Tiles are launched in
grouped order: all columns of `group_m` rows of tiles before the next rows, so that concurrent tiles
share operands in L2. Split-K writes fp32 partial tiles that a second kernel adds. The persistent
form launches as many blocks as the device holds; each loads data of its next tile while the last
one is being stored.

8-bit B is stored in column-major order (k contiguous), which wgmma requires for 8-bit operands and
cuBLAS takes as well. All other operands are row-major.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from perfmodel_kernels.common import ceil_div
from perfmodel_kernels.limits import check_offsets, check_positive_counts, check_powers
from perfmodel_kernels.matmul_code import combine, matmul, matmul_descriptors
from perfmodel_kernels.matmul_config import MatmulConfig
from perfmodel_kernels.matmul_menus import (
    Menu,
    by_columns,
    one_block_a_tile,
    persistent,
    split_k,
)
from perfmodel_kernels.menus import every

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Argument, Array, BundledKernel, Descriptor, Launch, Tensors
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.schedule import Schedule

# A group height above that of any problem: one group holds all rows of tiles.
ALL_ROWS = 1 << 14
# Factor from the accumulator to the result of an integer matmul.
INTEGER_SCALE = 1.0 / 1024
# Rows and columns of a tile of the kernel that adds up partial results, and its warps.
COMBINE_TILE = (4, 256)
COMBINE_WARPS = 4


def _slices(problem: Matmul, config: MatmulConfig) -> int:
    return ceil_div(problem.k, config.split_k or problem.k)


def _arrays(problem: Matmul, config: MatmulConfig) -> tuple[Array, ...]:
    kinds = matmul_format(problem.dtype)
    m, n, k, b = problem.m, problem.n, problem.k, problem.batch
    slices = _slices(problem, config)
    parts = (Array("parts", (b, slices, m, n), "fp32", "scratch", "C"),) if slices > 1 else ()
    return (
        Array("A", (b, m, k), kinds.activations),
        Array("B", (b, k, n), kinds.weights, by_columns=by_columns(problem)),
        *parts,
        Array("C", (b, m, n), kinds.output, "output"),
    )


def _scale(problem: Matmul) -> float:
    return INTEGER_SCALE if matmul_format(problem.dtype).compute == "int8" else 1.0


def _check(problem: Matmul, config: MatmulConfig) -> None:
    """Raise `ProblemError` for a config that contradicts itself or cannot do the problem."""
    check_powers(bm=config.bm, bn=config.bn, bk=config.bk, warps=config.warps)
    check_positive_counts(
        group_m=config.group_m,
        split_k=config.split_k,
        persistent=config.persistent,
        stages=config.stages,
    )
    descriptors, split = config.descriptors, config.split_k or problem.k
    if descriptors not in ("none", "host", "block"):
        raise ProblemError(f"descriptors are none, host or block, not {descriptors!r}")
    if config.subtiles not in (1, 2, 4):
        raise ProblemError(f"a tile leaves in 1, 2 or 4 subtiles, not {config.subtiles}")
    if config.flatten and config.persistent is None:
        raise ProblemError("flatten needs persistent: a block of one tile has one loop")
    if descriptors == "none":
        if config.specialise or config.subtiles > 1:
            raise ProblemError("specialise and subtiles need descriptors=host or descriptors=block")
        bm, bn = config.bm, config.bn
        check_offsets(bm, bn, bm * problem.k, bn * problem.k, bm * problem.n)
        return
    if descriptors == "block" and (problem.batch > 1 or split < problem.k):
        raise ProblemError(
            "descriptors=block takes one product in one slice; take descriptors=host"
        )
    if split < problem.k and split % config.bk:
        raise ProblemError(
            f"with descriptors a slice ends where a step does: split_k={split} is no multiple of "
            f"bk={config.bk}; take one that is, or descriptors=none"
        )


def _descriptors(problem: Matmul, config: MatmulConfig) -> dict[str, Descriptor]:
    """The tensor descriptors of the kernel by parameter, checked for alignment."""
    m, n, k, b = problem.m, problem.n, problem.k, problem.batch
    slices = _slices(problem, config)
    bm, bn, bk = config.bm, config.bn, config.bk
    b_shape, b_block = ((b, n, k), (1, bn, bk)) if by_columns(problem) else ((b, k, n), (1, bk, bn))
    out = Descriptor(
        "parts" if slices > 1 else "C", (b * slices, m, n), (1, bm, bn // config.subtiles)
    )
    return {
        "A": Descriptor("A", (b, m, k), (1, bm, bk)),
        "B": Descriptor("B", b_shape, b_block),
        "C": out,
    }


def _operands(problem: Matmul, config: MatmulConfig) -> dict[str, Argument]:
    """A, B and C as the kernel takes them: descriptors, or arrays by name."""
    made = _descriptors(problem, config)
    if config.descriptors == "host":
        return dict(made)
    if config.descriptors == "block":
        items = {array.name: array.item_bytes for array in _arrays(problem, config)}
        for found in made.values():
            wrong = found.misalignment(items[found.array])
            if wrong:
                raise ProblemError(f"{config}: {wrong}")
    return {name: found.array for name, found in made.items()}


def _plan(problem: Matmul, config: MatmulConfig) -> tuple[Launch, ...]:
    _check(problem, config)
    m, n, k = problem.m, problem.n, problem.k
    slices, split = _slices(problem, config), min(config.split_k or k, k)
    tiles = problem.batch * slices * ceil_div(m, config.bm) * ceil_div(n, config.bn)
    by_pointers = config.descriptors == "none"
    sizes: dict[str, Argument] = {"m": m, "n": n, "k": k, "split_k": split, "tiles": tiles}
    fixed = {
        "BM": config.bm,
        "BN": config.bn,
        "BK": config.bk,
        "GROUP": config.group_m or ALL_ROWS,
        "SPLIT": slices > 1,
        "INTEGER": matmul_format(problem.dtype).compute == "int8",
        "SCALE": 1.0 if slices > 1 else _scale(problem),
        "BY_COLUMNS": by_columns(problem),
        "PERSISTENT": config.persistent is not None,
        "FLATTEN": config.flatten,
    }
    if by_pointers:
        fixed["EVEN"] = k % config.bk == 0 and split % config.bk == 0
    else:
        fixed |= {
            "SUBTILES": config.subtiles,
            "SPECIALISE": config.specialise,
            "HERE": config.descriptors == "block",
        }
    product = Launch(
        "matmul",
        matmul if by_pointers else matmul_descriptors,
        (min(tiles, config.persistent or tiles),),
        _operands(problem, config) | sizes,
        fixed,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return (product,) if slices == 1 else (product, _combination(problem, slices))


def _combination(problem: Matmul, slices: int) -> Launch:
    rows, columns = COMBINE_TILE
    blocks = problem.batch * ceil_div(problem.m, rows) * ceil_div(problem.n, columns)
    arguments = {"PARTS": "parts", "C": "C", "m": problem.m, "n": problem.n, "slices": slices}
    fixed = {"TR": rows, "TC": columns, "SCALE": _scale(problem)}
    return Launch("combine", combine, (blocks,), arguments, fixed, num_warps=COMBINE_WARPS)


def _schedule(problem: Matmul, config: MatmulConfig) -> Schedule:
    return tiled_matmul(
        config.bm,
        config.bn,
        config.bk,
        group_m=config.group_m,
        split_k=config.split_k,
        stages=config.stages,
        threads=32 * config.warps,
        combine_tile=COMBINE_TILE,
    )


def _reference(problem: Matmul, tensors: Tensors) -> Tensors:
    result = tensors["A"].double().cpu() @ tensors["B"].double().cpu() * _scale(problem)
    if matmul_format(problem.dtype).output == "int8":
        return {"C": torch.trunc(result.clamp(-128, 127))}
    return {"C": result}


def _cases(*rows: tuple[tuple[int, int, int, int], str, MatmulConfig]) -> tuple:
    return tuple((Matmul(m, n, k, b, dtype), config) for (m, n, k, b), dtype, config in rows)


_SMALL = MatmulConfig(32, 64, 32, group_m=2)
_TMA = MatmulConfig(64, 64, 32, group_m=2, descriptors="host")
_GROUPED = _cases(
    ((300, 200, 130, 1), "fp32", MatmulConfig(128, 64, 32)),
    ((300, 200, 130, 1), "fp16", MatmulConfig(64, 128, 64, group_m=None)),
    ((65, 129, 97, 3), "fp16", _SMALL),
    ((1, 500, 77, 1), "fp32", MatmulConfig(16, 64, 32, group_m=4)),
    ((256, 128, 64, 2), "fp16", MatmulConfig(64, 64, 32, group_m=3)),
    ((100, 90, 130, 1), "fp8", _SMALL),
    ((100, 90, 130, 1), "w8a8_int8", _SMALL),
    ((64, 70, 40, 2), "int8", _SMALL),
    ((128, 128, 96, 1), "fp16", _TMA),
    ((150, 136, 104, 2), "fp16", replace(_TMA, subtiles=4)),
    ((70, 80, 144, 2), "w8a8_int8", replace(_TMA, subtiles=2)),
    ((130, 72, 48, 1), "fp8", replace(_TMA, descriptors="block", specialise=True)),
)
_SPLIT = _cases(
    ((96, 80, 512, 1), "fp32", MatmulConfig(32, 32, 32, split_k=128)),
    ((65, 70, 500, 2), "fp16", MatmulConfig(32, 64, 32, split_k=192)),
    ((17, 33, 130, 1), "fp16", MatmulConfig(16, 16, 16, group_m=None, split_k=40)),
    ((64, 64, 100, 1), "fp32", MatmulConfig(32, 32, 32, split_k=128)),
    ((50, 60, 300, 1), "w8a8_int8", MatmulConfig(32, 32, 32, split_k=100)),
    ((65, 72, 304, 2), "fp16", replace(_TMA, split_k=128)),
)
_PERSISTENT = _cases(
    ((300, 200, 130, 1), "fp32", MatmulConfig(64, 64, 32, persistent=4, flatten=True)),
    ((65, 129, 97, 3), "fp16", MatmulConfig(32, 64, 32, group_m=2, persistent=5)),
    ((128, 128, 64, 1), "fp16", MatmulConfig(32, 32, 32, persistent=100)),
    ((33, 250, 70, 1), "fp16", MatmulConfig(16, 32, 64, group_m=None, persistent=3)),
    ((90, 91, 92, 2), "fp32", MatmulConfig(64, 32, 32, split_k=48, persistent=7)),
    ((150, 136, 104, 2), "fp16", replace(_TMA, persistent=5, subtiles=2, flatten=True)),
    ((130, 72, 48, 1), "fp16", replace(_TMA, persistent=3, descriptors="block", specialise=True)),
)
_SQUARES = tuple(
    Matmul(n, n, n, 1, dtype)
    for n, dtype in (
        (4096, "bf16"),
        (8192, "bf16"),
        (8192, "fp16"),
        (8192, "fp8"),
        (8192, "w8a8_int8"),
        (4096, "int8"),
        (4096, "fp32"),
    )
)
_BATCH, _RAGGED = Matmul(1024, 1024, 1024, 32, "bf16"), Matmul(1111, 2222, 3333, 1, "bf16")
_SKINNY = tuple(Matmul(16, 4096, 16384, 1, dtype) for dtype in ("bf16", "fp8", "w8a8_int8", "fp32"))
_DEEP = tuple(Matmul(512, 512, 16384, 1, dtype) for dtype in ("bf16", "fp8", "fp32"))


def _kernel(name: str, summary: str, menu_of: Menu, forms: tuple, cases: tuple) -> BundledKernel:
    return BundledKernel(
        name=name,
        summary=summary,
        dtypes=("fp32", "fp16", "bf16", "fp8", "int8", "w8a8_int8"),
        # First those that take any problem.
        configs=tuple(sorted(every(menu_of, forms), key=lambda c: c.descriptors != "none")),
        cases=cases,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=menu_of,
        forms=forms,
        overlaps=lambda config: config.specialise or config.flatten,
    )


KERNELS = (
    _kernel(
        "matmul",
        "tiled matmul in grouped launch order",
        one_block_a_tile,
        (*_SQUARES, _BATCH, _RAGGED, *_SKINNY),
        _GROUPED,
    ),
    _kernel(
        "matmul-split-k",
        "matmul with k over the grid and a reduction kernel",
        split_k,
        (*_SKINNY, *_DEEP),
        _SPLIT,
    ),
    _kernel(
        "matmul-persistent",
        "matmul whose blocks walk the tiles",
        persistent,
        (*_SQUARES, _BATCH, _RAGGED),
        _PERSISTENT,
    ),
)
