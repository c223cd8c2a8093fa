"""Operators that a library launches as chains of kernels, and products of uneven groups."""

import numpy as np
import pytest
from cases import cases

from perfmodel import predict
from perfmodel.algorithms.expressions import evaluate
from perfmodel.algorithms.grouped import GroupedMatmul, busiest_loads, busiest_rows
from perfmodel.algorithms.matmul import Matmul
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_spec
from perfmodel.operators import load
from perfmodel.predict import predict_arrays
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import matmul
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.setting import Setting

H100, B200 = load_spec("h100-sxm"), load_spec("b200")


def walked(loads, n, k, bm, bn, bk):
    """Elements of A and of B that blocks read, tile by tile."""
    a = b = 0
    for rows in loads:
        for first in range(0, rows, bm):
            for column in range(0, n, bn):
                for depth in range(0, k, bk):
                    a += min(bm, rows - first) * min(bk, k - depth)
                    b += min(bn, n - column) * min(bk, k - depth)
    return a, b


@pytest.mark.parametrize("loads", [[5, 5, 5], [1, 0, 9, 70], [64, 64, 1], [7]])
@pytest.mark.parametrize("tile", [(16, 32, 8), (64, 48, 16)])
def test_uneven_groups_move_what_a_walk_over_their_tiles_moves(loads, tile):
    bm, bn, bk = tile
    n, k = 100, 40
    occupied = [rows for rows in loads if rows]
    problem = GroupedMatmul(sum(loads), n, k, len(loads))
    shares = np.full(len(occupied), 1.0 / len(occupied))
    answer = (np.array([float(len(occupied))]), np.array([occupied], float), shares[None])
    vars(problem)["loads"] = answer
    tiles = problem.row_tiles(np.array([[float(bm)]]))
    schedule = tiled_matmul(bm, bn, bk, row_tiles=tiles[0, 0])
    (kernel,) = count(schedule, problem.sizes(), problem.elements()).kernels
    a, b = walked(occupied, n, k, bm, bn, bk)
    assert kernel.l2["A"].read_bytes == pytest.approx(2 * a)
    assert kernel.l2["B"].read_bytes == pytest.approx(2 * b)
    blocks = sum(-(-rows // bm) for rows in occupied) * -(-n // bn)
    assert kernel.blocks == pytest.approx(blocks)


@pytest.mark.parametrize("skew", [0.0, 1.01, 1.2])
@pytest.mark.parametrize(
    ("rows", "groups", "ranks", "chosen"), [(64, 8, 1, 2), (2048, 256, 8, 8), (4, 16, 4, 1)]
)
def test_ranks_share_all_rows_and_the_busiest_has_at_least_its_share(
    rows, groups, ranks, chosen, skew
):
    occupied, loads, shares = busiest_loads(rows, groups, ranks, chosen, skew)
    total = occupied * float((loads * shares).sum())
    assert total >= rows / ranks * 0.9
    assert occupied <= -(-groups // ranks)
    assert ranks > 1 or total == pytest.approx(rows, rel=0.1)


def test_even_groups_take_as_long_as_a_batch_of_equal_products():
    grouped = predict(GroupedMatmul(16384, 4096, 4096, 8), H100)
    batched = predict(Matmul(2048, 4096, 4096, 8), H100)
    assert grouped.seconds == pytest.approx(batched.seconds, rel=0.05)


def test_skewed_loads_take_longer_on_the_busiest_rank():
    even, skewed = (
        predict(GroupedMatmul(16384, 4096, 4096, 64, ranks=8, skew=skew), H100).seconds
        for skew in (0.0, 1.2)
    )
    assert skewed > 1.2 * even


def test_rows_of_the_busiest_rank_are_its_share_and_more_with_skew():
    assert busiest_rows(4096, 64, 8, 4, 0.0) == 512
    skewed = busiest_rows(4096, 64, 8, 4, 1.2)
    assert 512 < skewed <= 4096
    tokens, ranks = np.array([16.0, 4096.0, 4096.0]), np.array([8.0, 1.0, 64.0])
    together = busiest_rows(tokens, 64, ranks, 4, 1.2)
    alone = [busiest_rows(*each, 4, 1.2) for each in zip(tokens, [64] * 3, ranks, strict=True)]
    assert together.tolist() == alone


def test_blocks_wait_where_their_next_tile_is_of_another_group():
    kernel = kernel_facts("cutlass-grouped-first")
    waits = []
    for groups in (1, 8, 64):
        problem = GroupedMatmul(8192, 4096, 2048, groups, chosen=1)
        setting = Setting(machine(H100), default())
        style = matmul.plan(problem, kernel, setting).parts[0].style
        tiles = 8192 // 128 * 4096 // 16
        rounds = tiles / machine(H100).units
        waits.append(float(np.ravel(style.block.waits)[0]) * rounds)
    assert waits == pytest.approx([3.0 * groups for groups in (1, 8, 64)])


def test_a_chain_is_the_sum_of_its_kernels_and_gaps():
    operator = load("moe")
    problem = operator.problem(tokens=256, experts=64, top_k=4, hidden=2048, ffn=1024)
    whole = predict(problem, H100, harness="cuda_graph")
    products = [
        predict(GroupedMatmul(1024, n, k, 64, chosen=4), H100, implementation="cutlass-grouped")
        for n, k in ((2048, 2048), (2048, 1024))
    ]
    assert whole.seconds > sum(each.seconds for each in products) * 0.8
    assert whole.flops["matrix"] == pytest.approx(sum(each.flops["matrix"] for each in products))


@pytest.mark.parametrize("name", ["mla", "mla-prompt", "mla-projection", "mla-layer", "moe"])
def test_arrays_of_a_chain_are_its_single_problems(name):
    operator = load(name)
    parameters = (
        {"tokens": [1, 100, 3000]} if name in ("moe", "mla-projection") else {"batch": [1, 7, 64]}
    )
    if "heads" in operator.declaration.parameters:
        parameters["heads"] = [8, 16, 16]
    arrays = {key: np.array(values) for key, values in parameters.items()}
    together = predict_arrays(operator.problem(**arrays), B200)
    for i in range(3):
        one = {key: values[i] for key, values in parameters.items()}
        assert together.seconds[i] == pytest.approx(predict(operator.problem(**one), B200).seconds)


@pytest.mark.parametrize(("rows", "tile"), [(4, 8), (12, 16), (64, 64), (65, 64), (300, 64)])
def test_weights_of_few_bits_are_converted_once_a_tile_of_rows(rows, tile):
    problem = GroupedMatmul(16 * rows, 2048, 4096, 16, chosen=1, dtype="w4a16")
    kernel = kernel_facts("marlin-grouped")
    one = predict(problem, H100, implementation="marlin-grouped")
    assert one.tile["m"] == tile
    conversions = kernel.widening_ops * 16 * np.ceil(rows / tile) * 2048 * 4096
    assert one.flops["vector"] == pytest.approx(conversions)


@pytest.mark.parametrize("device", [H100, B200], ids=["h100", "b200"])
def test_conversions_cost_and_native_products_have_none(device):
    sizes = (4096, 2048, 4096, 16)
    wide, narrow = (
        predict(GroupedMatmul(*sizes, chosen=1, dtype=dtype), device, implementation=name)
        for dtype, name in (("bf16", "cutlass-grouped"), ("w4a16", "cutlass-grouped"))
    )
    assert not wide.flops["vector"]
    assert narrow.bytes["hbm"] < wide.bytes["hbm"]
    assert narrow.terms["vector"] > 0


def test_experts_without_a_fused_routing_kernel_take_a_reduction_a_choice():
    operator = load("moe")
    few, many = (
        predict(
            operator.problem(tokens=16, experts=n, top_k=8, hidden=1024, ffn=256),
            H100,
            implementation="marlin-experts",
            harness="cuda_graph",
        ).terms["gap"]
        for n in (576, 577)
    )
    further = Setting(machine(H100), default()).further_seconds
    assert many - few == pytest.approx(8 * further)


def test_queries_of_sparse_attention_share_the_cache():
    operator = load("block-layer")
    sizes = {"batch": 1, "seq_kv": 65536, "heads": 64, "kv_heads": 4}
    one, many = (operator.problem(**sizes, seq_q=n) for n in (1, 1024))
    bytes_ = [predict(each, B200).bytes["hbm"] for each in (one, many)]
    chosen_bytes = 2 * 16 * 128 * 4 * operator.declaration.parameters["head_dim"] * 2
    # Queries in bf16 and scores in fp32 of 1,023 more, and not one more set of chosen keys each.
    more_bytes = bytes_[1] - bytes_[0]
    assert 0 < more_bytes < 1023 * chosen_bytes / 16


def test_absorbed_keys_are_read_once():
    operator = load("mla")
    one = predict(operator.problem(batch=64, heads=16, seq=8192), H100, implementation="flashmla")
    cache_bytes = 64 * 8192 * 576 * 2
    assert one.bytes["hbm"] == pytest.approx(cache_bytes, rel=0.05)
    assert one.bytes["l2"] < 1.5 * cache_bytes


DECLARATION = """
name: scaled-copies
parameters: {rows: 4096, cols: 1024, copies: 3}
axes: {r: rows, c: cols}
tensors: {X: [r, c], Y: {axes: [r, c], element: output}}
steps: {scale: {map: X, to: Y, vector: 1}}
outputs: Y
"""
LIBRARY = """
library: ours
kernels:
  three-copies:
    operator: scaled-copies
    launches:
      - {operator: pointwise, times: copies, sizes: {rows: rows, cols: cols}}
    source: "a chain of maps"
names:
  - {kernel: three-copies, names: ["^ours"]}
"""


def test_a_new_operator_with_a_kernel_is_two_files(tmp_path, monkeypatch):
    for folder, name, text in (
        ("algorithms", "scaled-copies.yaml", DECLARATION),
        ("libraries", "ours.yaml", LIBRARY),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    monkeypatch.setenv("PERFMODEL_PATH", str(tmp_path))
    from perfmodel.timing.libraries import files, naming

    for cached in (files.brought, files.kernels, naming.names, naming.callers, naming.asked_for):
        cached.cache_clear()
    try:
        operator = load("scaled-copies")
        times = [
            predict(operator.problem(copies=copies), H100, implementation="three-copies")
            for copies in (1, 3)
        ]
        assert times[1].implementation == "three-copies"
        assert 2 < times[1].seconds / times[0].seconds < 4
    finally:
        monkeypatch.undo()
        for cached in (
            files.brought,
            files.kernels,
            naming.names,
            naming.callers,
            naming.asked_for,
        ):
            cached.cache_clear()


def test_a_launch_without_meaning_says_which():
    operator = load("mla")
    problem = operator.problem(heads=3, latent=1, rope=1)
    with pytest.raises(ProblemError):
        predict(load("mla-prompt").problem(heads=3, kv_heads=2), H100)
    assert predict(problem, H100).seconds > 0


def test_expressions_of_arrays():
    values = {"a": np.array([4.0, 6.0]), "b": 4}
    assert evaluate("a / b", values).tolist() == [1.0, 1.5]
    assert evaluate("ceil(a / b)", values).tolist() == [1.0, 2.0]
    assert evaluate("min(a, b + 1)", values).tolist() == [4.0, 5.0]
    with pytest.raises(ProblemError, match="no value"):
        evaluate("a / (b - 4)", values)


@cases
@pytest.mark.parametrize("device", [H100, B200])
def test_more_work_takes_longer_and_no_less_than_its_floor(name, sizes, device):
    operator = load(name)
    small, large = (
        predict(operator.problem(**{key: values[i] for key, values in sizes.items()}), device)
        for i in (0, 1)
    )
    assert large.seconds > 1.1 * small.seconds
    assert small.low_seconds <= small.seconds <= small.high_seconds


def test_a_state_in_fp32_is_read_and_written_once_a_step():
    problem = load("gated-delta").problem(batch=256, seq=1, key_heads=16, heads=32)
    step = predict(problem, H100, implementation="delta-step")
    state_bytes = 256 * 32 * 128 * 128 * 4
    assert step.bytes["hbm"] == pytest.approx(2 * state_bytes, rel=0.05)
