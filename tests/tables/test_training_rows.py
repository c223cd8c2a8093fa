"""`compare --kind training` as a user runs it: tables of steps, passes and peaks of memory."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from cases import cases, listed
from refusing import refused

from perfmodel.errors import PerfmodelError
from perfmodel.networks import library
from perfmodel.training.metrics import METRICS, convention_of
from perfmodel.training.runnetwork import Cells, network_of
from perfmodel.training.trainingrows import plan_of

ROW = {
    "row": 1, "source": "own", "device": "a100-sxm4-80gb", "network": "gpt2", "dtype": "bf16",
    "pass": "train", "seq": 512, "devices": 1, "micro_batch": 2, "stack": "megatron",
    "metric": "step_ms", "value": 60.0, "flag": "",
}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    def write(*rows):
        path = tmp_path / "runs.csv"
        table = pd.DataFrame([{**ROW, "row": i + 1, **row} for i, row in enumerate(rows)])
        table.to_csv(path, index=False)
        return path

    return write


@pytest.fixture
def compared(output, runs, tmp_path):
    def call(*rows):
        out = tmp_path / "rows.csv"
        output("compare", runs(*rows), "--kind", "training", "--output", out)
        return pd.read_csv(out, keep_default_na=False, na_values=[""])

    return call


def test_the_table_comes_back_with_predictions_in_the_unit_of_each_value(compared):
    metrics = [name for name in METRICS if name != "device_hours"]
    rows = [{"metric": name, "convention": "Korthikanti Eq. 7"} for name in metrics]
    rows.append({"metric": "device_hours", "tokens_total": 1e9})
    found = compared(*rows).set_index("metric")
    assert list(found["row"]) == list(range(1, len(rows) + 1))
    assert found["reason"].isna().all()
    assert (found["low"] < found["predicted"]).all()
    assert (found["predicted"] < found["high"]).all()
    assert set(found["known_device"]) == {"fitted"}
    assert set(found["known_stack"]) == {"megatron"}
    at = found["predicted"]
    seconds, tokens = at["step_ms"] / 1e3, 2 * 512
    assert at["tokens_per_s_per_device"] == pytest.approx(tokens / seconds)
    assert at["sequences_per_s"] == pytest.approx(2 / seconds)
    assert at["device_hours"] == pytest.approx(1e9 / tokens * seconds / 3600)
    assert at["mfu_percent"] == pytest.approx(100 * at["tflops_per_device"] / 312)
    # An iteration is without the optimiser and the loss; both passes make it, and what the host
    # does between two of them.
    assert at["forward_ms"] + at["backward_ms"] <= at["iteration_ms"] < at["step_ms"]
    # 124 M parameters of 18 bytes, and what is kept of 1,024 tokens.
    assert 2.1 < at["peak_gib"] < 8


WRONG = listed(__file__, "WRONG")


def test_each_bad_row_has_its_reason_in_one_line_and_the_others_are_predicted(compared):
    found = compared({}, *(change for change, _ in WRONG.values()), {"seq": 256})
    assert found["predicted"].notna().tolist() == [True, *[False] * len(WRONG), True]
    for reason, (name, (_, said)) in zip(found["reason"][1:-1], WRONG.items(), strict=True):
        assert said in reason, (name, reason)
        assert "\n" not in reason


def test_a_kernel_that_nobody_knows_is_a_visible_assumption(compared):
    found = compared({"attention": "flash-9"}, {"attention": "flash2"}, {"attention": "unfused"})
    said = found["assumed_of_plan"].fillna("").tolist()
    assert "'flash-9' modelled as" in said[0]
    assert "flash" not in said[2]
    assert found["predicted"].notna().all()


def test_a_table_that_lacks_columns_is_refused_with_all_of_them(cli, tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame([{"device": "a100-sxm4-80gb", "value": 1.0}]).to_csv(path, index=False)
    said = refused(cli("compare", path, "--kind", "training"))
    assert all(name in said for name in ("network", "pass", "dtype", "seq", "devices", "metric"))


def test_the_table_of_published_runs_is_read_and_judged(output, measured, tmp_path):
    path = measured / "training_runs_dev.csv.gz"
    if not path.is_file():
        pytest.skip(f"no training runs at {path}")
    whole = pd.read_csv(path, keep_default_na=False, dtype=str)
    part = tmp_path / "part.csv"
    whole.iloc[::25].to_csv(part, index=False)
    out = tmp_path / "rows.csv"
    shown = output("compare", part, "--kind", "training", "--by", "source", "-o", out)
    del shown
    found = pd.read_csv(out, keep_default_na=False, na_values=[""])
    assert len(found) == len(whole.iloc[::25])
    assert (found["predicted"].notna() | found["reason"].notna()).all()
    usual = found[found["flag"].isna() & found["predicted"].notna()]
    errors = np.log(usual["predicted"] / usual["value"]).abs()
    assert len(usual) >= 40
    assert errors.median() < 0.1


# ---- Rows as networks and plans ------------------------------------------------------------------


def test_a_network_of_a_row_is_the_one_of_its_name_or_of_its_sizes():
    known = network_of(Cells({**ROW, "vocabulary": 50304}))
    assert (known.layers, known.hidden, known.vocabulary) == (12, 768, 50304)
    sizes = {"hidden": 1024, "layers": 24, "heads": 16, "inner": 4096, "vocabulary": 51200}
    mine = network_of(Cells({**ROW, **sizes, "network": "gpt-mine", "seq": 4096}))
    assert (mine.layers, mine.blocks[0].attention.head_size) == (24, 64)
    assert mine.positions == 4096
    mixture = network_of(Cells({
        **ROW, **sizes, "network": "deepseek-mine", "heads": 128, "experts": 64,
        "experts_chosen": 6, "expert_inner": 512, "shared_experts": 2, "dense_layers": 1,
    }))  # fmt: skip
    first, others = mixture.blocks
    assert (first.repeat, others.repeat) == (1, 23)
    assert (first.mlp.experts, others.mlp.experts, others.mlp.shared_inner) == (0, 64, 1024)
    switch = network_of(Cells({**ROW, **sizes, "network": "switch-mine", "experts": 4}))
    assert sum(one.repeat for one in switch.encoder) == 12
    assert [one.mlp.experts for one in switch.blocks] == [0, 4]


def test_what_a_row_leaves_open_is_filled_and_said():
    bare = {k: v for k, v in ROW.items() if k not in ("stack", "micro_batch")}
    asked = plan_of({**bare, "devices": 8, "global_batch": 64})
    assert (asked.plan.stack, asked.plan.data, asked.plan.accumulation) == ("megatron", 8, 8)
    assert any(line.startswith("micro_batch 1") for line in asked.assumed)
    # Frameworks run what a device has at once, and torch.compile left the loss out until 2025.
    early = plan_of({**bare, "devices": 8, "global_batch": 64, "stack": "compile", "year": 2024})
    assert (early.plan.micro_batch, early.plan.stack) == (8, "compile-2024")
    assert early.plan.attention == "flash"
    late = plan_of({**bare, "devices": 2, "tensor": 2, "stack": "compile", "year": 2025})
    assert (late.plan.stack, late.plan.sequence) == ("compile", True)
    alone = plan_of({**ROW, "metric": "backward_ms", "accumulation": 4})
    assert (alone.plan.optimiser, alone.plan.loss, alone.plan.accumulation) == ("none", False, 1)


@pytest.mark.parametrize("name", ["bert-large", "bert-large-pretraining"])
def test_bert_trains_with_its_heads_and_tunes_without(name):
    heads = {note: network_of(Cells({**ROW, "network": name, "notes": note})).head
             for note in ("", "finetune on SQuAD")}  # fmt: skip
    assert heads == {"": "pretraining", "finetune on SQuAD": "none"}
    assert library.load(name).family == "bert"


def test_conventions_of_published_tables_are_known():
    said = {
        "Narayanan Eq. 3": "narayanan", "Korthikanti Eq. 7, no causal halving": "megatron",
        "causal attention halved": "causal", "PaLM appendix B": "palm",
    }  # fmt: skip
    assert {text: convention_of({"convention": text}) for text in said} == said
    with pytest.raises(PerfmodelError, match="the convention of FLOPs is empty"):
        convention_of({"convention": math.nan})


@cases
def test_the_software_of_a_row_names_its_program(stack, software, year, named):
    row = {**ROW, "stack": stack, "software": software, "year": year}
    assert plan_of(row).plan.stack == named


def test_the_source_names_a_program_where_no_other_column_does():
    """Llama 3 (2407.21783): FSDP whose weights stay whole in a pipeline."""
    row = {**ROW, "stack": "", "source": "llama3-2407.21783", "data": 2, "devices": 2}
    for software, named in (("", "llama3"), ("MLPerf", "nemo")):
        assert plan_of({**row, "software": software}).plan.stack == named
    asked = plan_of(row)
    assert asked.plan.zero == 3
    assert "stack llama3 (by its source)" in asked.assumed
    assert plan_of({**row, "reshard": "false"}).plan.reshard == "false"


def test_long_sequences_are_never_unfused_where_fused_kernels_exist():
    for year, seq, fused in ((2022, 8192, ""), (2023, 4096, ""), (2023, 8192, "flash")):
        row = {**ROW, "stack": "eager", "year": year, "seq": seq}
        assert plan_of(row).plan.attention == fused
    program = plan_of({**ROW, "stack": "eager", "software": "llm-foundry", "year": 2023})
    assert program.plan.setting.fused_attention == "flash2"


def test_deep_pipelines_interleave_where_chunks_are_not_said():
    """Llama 3.1 405B: 126 layers of 16 stages are 4 chunks of 2, less one at either end."""
    row = {
        **ROW, "network": "llama-3.1-405b", "devices": 128, "tensor": 8, "pipeline": 16,
        "global_batch": 16, "micro_batch": 1, "year": 2024,
    }  # fmt: skip
    asked = plan_of(row)
    assert (asked.plan.chunks, asked.in_turn.chunks) == (4, 1)
    assert plan_of({**row, "chunks": 1}).in_turn is None
    assert plan_of({**row, "year": 2021}).plan.chunks == 1
    assert plan_of({**row, "software": "Megatron-DeepSpeed"}).plan.chunks == 1


def test_packed_sequences_are_more_than_rows(compared):
    rows = [{"metric": "sequences_per_s", "fill": fill} for fill in ("", 1.0, 0.5)]
    plain, full, half = compared(*rows)["predicted"]
    assert plain == full
    assert half == pytest.approx(2 * full)


def test_without_gpudirect_nodes_exchange_no_faster_than_one_link_of_the_host(compared):
    near, far = ({"devices": 16, "gpudirect": said} for said in ("", "no"))
    direct, staged = compared(near, far)["predicted"]
    assert staged > direct
