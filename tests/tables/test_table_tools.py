"""Tables as other tools write them: windows of attention, nccl-tests, serving benchmarks."""

import json

import pytest
from cases import cases
from folders import TESTS

from perfmodel.table import windows
from perfmodel.table.hints import Hints
from perfmodel.table.reading import read
from perfmodel.validation.kinds import load

RANK = "#  Rank  {} Group  0 Pid  12345 on     {} device  {} [0000:1b:00] NVIDIA H100 80GB HBM3\n"
NCCL = """#
#                                                              out-of-place          in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
    67108864      16777216     float     sum      -1    345.5  194.24  339.92      0    345.1
   134217728      33554432     float     sum      -1    645.5  208.24  363.92      0    645.1
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 340.11
"""


@pytest.fixture
def table(tmp_path):
    """A reader of a text as a table of a kind."""

    def reading(text, kind="operator", **hints):
        path = tmp_path / "table.txt"
        path.write_text(text)
        return read(path, load(kind).layout, Hints(**hints))

    return reading


@cases
def test_a_window_is_keys_or_a_pair(cell, keys, closed):
    assert windows.parsed(cell, beside=False, causal=False) == windows.Window(keys, closed)


@pytest.mark.parametrize("cell", ["x", "-2", "1.5", "(1024, -1)", "(3, 5)", "(1, 2, 3)"])
def test_a_window_of_unequal_sides_or_no_number_is_refused(cell):
    assert windows.parsed(cell, beside=False, causal=False) is None


def test_a_causal_mask_closes_the_right_side():
    for right in (-1, 0, 7):
        parsed = windows.parsed(f"(1023, {right})", beside=False, causal=True)
        assert parsed is not None
        assert parsed.keys == 1024


def test_a_heading_of_the_left_side_leaves_out_the_own_key():
    assert windows.parsed("1023", beside=True, causal=True) == windows.Window(1024)
    assert windows.parsed("-1", beside=True, causal=True) == windows.Window(0)


@pytest.mark.parametrize("heading", ["window_size", "window_size_left", "window_left"])
def test_minus_one_predicts_as_no_window(table, heading):
    head = f"device,op,dtype,batch,q_seq_length,num_heads_q,headdim,causal,{heading},time_ms\n"
    row = "h100-sxm,attention,bf16,4,4096,16,128,True,{},0.6\n"
    rows = table(head + row.format("-1") + row.format("") + row.format('"(1024, 0)"'))
    found = load("operator").predicted(rows.table, rows.faults)
    assert (found["reason"] == "").all()
    none, empty, pair = found["predicted_us"]
    assert none == empty > pair > 0
    assert found["window"].iloc[2] == 1025


def test_a_window_that_ends_at_the_query_is_causal(table):
    head = "device,op,dtype,batch,seqlen,nheads,headdim,causal,window_size,time_ms\n"
    row = 'h100-sxm,attention,bf16,4,4096,16,128,{},"(1023, 0)",0.6\n'
    assert table(head + row.format("False") + row.format("")).table["causal"].all()


def test_two_rates_by_map_are_a_row_each(table):
    text = ",N,Triton,Torch\n0,1024,900,700\n1,2048,1000,800\n"
    stated = {"op": "softmax", "rows": "4096", "device": "rtx4090", "dtype": "fp32"}
    rates = table(text, mapping={"N": "cols", "Triton": "gbps", "Torch": "gbps"}, stated=stated)
    assert list(rates.table["implementation"].str.lower()) == ["triton", "torch"] * 2
    times = table(
        text,
        mapping={"N": "cols", "Triton": "measured_us", "Torch": "measured_us"},
        stated=stated, unit="us",
    )  # fmt: skip
    assert list(times.table["measured_us"]) == [900, 700, 1000, 800]


def test_any_heading_names_its_column(table):
    rows = table(
        'GPU,Kernel,B,H,S,D,dtype,"Time (ms)"\nh100,flash2,4,32,1024,128,torch.float16,0.9\n'
    )
    names = {"GPU": "device", "B": "batch", "S": "seq_q", "seq": "seq_q", "seq_kv": "seq_kv"}
    assert {name: rows.column(name) for name in names} == names
    assert rows.column("nothing") == "nothing"


# ---- nccl-tests ----------------------------------------------------------------------------------


def test_text_of_nccl_tests_is_read_with_its_circumstances(table):
    ranks = "".join(RANK.format(i, f"node{i // 4}", i % 4) for i in range(8))
    rows = table(f"# Collective test starting: all_reduce_perf\n{ranks}{NCCL}", "collective")
    first = rows.table.iloc[0]
    assert len(rows.table) == 2
    assert (first["bytes"], first["latency_us"], first["dtype"]) == (67108864, 345.5, "fp32")
    assert (first["collective"], first["ranks"], first["ranks_per_node"]) == ("all-reduce", 8, 4)
    assert load("collective").predicted(rows.table, rows.faults)["reason"].eq("").all()


def test_what_nccl_tests_does_not_print_is_stated(table):
    stated = {"device": "h100", "collective": "allreduce", "ranks": "8"}
    rows = table(NCCL, "collective", stated=stated)
    assert list(rows.table["ranks"]) == [8, 8]
    assert rows.table["collective"].eq("all-reduce").all()


# ---- Serving benchmarks --------------------------------------------------------------------------

CLIENT = {
    "backend": "vllm", "model_id": "llama-3-8b", "request_rate": "inf", "max_concurrency": 32,
    "completed": 1000, "total_input_tokens": 1024000, "total_output_tokens": 128000,
    "output_throughput": 1278.7, "total_token_throughput": 11508.2, "mean_ttft_ms": 120.2,
    "median_ttft_ms": 100.2, "p99_ttft_ms": 300.2, "median_tpot_ms": 21.1, "itls": [0.1, 0.2],
}  # fmt: skip


def test_the_json_of_a_serving_client_is_a_metric_a_row(table):
    rows = table(json.dumps(CLIENT), "serving", stated={"device": "h100-sxm"}).table
    assert list(rows[["metric", "statistic", "value"]].fillna("").itertuples(index=False)) == [
        ("ttft_ms", "p50", 100.2), ("ttft_ms", "p99", 300.2), ("tpot_ms", "", 21.1),
        ("output_tokens_per_s", "", 1278.7), ("total_tokens_per_s", "", 11508.2),
    ]  # fmt: skip
    shared = rows.iloc[0]
    assert (shared["isl"], shared["osl"], shared["concurrency"]) == (1024, 128, 32)
    assert (shared["load"], shared["network"], shared["engine"]) == (
        "concurrency", "llama-3-8b", "vllm",
    )  # fmt: skip


@cases
def test_a_client_without_concurrency_has_a_rate_or_all_at_once(table, changes, load_, rate):
    text = json.dumps({**CLIENT, **changes})
    row = table(text, "serving", stated={"device": "h100-sxm"}).table.iloc[0]
    assert row["load"] == load_
    assert rate is None or row["rate"] == rate


GENAI = json.loads((TESTS / "layouts" / "genai-perf.json").read_text())
TRTLLM = json.loads((TESTS / "layouts" / "trtllm-bench.json").read_text())


@cases
def test_genai_perf_keeps_its_load_in_several_places(table, config, asked):
    stated = {"device": "h100-sxm", "engine": "vllm"}
    text = json.dumps({**GENAI, "input_config": config})
    row = table(text, "serving", stated=stated).table.iloc[0]
    assert [row["load"], row.get(asked[0])] == asked
    assert row["network"].lower() == "llama-3-8b"


def test_a_server_behind_triton_names_its_engine(table):
    endpoint = {"backend": "vllm", "service_kind": "triton"}
    text = json.dumps({**GENAI, "input_config": {**GENAI["input_config"], "endpoint": endpoint}})
    assert set(table(text, "serving", stated={"device": "h100"}).table["engine"]) == {"vllm"}


def test_requests_that_wait_for_trtllm_bench_have_rates_alone(table):
    """All of a data set at once: more requests than a batch holds, whose times are the queue's."""
    text = json.dumps(
        {**TRTLLM, "request_info": {**TRTLLM["request_info"], "avg_num_concurrent_requests": 900.0}}
    )
    rows = table(text, "serving", stated={"device": "h100-sxm"}).table
    assert list(rows["metric"]) == ["output_tokens_per_s", "total_tokens_per_s"]
    assert set(rows["load"]) == {"full"}


@pytest.mark.parametrize(
    ("algorithm", "weights"), [(None, "bf16"), ("W4A16_AWQ", "int4"), ("NVFP4", "nvfp4")]
)
def test_weights_of_trtllm_bench_have_names_of_their_own(table, algorithm, weights):
    text = json.dumps({**TRTLLM, "engine": {**TRTLLM["engine"], "quantization": algorithm}})
    rows = table(text, "serving", stated={"device": "b200"})
    assert set(rows.table["weights_dtype"]) == {weights}
    assert load("serving").predicted(rows.table, rows.faults)["reason"].eq("").all()


LLAMA = """| model | size | params | backend | ngl | test | t/s |
| --- | ---: | ---: | --- | --: | ---: | ---: |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | pp512 | 7000.00 ± 20.1 |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | tg128 @ d4096 | 125.00 ± 0.10 |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | pp512+tg128 | 531.12 ± 0.10 |
"""
LLAMA_CSV = """gpu_info,model_type,n_prompt,n_gen,n_depth,avg_ts
NVIDIA GeForce RTX 4090,llama 8B Q4_K - Medium,512,0,0,7000.0
NVIDIA GeForce RTX 4090,llama 8B Q4_K - Medium,0,128,4096,125.0
"""
BATCHED = """|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |
|-------|--------|------|--------|----------|----------|----------|----------|
|   512 |    128 |    1 |    640 |    0.300 |  1706.67 |    1.280 |   100.00 |
"""


@pytest.mark.parametrize(
    ("text", "first", "between", "weights", "lengths"),
    [(LLAMA, 512 / 7, 8.0, "q4_k_m", (4097, 128)), (LLAMA_CSV, 512 / 7, 8.0, "q4_k_m", (4097, 128)),
     (BATCHED, 300.0, 10.0, "bf16", (512, 128))],
)  # fmt: skip
def test_speeds_of_llama_benches_are_times_of_a_static_batch(
    table, text, first, between, weights, lengths
):
    stated = {"device": "h100-sxm", "network": "llama-3-8b", "weights_dtype": "bf16"}
    rows = table(text, "serving", stated=stated)
    assert list(rows.table["metric"]) == ["ttft_ms", "tpot_ms"]
    assert list(rows.table["value"]) == pytest.approx([first, between], rel=1e-4)
    last = rows.table.iloc[1]
    assert (last["isl"], last["osl"]) == lengths
    assert last["weights_dtype"] == weights
    assert load("serving").predicted(rows.table, rows.faults)["reason"].eq("").all()


def test_an_operator_table_is_no_serving_benchmark(table):
    rows = table("device,op,dtype,m,n,k,us\nh100-sxm,gemm,bf16,64,64,64,5\n")
    assert rows.table["measured_us"].iloc[0] == 5
    assert set(rows.table["op"]) == {"gemm"}
