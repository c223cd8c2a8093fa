"""Blocks that a unit holds, by the CUDA occupancy rules, and the tiles that fit on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cases import cases

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.schedules import rowwise
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import attention_backward
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency

A100 = machine(load("a100-sxm4-80gb"))
KIB = 1024


def blocks(here, threads: int, *, tile=(64, 64), depth=64, stages=2, most=np.inf) -> float:
    """Blocks of a 16-bit product that a unit holds at once."""
    problem = Matmul(4096, 4096, 4096)
    schedule = tiled_matmul(*tile, depth, stages=stages, threads=threads)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    return float(residency(here, cost, most).blocks_per_unit)


def test_the_least_of_four_limits_holds_the_blocks():
    # Shared memory: 2 · (64 + 64) · 64 · 2 B = 32 KiB a block and 1 KiB of the system, so 164 KiB
    # hold 4. Registers: 16 KiB of sums and 40 of 4 B for each of 128 threads, so 256 KiB hold 7.
    assert blocks(A100, 128) == 4
    roomy = replace(A100, shared_capacity=1e9)
    assert blocks(roomy, 128) == 7
    # 1,024 threads with 16 KiB and 160 KiB: one block; no more than 255 registers a thread.
    assert blocks(roomy, 1024) == 1
    # 2,048 threads are 64 blocks of 32, of which the unit takes 32 (capability 8.0).
    many = replace(roomy, registers_bytes=1e9)
    assert blocks(many, 128) == 16
    assert blocks(many, 96) == 21
    assert blocks(many, 32) == 32
    assert blocks(replace(many, max_threads=1024.0), 128) == 8
    assert blocks(replace(many, max_blocks=5.0), 128) == 5
    # What a kernel's launch bounds allow.
    assert blocks(many, 128, most=3) == 3


def test_a_thread_has_no_more_registers_than_it_may_and_the_rest_spills():
    # 256 × 256 sums in 128 threads are 512 registers each: 256 of them, 128 KiB, are held.
    wide = replace(A100, shared_capacity=1e9, shared_per_block=1e9)
    assert blocks(wide, 128, tile=(256, 256)) == 2
    # In 512 threads 256 KiB of sums and 80 KiB beside them: as much as there is, and one block.
    assert blocks(wide, 512, tile=(256, 256)) == 1


def test_a_block_above_its_own_limit_does_not_run_at_all():
    # Three stages of 128 × 128 tiles, 96 KiB, and of 256 × 128 ones, 144 KiB, on 163 KiB; of 256².
    assert blocks(A100, 256, tile=(128, 128), stages=3) == 1
    assert blocks(A100, 256, tile=(256, 128), stages=3) == 1
    assert blocks(A100, 256, tile=(256, 256), stages=3) == 0
    exact = replace(A100, shared_per_block=float(96 * KIB))
    assert blocks(exact, 256, tile=(128, 128), stages=3) == 1
    assert (
        blocks(replace(exact, shared_per_block=96.0 * KIB - 1), 256, tile=(128, 128), stages=3) == 0
    )


def test_kernels_that_stream_rows_hold_two_blocks_of_1024_threads():
    # 24 registers of 1,024 threads are 96 KiB.
    problem = Rowwise("rmsnorm", 4096, 65536)
    schedule = rowwise.rows(problem, column_tile=1024, threads=1024)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    assert residency(A100, cost).blocks_per_unit == 2


# ---- The backward pass of attention --------------------------------------------------------------


def backward_tile(slug: str, dim: int, order: int = 2, **changed: float):
    """Rows × keys of a backward block, all that are tried, and buffers of its queries."""
    problem = Attention(1, 1, 1, 1024, 1024, dim, dtype="fp16", direction="bwd")
    here = replace(machine(load(slug)), **changed)
    br, bc, stages = attention_backward._backward_tiles(
        problem, here, order, sums_apart=here.architecture.sums_apart
    )
    return list(zip(br[0].tolist(), bc[0].tolist(), strict=True)), stages


@cases
def test_backward_tiles_are_the_first_that_fit(slug, dim, tiles, stages):
    assert backward_tile(slug, dim) == ([tuple(tile) for tile in tiles], stages)


def test_backward_tiles_fit_in_registers_as_well():
    # S, P and dP of 128 × 128, dK and dV of 128 × 64 in fp32: 256 KiB, all that a unit has.
    assert backward_tile("h100-sxm", 64, registers_bytes=256.0 * KIB) == ([(128, 128)], 2)
    less = {"registers_bytes": 256.0 * KIB - 1}
    assert backward_tile("h100-sxm", 64, **less) == ([(64, 128), (128, 64)], 2)
    # Of 64 × 128 and 128 × 64 the second needs fewer: 144 KiB.
    assert backward_tile("h100-sxm", 64, registers_bytes=144.0 * KIB)[0][1] == (128, 64)
    assert backward_tile("h100-sxm", 64, registers_bytes=144.0 * KIB - 1) == ([(64, 64)], 2)
    # Nothing fits in next to nothing: the smallest is taken.
    assert backward_tile("h100-sxm", 64, registers_bytes=1.0) == ([(16, 16)], 1)
    # Either footprint alone is not enough.
    assert backward_tile("h100-sxm", 128, registers_bytes=1e9) == ([(128, 128)], 2)


@cases
def test_flash_1_takes_16_queries_by_the_most_keys_that_fit(slug, dim, keys):
    assert backward_tile(slug, dim, order=1) == ([(16, keys)], 2)
