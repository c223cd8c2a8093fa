"""Attention: worked examples with their arithmetic written out."""

from __future__ import annotations

import pytest

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.schedules.standard import standard, standard_backward
from perfmodel.schedules.tiled import split_kv, tiled, tiled_backward


def counts(make, problem: Attention, *args, **options):
    return count(make(problem.mask(), *args, **options), problem.sizes(), problem.elements())


def elements(make, problem: Attention, *args, **options) -> dict[str, tuple[float, float]]:
    """(read, written) elements of each tensor, from bytes of one width."""
    cost = counts(make, problem, *args, **options)
    width = {name: float(kind.bits / 8) for name, kind in problem.elements().items()}
    tensors = cost.schedule.algorithm.tensors
    found = {}
    for name, traffic in cost.kernels[0].l2.items():
        each = width[tensors[name].element]
        found[name] = traffic.read_bytes / each, traffic.write_bytes / each
    return found


def square(n: int, dim: int = 64, **options) -> Attention:
    return Attention(1, 1, 1, n, n, dim, **options)


# reference/counting.md. Reads of Q, K, V, O and writes of O, in elements.
WORKED = [
    # ⌈1000/128⌉ = 8 query tiles read K and V: 8 · 64,000 = 512,000.
    ("FA2 order", tiled, square(1000), (128, 64), {}, (64_000, 512_000, 512_000, 0), 64_000),
    # ⌈1000/64⌉ = 16 key tiles read Q and write O: 16 · 64,000; O is read back 15 times.
    (
        "FA1 order", tiled, square(1000), (128, 64), {"order": 1, "accounting": "paper"},
        (1_024_000, 64_000, 64_000, 960_000), 1_024_000,
    ),
    # N = 256 in tiles of 64: Tc = 4, Nd = 16,384; 4 + 1 + 1 + 3 read and 4 written: 13 Nd.
    (
        "FA1 order, (3Tc+1)Nd = 212,992", tiled, square(256), (64, 64),
        {"order": 1, "accounting": "paper"}, (65_536, 16_384, 16_384, 49_152), 65_536,
    ),
    # Tile i sees 2(i+1) key tiles, the last 16: 2 + 4 + … + 16 = 72 pairs. The last tile's last
    # key tile holds 40 keys: (71 · 64 + 40) · 64 = 293,376.
    ("causal", tiled, square(1000, causal=True), (128, 64), {},
     (64_000, 293_376, 293_376, 0), 64_000),
    # 1 + 2 + … + 16 = 136 pairs, one of them 40 keys wide: (135 · 64 + 40) · 64 = 555,520.
    ("causal, square tiles", tiled, square(1000, causal=True), (64, 64), {},
     (64_000, 555_520, 555_520, 0), 64_000),
    # Tile i sees ⌈128(i+1)/96⌉ = 2, 3, 4, 6, 7, 8, 10, 11 key tiles: 51 pairs, the last 40 keys
    # wide (1000 − 10 · 96): (50 · 96 + 40) · 64 = 309,760.
    ("causal, tiles that do not nest", tiled, square(1000, causal=True), (128, 96), {},
     (64_000, 309_760, 309_760, 0), 64_000),
    # 200 queries stand at keys 800 … 999. Tile 0 ends at 928: 15 key tiles, 960 keys; tile 1 sees
    # all 1000. (960 + 1000) · 64 = 125,440.
    ("causal, aligned to the end", tiled, Attention(1, 1, 1, 200, 1000, 64, causal=True),
     (128, 64), {}, (12_800, 125_440, 125_440, 0), 12_800),
    # Tile i starts at key ⌊max(0, 128i − 199)/64⌋ · 64 = 0, 0, 0, 128, 256, 384, 512, 640 and ends
    # at min(1000, 128(i+1)): 128 + 256 + 384·5 + 360 = 2664 keys; · 64 = 170,496.
    ("window of 200", tiled, square(1000, causal=True, window=200), (128, 64), {},
     (64_000, 170_496, 170_496, 0), 64_000),
]  # fmt: skip


@pytest.mark.parametrize("row", WORKED, ids=[row[0] for row in WORKED])
def test_worked_examples(row):
    _, make, problem, tile, options, reads, written = row
    moved = elements(make, problem, *tile, **options)
    assert tuple(moved[name][0] for name in ("Q", "K", "V", "O")) == reads
    assert moved["O"][1] == written


@pytest.mark.parametrize(("tile", "pairs"), [((128, 64), 72), ((64, 64), 136), ((128, 96), 51)])
def test_worked_pairs(tile, pairs):
    assert counts(tiled, square(1000, causal=True), *tile).kernels[0].passes == pairs


def test_standard_attention_moves_4n2_forward_and_7n2_backward():
    # Forward: S w, P r w, P r = 4 N² and Q, K, V r, O w = 4 Nd. Backward: P and dP r, dP w, dS w,
    # P r, dS r r = 7 N²; dO r r, V, K, Q r and dQ, dK, dV w = 8 Nd. Two bytes each.
    n, d = 4096, 64
    forward = counts(standard, square(n), statistics=())
    backward = counts(standard_backward, square(n))
    assert forward.bytes_at("hbm") == 2 * (4 * n * n + 4 * n * d)
    assert backward.bytes_at("hbm") == 2 * (7 * n * n + 8 * n * d)


def test_memory_grows_with_the_square_of_the_length_only_where_scores_are_kept():
    # Twice the length: the scores quadruple, everything else doubles.
    short, long = 16384, 32768
    kept = [counts(standard, square(n)).memory_bytes for n in (short, long)]
    fused = [counts(tiled, square(n), 128, 64).memory_bytes for n in (short, long)]
    assert kept[1] / kept[0] == pytest.approx(4, rel=0.01)
    assert fused[1] == 2 * fused[0]
    # Q, K, V, O in 2 bytes and L in 4.
    assert fused[0] == short * (4 * 64 * 2 + 4)


def test_a_decoding_query_head_group_reads_its_keys_once_when_packed():
    problem = Attention(1, 8, 1, 1, 4096, 128)
    apart = counts(tiled, problem, 16, 64).kernels[0].l2["K"].read_bytes
    packed = counts(tiled, problem, 16, 64, pack=8).kernels[0].l2["K"].read_bytes
    assert packed == 4096 * 128 * 2
    assert apart == 8 * packed


def test_split_keys_leave_fp32_parts_that_the_second_kernel_reads():
    # 8 slices of 512 of 4096 keys: each leaves 128 floats of O and one of L for one query row.
    cost = counts(split_kv, Attention(1, 1, 1, 1, 4096, 128, causal=True), 16, 512, 64)
    first, second = cost.kernels
    assert first.l2["Q"].read_bytes == 8 * 128 * 2
    assert first.l2["O"].write_bytes == second.l2["O"].read_bytes == 8 * 128 * 4
    assert first.l2["L"].write_bytes == second.l2["L"].read_bytes == 8 * 4
    assert second.l2["O"].write_bytes == 128 * 2
    alone = counts(split_kv, Attention(1, 1, 1, 1, 4096, 128), 16, 4096, 64)
    assert alone.kernels[0].l2["O"].write_bytes == 128 * 2
    assert alone.kernels[1].bytes_at("l2") == 0


def test_the_matmuls_of_standard_attention_read_their_operands_once_a_tile_of_the_other():
    # 1000 queries, 300 keys in 128 × 64: Q once for each of ⌈300/64⌉ = 5 key tiles, K once for each
    # of ⌈1000/128⌉ = 8; P by ⌈96/64⌉ = 2 tiles of value columns, V by 8 tiles of rows. Two bytes.
    problem = Attention(1, 1, 1, 1000, 300, 32, head_dim_v=96)
    cost = counts(standard, problem, tile=(128, 64, 32))
    scores, values = cost.kernels[0].l2, cost.kernels[2].l2
    assert scores["Q"].read_bytes == 2 * 1000 * 32 * 5
    assert scores["K"].read_bytes == 2 * 300 * 32 * 8
    assert values["P"].read_bytes == 2 * 1000 * 300 * 2
    assert values["V"].read_bytes == 2 * 300 * 96 * 8


def test_operands_cross_shared_memory_by_the_tile_that_shares_them():
    # Instruction tile 64 rows × 256 columns, two bytes. Q·Kᵀ: Q once per 256 columns, K once per
    # 64 rows; P·V: P stays in registers, V once per 64 rows.
    problem = Attention(1, 1, 1, 1024, 1024, 128)
    cost = counts(tiled, problem, 128, 256, operand_tile=(64, 256))
    points = 1024 * 1024 * 128
    assert cost.bytes_at("shared") == 2 * (points / 256 + points / 64 + points / 64)


def test_a_window_spares_the_keys_before_it_at_every_boundary():
    # One query on 65,536 keys sees the last 4096 of them: 64 key tiles of 64, whichever boundary.
    problem = Attention(1, 1, 1, 1, 65536, 128, causal=True, window=4096)
    kernel = counts(tiled, problem, 16, 64).kernels[0]
    assert kernel.l2["K"].read_bytes == kernel.hbm["K"].read_bytes == 4096 * 128 * 2
    # A backward block of keys loads them before it knows which queries see them.
    both = counts(tiled_backward, problem, 16, 64).kernels[1].hbm
    assert both["K"].read_bytes == 65536 * 128 * 2
