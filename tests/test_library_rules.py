"""What libraries decide by rule: slices of keys, copies around decode, tiles by rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.hardware import load
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing import attention, attention_style, floors, slicing, splitkv
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import SplitRule, kernel_class, resolve
from perfmodel.timing.constants import default
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import combining_seconds

H100, A100, B200 = load("h100-sxm"), load("a100-sxm4-80gb"), load("b200")
FLASH2 = kernel_class("flash2").split_rule
EVEN = kernel_class("flash3").even_rule
PAGED = replace(kernel_class("flash3"), paged=True)
GRAPHED = replace(kernel_class("flash4-hopper"), paged=True, packed=True, graphed=True)
CONSTANTS, BARE = default(), Circumstances()


def slices_one_by_one(grid: int, tiles: int, slots: int, rule: SplitRule) -> int:
    """The rule as a loop over numbers of slices (FlashAttention-2, num_splits_heuristic)."""
    if grid >= rule.full * slots or tiles <= rule.whole_tiles:
        return 1
    most, fills = min(128, slots, tiles), {}
    for slices in range(1, most + 1):
        if slices > 1 and math.ceil(tiles / slices) == math.ceil(tiles / (slices - 1)):
            continue
        waves = grid * slices / slots
        fills[slices] = waves / math.ceil(waves)
    best = max(fills.values())
    return next(slices for slices, fill in fills.items() if fill >= rule.near * best)


shapes = st.tuples(
    st.integers(1, 300), st.integers(1, 16), st.integers(2, 32), st.integers(1, 200_000)
)


def columns_of(batch: int, groups: int, together: int, keys: int) -> dict[str, np.ndarray]:
    """Axes of one decode problem as (1, 1) columns."""
    sizes = {"b": batch, "g": groups, "r": together, "q": 1, "x": keys}
    return {axis: np.array([[float(size)]]) for axis, size in sizes.items()}


@given(shapes)
def test_slices_are_those_of_the_rule(shape):
    batch, groups, _, keys = shape
    found = slicing.by_rule(columns_of(*shape), (64, 128, 128), FLASH2, machine(A100))
    slots = A100.units * FLASH2.blocks_per_unit
    expected = slices_one_by_one(batch * groups, math.ceil(keys / 128), slots, FLASH2)
    assert found.shape == (1, 1)
    assert found[0, 0] == expected


@given(shapes)
def test_even_slices_give_every_unit_its_share_of_key_tiles(shape):
    # flash_prepare_scheduler.cu, for sequences of one length: blocks_per_sm is at least the mean.
    batch, groups, together, keys = shape
    found = float(slicing.evenly(columns_of(*shape), (64, 128, 256), EVEN, machine(H100))[0, 0])
    tiles = math.ceil(keys / 128)
    rows = batch * groups * math.ceil(together / 64)
    share = math.ceil(1.1 * rows * tiles / H100.units)
    assert found == min(math.ceil(tiles / share), 128)
    assert 1 <= found <= tiles
    # No slice is longer than the share, unless there may be no more slices.
    assert math.ceil(tiles / found) <= share or found == 128
    rule = kernel_class("flash3").graph_rule
    graph = slicing.evenly(columns_of(*shape), (64, 128, 256), EVEN, machine(H100), rule)
    assert graph[0, 0] == (min(found, 32) if batch <= 512 else found)


@given(st.integers(1, 256), st.integers(1, 8), st.integers(1, 100_000))
def test_a_graph_asks_for_its_slices_whatever_the_keys(batch, groups, keys):
    # vLLM captures up to 512 queries with a grid of 32 slices (flash_attn.py, max_num_splits).
    rule, here, bc = kernel_class("flash4").graph_rule, machine(H100), 128
    how = attention_style.style(Attention(1, 8, 1, 1, keys, 128), GRAPHED, here, CONSTANTS, BARE)
    sizes = columns_of(batch, groups, 8, keys)
    used, beside = splitkv._in_graph(sizes, (64.0, bc, 256.0), rule, here, CONSTANTS, how)
    tiles = math.ceil(keys / bc)
    assert used[0, 0] == math.ceil(tiles / math.ceil(tiles / 32))
    idle = math.ceil(batch * groups * 32 / here.units)
    idle -= math.ceil(batch * groups * used[0, 0] / here.units)
    assert beside[0, 0] >= idle * here.at_clock(CONSTANTS["specialised_block_price"])
    crowd = splitkv._in_graph({**sizes, "b": sizes["b"] + 512}, (64.0, bc, 256.0), rule, here,
                                CONSTANTS, how)  # fmt: skip
    assert crowd[0][0, 0] == 1


def test_slices_without_keys_cost_what_their_blocks_do():
    """Many short sequences in a graph take longer than more of them outside it."""
    few, many = Attention(512, 4, 1, 1, 16, 128), Attention(513, 4, 1, 1, 16, 128)
    for device in (H100, load("b200")):
        name = "vllm-0.24.0:vllm_flash_attn_fa4"
        captured, loose = (predict(p, device, implementation=name).seconds for p in (few, many))
        assert captured > 3 * loose
        alone = (predict(p, device, implementation="flash4").seconds for p in (few, many))
        assert next(alone) <= next(alone)


@pytest.mark.parametrize("release", ["fa3", "fa4"])
@pytest.mark.parametrize("head_dim", [64, 128, 512])
def test_captured_and_loose_batches_together_are_what_they_are_apart(release, head_dim):
    batch, queries = np.array([1, 1, 4, 16, 64, 2]), np.array([128, 512, 512, 16, 64, 2048])
    how = {"implementation": f"vllm-0.24.0:vllm_flash_attn_{release}", "harness": "cuda_graph"}
    for device in (H100, load("b200")):
        whole = Attention(batch, 16, 2, queries, queries, head_dim, causal=True)
        found = predict_arrays(whole, device, **how).seconds
        for i, (b, q) in enumerate(zip(batch, queries, strict=True)):
            alone = Attention(int(b), 16, 2, int(q), int(q), head_dim, causal=True)
            assert found[i] == pytest.approx(predict(alone, device, **how).seconds, rel=1e-9)


XQA, GEN = (kernel_class(name).wave_rule for name in ("trtllm-xqa", "trtllm"))


@given(shapes)
def test_xqa_slices_are_those_of_its_library(shape):
    # TensorRT-LLM, computeMultiBlockCount: in its order, and in whole numbers.
    batch, groups, _, keys = shape
    slices = keys // 128
    slices = max(min(slices, round(math.sqrt(8 * slices))), 1)
    if batch * groups * slices > 8 * A100.units:
        slices = max(8 * A100.units // (batch * groups), 1)
    found = slicing.by_waves(columns_of(*shape), XQA, machine(A100))
    assert found[0, 0] == slices


@given(shapes)
def test_slices_on_blackwell_fill_one_wave_and_have_two_steps_each(shape):
    # TensorRT-LLM, fmhaKernels.h: ⌈keys / 2·256⌉ of them, or as many as units are left for.
    batch, groups, _, keys = shape
    found = slicing.by_waves(columns_of(*shape), GEN, machine(A100))[0, 0]
    assert found == min(-(-keys // 512), max(A100.units // (batch * groups), 1))
    assert found == 1 or found * batch * groups <= A100.units


@given(shapes)
def test_triton_slices_of_sglang_are_those_of_its_library(shape):
    # get_num_kv_splits_triton, for sequences of one length: more units by the doublings from 64.
    batch, groups, _, keys = shape
    units = int(A100.units * max(math.log2(keys / 64), 1.0))
    slices = min(-(-units // (batch * groups)), 8, -(-keys // 32))
    rule = kernel_class("sglang-triton").wave_rule
    found = slicing.by_waves(columns_of(*shape), rule, machine(A100))[0, 0]
    assert abs(found - slices) <= (units % (batch * groups) == 0)  # units are cut to whole ones


def test_blocks_that_combine_among_themselves_need_no_second_launch():
    apart, inside = Style(compute="fp16"), Style(compute="fp16", combine=None)
    l2 = machine(A100).l2_latency
    assert combining_seconds(machine(A100), CONSTANTS, inside) == pytest.approx(3 * l2)
    assert combining_seconds(machine(A100), CONSTANTS, apart) > 3 * l2


def test_kernels_that_count_tokens_first_cost_many_queries_a_launch():
    spared = replace(kernel_class("trtllm-hopper"), prepares=0)

    def beside(kernel, queries):
        problem = Attention(2, 8, 8, queries, 512, 64)
        return attention.forward_plan(problem, kernel, machine(H100), CONSTANTS, BARE).beside

    assert beside(kernel_class("trtllm-hopper"), 512) > CONSTANTS["kernel_gap"] > 0
    assert beside(spared, 512) == 0
    assert beside(kernel_class("trtllm-xqa"), 1) == 0


def test_a_kernel_that_rotates_queries_narrows_them_too():
    problem = Attention(8, 32, 8, 1, 4096, 128, kv_dtype="fp8")
    how = {"implementation": "trtllm-1.0.0:torch_flow", "harness": "cuda_graph"}
    alone, together = (
        predict(problem, B200, includes=parts, **how).seconds
        for parts in (("kv_write",), ("rope", "kv_write"))
    )
    assert together < alone


def test_swapped_operands_pad_few_queries_little():
    # Decode on Blackwell multiplies 16 rows for 4 heads, where FlashAttention-4's tile has 128.
    problem = Attention(32, 32, 8, 1, 4096, 128)
    few, many = (
        predict(problem, B200, implementation=name).terms["special"]
        for name in ("trtllm", "flash4")
    )
    assert few == pytest.approx(many / 8)


@given(shapes, st.sampled_from(["flash3", "trtllm", "flash2"]))
def test_values_in_the_memory_of_keys_halve_what_comes_from_it(shape, name):
    batch, groups, together, keys = shape
    heads = groups * together
    apart, shared = (
        predict(
            Attention(batch, heads, groups, 1, keys, 128, keys_only=only),
            H100,
            implementation=name,
        )
        for only in (False, True)
    )
    assert shared.seconds <= apart.seconds * (1 + 1e-9)
    assert shared.bytes["l2"] == pytest.approx(apart.bytes["l2"])
    values = 2 * batch * groups * keys * 128
    assert apart.bytes["hbm"] - shared.bytes["hbm"] == pytest.approx(values, rel=0.01)
    assert apart.footprint_bytes - shared.footprint_bytes == pytest.approx(values)


def test_a_single_copy_of_the_weights_is_still_there_where_several_take_turns():
    # 16 MiB of 4-bit weights, on a device whose L2 holds 126 MB.
    problem = Matmul(16, 8192, 4096, dtype="nvfp4")
    several, single = (
        predict(problem, B200, harness="cuda_graph", implementation=name).bytes["hbm"]
        for name in ("trtllm-1.0.0:torch_flow", "vllm-0.14.0:vllm_default")
    )
    assert single < 0.1 * several
    alone = predict(problem, B200, implementation="vllm-0.14.0:vllm_default").bytes["hbm"]
    assert alone == several  # nothing is there without a loop


def test_flash2_cuts_keys_for_grouped_queries_alone():
    grouped = Attention(1, 8, 4, 1, 16384, 128)
    single = Attention(1, 4, 4, 1, 16384, 128)
    tiles = [predict(p, A100, implementation="flash2").tile for p in (grouped, single)]
    assert tiles[0]["splits"] > 1
    assert tiles[1]["splits"] == 1


@pytest.mark.parametrize(
    ("batch", "groups", "together", "copies"),
    [(1, 8, 1, 0), (64, 8, 1, 0), (1, 2, 4, 1), (64, 1, 8, 1), (2, 2, 2, 4), (64, 8, 4, 4)],
)
def test_copies_around_decode_of_grouped_queries(batch, groups, together, copies):
    sizes = {"b": np.array([batch]), "g": np.array([groups]), "r": np.array([together])}
    assert splitkv._copies(sizes) == copies


def seconds_of(shape: Attention, device, implementation: str, **kwargs) -> float:
    return predict(shape, device, implementation=implementation, **kwargs).seconds


@pytest.mark.parametrize("groups", [1, 8])
def test_each_copy_costs_a_kernel(groups):
    # One sequence: queries are a view, the result alone is copied; several: four copies.
    one, two = (Attention(batch, 4 * groups, groups, 1, 64, 128) for batch in (1, 2))
    alone = [Attention(p.batch, groups, groups, 1, 64, 128) for p in (one, two)]
    copies = [seconds_of(p, A100, "flash2") - seconds_of(q, A100, "flash2")
              for p, q in zip((one, two), alone, strict=True)]  # fmt: skip
    gap = default()["kernel_gap"] * 1.75e9 / A100.boost_hz
    assert copies[0] > gap
    assert copies[1] / copies[0] == pytest.approx(4 if groups > 1 else 1, rel=0.05)


def test_units_search_sequences_31_at_a_time():
    # tile_scheduler.hpp: each further group of 31 is one more step, whatever there is to do.
    def once(batch: int) -> float:
        return attention_style._search_seconds(
            Attention(batch, 1, 1, 1, 64, 128), PAGED, machine(H100), default()
        ).item()

    assert once(1) == once(31) > 0
    assert once(62) == pytest.approx(2 * once(31))
    # Beyond 512 sequences nothing is sliced, and no numbers of slices are loaded.
    assert once(1024) / 34 < once(512) / 17
    assert attention_style._search_seconds(
        Attention(64, 1, 1, 1, 64, 128), kernel_class("flash3"), machine(H100), default()
    ) == 0  # fmt: skip


def test_a_combining_kernel_runs_for_captured_sequences_even_with_nothing_to_combine():
    sizes = [columns_of(batch, 8, 8, 64) | {"d": np.array([[128.0]])} for batch in (512, 513)]
    idle, none = (splitkv._idle_combining(s, machine(H100), default()) for s in sizes)
    assert idle.item() > 0
    assert none.item() == 0


def test_combining_ahead_saves_the_gap():
    constants, here = default(), machine(A100)
    ahead, after = (Style("bf16", combine="combine_price", ahead=early) for early in (True, False))
    saved = combining_seconds(here, constants, after) - combining_seconds(here, constants, ahead)
    assert saved == pytest.approx(here.at_clock(constants["kernel_gap"]))


@pytest.mark.parametrize(("head_dim", "keys", "same"), [(192, "fp8", True), (256, "fp8", False),
                                                        (256, "bf16", True)])  # fmt: skip
def test_wide_8_bit_pages_leave_no_registers_for_overlap(head_dim, keys, same):
    shape = Attention(1, 8, 8, 512, 512, head_dim, kv_dtype=keys)
    overlap = attention_style._overlap(shape, PAGED, default())
    assert (overlap == default()["overlap_flash3"]) is same
    assert same or overlap == 0


@pytest.mark.parametrize(
    ("m", "tiles"),
    [(1, {(64, 16), (64, 64)}), (64, {(64, 16), (64, 64)}), (65, {(64, 128)}),
     (128, {(64, 128)}), (129, {(128, 128)}), (8192, {(128, 128)})],
)  # fmt: skip
def test_fp8_tiles_are_dispatched_by_rows(m, tiles):
    for n, k in ((256, 512), (4096, 4096), (16384, 1024)):
        tile = predict(Matmul(m, n, k, dtype="fp8"), H100, implementation="cutlass-fp8").tile
        assert (tile["m"], tile["n"]) in tiles


def test_packing_heads_saves_blocks_where_queries_are_few():
    # 8 heads × 16 queries fill one tile of 128 rows instead of 8 tiles.
    shape = Attention(64, 32, 4, 16, 16, 128)
    packed = predict(shape, H100, implementation="flash3")
    alone = predict(Attention(64, 32, 32, 16, 16, 128), H100, implementation="flash3")
    assert alone.waves == pytest.approx(8 * packed.waves)
    assert packed.seconds < alone.seconds


@pytest.mark.parametrize(
    ("shape", "rows", "keys"),
    [
        # heuristics.h: one group of warps where a group's queries fit in 64 rows, if heads are 64
        # or 128 wide and no window hides keys (tile_size.h).
        (Attention(4, 8, 8, 16, 16, 128, causal=True), 64, 128),
        (Attention(4, 32, 8, 16, 16, 128, causal=True), 64, 128),
        (Attention(4, 64, 8, 16, 16, 128, causal=True), 128, None),
        (Attention(4, 32, 8, 128, 128, 64, causal=True), 192, 128),
        (Attention(4, 8, 8, 1, 4096, 64), 64, 192),
        (Attention(4, 8, 8, 1, 4096, 64, kv_dtype="fp8"), 64, 128),
        (Attention(4, 8, 8, 1, 4096, 256), 128, 80),
        (Attention(4, 8, 8, 1, 4096, 64, causal=True, window=128), 192, 160),
        (Attention(4, 8, 8, 1, 4096, 128, causal=True, window=128), 128, 128),
        (Attention(4, 8, 8, 16, 4096, 128, causal=True, window=128), 128, 128),
        # A window that hides nothing is none.
        (Attention(4, 8, 8, 1, 128, 64, causal=True, window=128), 64, 192),
    ],
)
def test_tiles_of_flash3_go_by_queries_windows_and_types(shape, rows, keys):
    tile = predict(shape, H100, implementation="vllm:flash_attn_fa3").tile
    assert tile["rows"] == rows
    assert keys is None or tile["keys"] == keys


def test_arrays_mix_tiles_by_problem():
    shape = Attention(4, 8, 8, np.array([16, 64, 65, 512]), 512, 128, causal=True)
    found = predict_arrays(shape, H100, implementation="vllm:flash_attn_fa3")
    assert [found.one(i).tile["rows"] for i in range(4)] == [64, 64, 128, 128]
    windows = replace(shape, seq_q=1, seq_kv=np.array([64, 128, 129, 4096]), window=128)
    found = predict_arrays(windows, H100, implementation="vllm:flash_attn_fa3")
    assert [found.one(i).tile["rows"] for i in range(4)] == [64, 64, 128, 128]


@pytest.mark.parametrize("queries", [1, 16])
def test_a_window_of_none_among_others_hides_nothing(queries):
    shape = Attention(4, 8, 8, queries, 4096, 128, causal=True, window=np.array([0, 128, 0, 8192]))
    for name in ("vllm:flash_attn_fa3", "flash2"):
        found = predict_arrays(shape, H100, implementation=name).seconds
        whole = predict(replace(shape, window=None), H100, implementation=name).seconds
        assert found[[0, 2, 3]] == pytest.approx([whole] * 3, rel=1e-9)
        assert found[1] < whole


def split(shape: Attention):
    """The plan of one paged decode by FlashAttention-3, and its menu's single column."""
    here = machine(H100)
    how = attention_style.style(shape, PAGED, here, CONSTANTS, BARE)
    return splitkv.split_plan(shape, PAGED, here, CONSTANTS, BARE, how)


def test_windows_are_sliced_by_all_keys_and_combined_if_one_slice_has_any():
    # flash_prepare_scheduler.cu counts the tiles of every key: 64 of them on 132 units are cut in
    # two, of which a window of 128 keys, cut from its first key on, leaves one any work.
    narrow, whole = (Attention(64, 1, 1, 1, 8192, 128, causal=True, window=w) for w in (128, None))
    plan = split(narrow)
    assert plan.tile["splits"].item() == 1
    assert [part.only for part in plan.parts] == [("split-kv",), ("combine",)]
    assert split(whole).tile["splits"].item() == 2
    assert len(split(whole).parts) == 1
    # Enough sequences are not cut, and nothing is left to combine.
    (alone,) = split(replace(narrow, batch=1024)).parts
    assert alone.sizes["x"].item() == 128


@pytest.mark.parametrize(("name", "loads"), [("flash2", 1), ("flash3", 3), ("cudnn", 0)])
def test_combining_kernels_wait_for_slices_as_their_code_loads_them(name, loads):
    # flash_fwd_kernel.h adds one slice up after the other; flash_fwd_combine_kernel.h has three on
    # the way; others load all at once.
    kernel = kernel_class(name)
    assert slicing.rounds_of_slices(60.0, kernel) == (60.0 / loads if loads else 0.0)


def test_every_slice_costs_the_combining_kernel_a_latency():
    few, many = (Attention(1, 8, 1, 1, keys, 128) for keys in (2048, 8192))
    options = {"implementation": "flash2"}
    tiles = [predict(p, A100, **options) for p in (few, many)]
    more = tiles[1].tile["splits"] - tiles[0].tile["splits"]
    assert more > 32
    waits = tiles[1].terms["latency"] - tiles[0].terms["latency"]
    assert waits > 0.9 * more * machine(A100).l2_latency


def test_idle_slices_cost_the_rounds_of_their_blocks():
    here = machine(H100)
    how = attention_style.style(Attention(1, 1, 1, 1, 64, 128), PAGED, here, CONSTANTS, BARE)
    sizes, tile = columns_of(100, 1, 1, 128), (128, 128, 384)
    used, beside = splitkv._with_keys(sizes, tile, np.array([[2.0]]), here, CONSTANTS, how)
    assert used.item() == 1
    assert beside.item() == pytest.approx(
        here.at_clock(CONSTANTS["block_price"] * how.price), rel=1e-12
    )
    _, none = splitkv._with_keys(sizes, tile, np.array([[1.0]]), here, CONSTANTS, how)
    assert none.item() == 0


@given(
    st.integers(1, 4), st.integers(2, 300), st.integers(0, 300), st.integers(1, 400) | st.none(),
    st.sampled_from([16, 64, 128]), st.sampled_from([32, 128]),
)  # fmt: skip
def test_masks_cost_compares_in_the_tiles_that_an_edge_cuts_and_no_others(
    heads, queries, more, window, rows, keys
):
    shape = Attention(1, heads, heads, queries, queries + more, 64, causal=True, window=window)
    found = float(attention_style.masking(shape, kernel_class("flash2"), rows, keys))
    each = 3.0 if shape.windowed() else 2.0
    tiles = heads * math.ceil(queries / rows)
    reach = queries + more if window is None else min(queries + more, rows + window)
    # At least one tile a query tile, no more than all that it sees.
    assert (
        tiles * rows * keys * each
        <= found
        <= tiles * rows * keys * each * (math.ceil(reach / keys))
    )
    plain = replace(shape, causal=False, window=None)
    assert attention_style.masking(plain, kernel_class("flash2"), rows, keys) == 0


def test_8_bit_values_are_transposed_by_who_loads_them():
    here, wide = machine(H100), Attention(1, 8, 8, 512, 512, 128)
    narrow = replace(wide, kv_dtype="fp8")
    seconds = attention_style.transposing(narrow, PAGED, here, CONSTANTS, 160)
    assert seconds == pytest.approx(160 * 128 / CONSTANTS["transposed_bytes"] / here.clock_hz)
    assert attention_style.transposing(wide, PAGED, here, CONSTANTS, 160) == 0
    assert attention_style.transposing(narrow, kernel_class("cudnn"), here, CONSTANTS, 160) == 0
    # It runs beside the rest, but for the first tile of a block.
    terms = predict(narrow, H100, implementation="vllm_fa3").terms
    assert terms["transpose"] > 0


def test_schedulers_that_order_their_tiles_spend_longer_on_each():
    # flash_api.cpp: causal and windowed grids; one query is neither, but for heads of 128 in pages.
    packed = replace(PAGED, packed=True)

    def price(**kwargs) -> float:
        shape = Attention(8, 8, 8, **{"seq_q": 16, "seq_kv": 512, "head_dim": 128, **kwargs})
        return attention_style.style(shape, packed, machine(H100), CONSTANTS, BARE).price

    plain, more = price(), CONSTANTS["ordered_price"] / CONSTANTS["block_price"]
    ordered = pytest.approx(plain + more)
    assert price(causal=True) == ordered
    assert price(causal=True, seq_q=1) == ordered
    assert price(causal=True, seq_q=1, head_dim=64) == plain
    assert price(causal=True, seq_q=1, head_dim=64, window=128) == ordered


def test_softmax_gradients_take_a_product_of_their_own_first():
    # SoftMax.cu, softmax_backward_cuda_out: grad · output is a kernel, and both are read again.
    back = Rowwise("softmax", 65536, 512, "fp32", direction="bwd")
    fused = predict(back, A100, implementation="fused-rows").seconds
    eager = predict(back, A100, implementation="torch").seconds
    assert eager > 1.8 * fused


@pytest.mark.parametrize("variant", ["div", "mul", "pow", "where"])
def test_scalar_operands_of_traced_graphs_move_nothing(variant):
    both = Rowwise("pointwise", 16384, 4096, "fp32", variant, inputs=2)
    one = Rowwise("pointwise", 16384, 4096, "fp32", variant, inputs=1)
    named = {p.inputs: predict(p, A100, implementation="torch-eager(HF fx)") for p in (both, one)}
    assert named[2].seconds == pytest.approx(named[1].seconds)
    assert predict(both, A100, implementation="torch").seconds > 1.3 * named[2].seconds


def test_gradients_have_the_floor_of_a_plain_call():
    there = Rowwise("layernorm", 1024, 1024, "fp32")
    assert floors.called_as(there) == "layernorm"
    assert floors.called_as(replace(there, direction="bwd")) == "pointwise"


def test_a_batched_product_has_a_floor_of_its_own_where_there_is_one():
    one, many = Matmul(8, 8, 8), Matmul(8, 8, 8, 2)
    assert [floors.called_as(p) for p in (one, many)] == ["gemm", "bmm"]
    assert floors.called_as(replace(one, gradient=True)) == "bmm"
    found = {
        harness: [floors.floor_seconds(CONSTANTS, harness, name) for name in ("gemm", "bmm")]
        for harness in ("cuda_events_eager", "cuda_graph")
    }
    assert found["cuda_events_eager"][1] < found["cuda_events_eager"][0]
    assert found["cuda_graph"][1] == found["cuda_graph"][0]


@pytest.mark.parametrize("dtype", ["w8a16", "w8a8_int8"])
def test_kernels_of_few_rows_start_by_themselves_where_layers_are_timed_one_by_one(dtype):
    name = f"trtllm-1.0.0:{'weight_only' if dtype == 'w8a16' else 'smooth_quant'}/PLUGIN_V2_"
    kernel, _ = resolve("gemm", name, dtype, machine(A100))
    rows, device = np.array([1, 4, 5, 512]), np.full(4, 1e-5)
    found = floors.with_floor(CONSTANTS, "cuda_graph", "gemm", device, kernel, rows)
    starts = [CONSTANTS["start_trtllm_few"]] * 2 + [CONSTANTS["start_trtllm"]] * 2
    floor = floors.floor_seconds(CONSTANTS, "cuda_graph", "gemm")
    assert found == pytest.approx(1e-5 + floor + np.array(starts))
    alone = floors.with_floor(CONSTANTS, "kernel", "gemm", device, kernel, rows)
    assert np.ptp(alone) == 0
