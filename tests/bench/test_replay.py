"""Replay: every byte that a kernel asks for is a byte that the rule counts, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import triton
import triton.language as tl
from perfmodel_kernels import attention_tiled

from perfmodel.algorithms import Attention, Matmul
from perfmodel.count import Traffic
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.kernel import KernelError
from perfmodel.proof.replay import suite
from perfmodel.proof.replay.recorder import Recorder
from perfmodel.proof.replay.replay import replay

RANGES = attention_tiled.key_ranges
EVERY = sorted(name for name, kernel in registry.kernels().items() if kernel.interpreted)


def one_group(problem):
    """A problem with one group of heads: each group asks for the same, edges and all."""
    if not isinstance(problem, Attention):
        return problem
    group = problem.heads_q // problem.heads_kv
    return replace(problem, batch=min(problem.batch, 2), heads_q=group, heads_kv=1)


@pytest.mark.parametrize("name", EVERY)
def test_asked_bytes_equal_counted_bytes_on_every_case(name):
    """The first case is replayed whole; `make evidence` replays all of them so."""
    kernel = registry.kernel(name)
    assert len(kernel.cases) >= 5
    whole, *others = kernel.cases
    cases = [whole, *((one_group(problem), config) for problem, config in others)]
    for seed, (problem, config) in enumerate(cases):
        found = replay(name, problem, config, seed=seed)
        wrong = [row for row in found.tensors if not row.equal]
        assert not wrong, (problem, config, wrong)
        assert found.asked_bytes == found.counted_bytes > 0
        assert suite.passes(found), (problem, config, found.largest_error)


@triton.jit
def ranges_without_a_last_key_that_opens_a_tile(
    i, seq_q, seq_kv,
    ROWS: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    first, whole, edge, last = RANGES(i, seq_q, seq_kv, ROWS, BC, CAUSAL, WINDOW)
    last = tl.where(last % BC == 1, last - 1, last)
    return first, tl.minimum(whole, last), tl.minimum(edge, last), last


def test_a_mask_that_drops_the_last_key_of_a_tile_of_its_own_is_seen(monkeypatch):
    monkeypatch.setattr(attention_tiled, "key_ranges", ranges_without_a_last_key_that_opens_a_tile)
    kernel = registry.kernel("attention-tiled")
    seen = [suite.passes(replay(kernel.name, *case)) for case in kernel.cases if case[0].causal]
    assert seen == [True] * (len(seen) - 1) + [False]


@pytest.mark.parametrize("name", [name for name in registry.kernels() if "attention" in name])
def test_every_attention_kernel_has_a_causal_case_whose_last_key_opens_a_tile(name):
    key_tile = "bn" if "standard" in name else "bc"
    cases = [case for case in registry.kernel(name).cases if case[0].causal]
    tiles = [getattr(problem, "page", getattr(config, key_tile, None)) for problem, config in cases]
    assert 1 in [case[0].seq_kv % tile for case, tile in zip(cases, tiles, strict=True)]


@pytest.mark.parametrize("accounting", ["paper", "literal", "impl"])
@pytest.mark.parametrize("lengths", [(70, 70), (90, 40)])
def test_flash1_spills_what_each_accounting_says(accounting, lengths):
    kernel = registry.kernel("attention-flash1")
    config = replace(kernel.configs[0], br=16, bc=32, accounting=accounting)
    for causal in (False, True):
        problem = Attention(1, 2, 1, *lengths, 16, causal=causal, dtype="fp16")
        found = replay("attention-flash1", problem, config)
        assert found.equal, [row for row in found.tensors if not row.equal]
        assert found.largest_error < 3e-3


def test_reproduces_figure_2_of_flash_attention():
    # One head is one block and all heads do the same; one is replayed, 1024 are counted. Larger
    # query tiles than the paper's change nothing here (Q crosses once per key tile either way).
    points = suite.figure_2(heads=1, br=256)
    assert [point.bc for point in points] == [64, 128, 256, 512]
    assert all(point.holds for point in points), points
    # (3·Tc + 1)·N·d elements of two bytes for 1024 heads: 13 units of 134 217 728 B at Bc = 256.
    assert points[2].replayed_bytes == 13 * 1024 * 64 * 2 * 1024


def test_figure_2_at_the_papers_own_tile():
    (point,) = suite.figure_2(heads=1, br=64, sizes=[512])
    assert point.holds


def test_the_progress_callback_sees_every_block():
    seen = []
    found = replay(
        "matmul-split-k", progress=lambda done, every: seen.append((done, every)), check=False
    )
    assert [done for done, _ in seen] == list(range(1, found.blocks + 1))
    assert {every for _, every in seen} == {found.blocks}
    assert found.largest_error is None


def test_a_kernel_that_loads_more_than_it_declares_is_found_out(monkeypatch):
    kernel = registry.kernel("rmsnorm")
    problem, config = kernel.cases[0]
    tampered = replace(kernel, plan=lambda p, c: kernel.plan(p, c) * 2)
    monkeypatch.setattr(registry, "kernel", lambda _: tampered)
    found = replay("rmsnorm", problem, config)
    assert not found.equal
    assert found.asked_bytes == 2 * found.counted_bytes


def test_a_device_adds_the_memory_boundary():
    device = load("t4")
    config = replace(registry.kernel("matmul").configs[0], bm=64, bn=64, bk=64)
    problem = Matmul(512, 512, 256, dtype="fp16")
    found = replay("matmul", problem, config, device, check=False)
    (cache,) = found.cache
    # All of it fits in 4 MB: each operand in once, the result out once.
    assert cache.simulated_read_bytes == 2 * 512 * 256 * 2
    assert cache.simulated_write_bytes == 512 * 512 * 2
    assert cache.hit_rate == pytest.approx(1 - cache.simulated_read_bytes / found.asked_bytes)
    assert cache.model_bytes == pytest.approx(cache.simulated_bytes, rel=0.15)
    assert found.device == "t4"


def test_the_recorder_counts_active_lanes_and_names_the_array():
    recorder = Recorder({"A": (1000, 1100), "B": (2000, 2100)})
    pointers = np.array([1000, 1004, 1008, 5000], dtype=np.uint64)
    recorder.record(pointers, np.array([True, True, True, False]), 4, "read")
    recorder.record(np.array([2000], dtype=np.uint64), None, 4, "atomic")
    recorder.record(pointers, np.zeros(4, dtype=bool), 4, "write")
    assert recorder.tally.bytes == {("A", "read"): 12, ("B", "atomic"): 4}
    assert recorder.tally.accesses == 4
    assert recorder.tally.operations == 3


@pytest.mark.parametrize("at", [996, 1098, 1500])
def test_an_access_outside_every_array_is_an_error(at):
    recorder = Recorder({"A": (1000, 1100)})
    with pytest.raises(KernelError, match="leaves the arrays"):
        recorder.record(np.array([at], dtype=np.uint64), None, 4, "read")


def test_atomics_cross_both_ways():
    found = replay("attention-backward")
    (dq,) = [row for row in found.tensors if row.tensor == "dQ32" and row.kernel != "conversion"]
    assert dq.asked == Traffic(atomic_bytes=dq.asked.atomic_bytes)
    assert dq.asked.total_bytes == 2 * dq.asked.atomic_bytes > 0


def test_a_process_that_compiles_cannot_replay():
    code = (
        "import triton\n"
        "from perfmodel.errors import PerfmodelError\n"
        "from perfmodel.proof.replay.replay import replay\n"
        "try: replay('copy')\n"
        "except PerfmodelError as error: print(error)\n"
    )
    bare = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=bare
    )
    assert "TRITON_INTERPRET=1" in done.stdout
    assert done.stdout.count("\n") == 1
