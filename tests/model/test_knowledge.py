"""What is known of a prediction: device, implementation and harness, by the runs in the fit."""

from __future__ import annotations

import pytest

from perfmodel.algorithms import Attention, Matmul
from perfmodel.hardware import load, loads, names
from perfmodel.predict import predict, predict_arrays
from perfmodel.render.basis import basis
from perfmodel.table.records import tidy
from perfmodel.timing import knowledge, spread
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.knowledge import known, table

FITTED = table()["families"]["gemm-16"]


def of(slug: str, **options) -> knowledge.Known:
    return predict(Matmul(1024, 1024, 1024), load(slug), **options).known


def test_a_device_is_known_by_the_runs_of_the_operator():
    assert of("h100-sxm").device == "fitted"
    assert "h20" not in FITTED["devices"]
    assert of("h20").device == "sibling"
    assert of("xeon-8480plus").device == "none"
    assert known("gemm-of-nobody", load("h100-sxm"), None, "", "kernel").device == "none"


def test_every_device_is_at_its_level():
    for slug in names():
        device = load(slug)
        level = known("gemm-16", device, None, "", "kernel").device
        architecture = architecture_of(device).name
        if device.kind != "gpu" or architecture == "other":
            assert level == "none"
        elif slug in FITTED["devices"]:
            assert level == "fitted"
        elif architecture in FITTED["architectures"]:
            assert level == "sibling"
        else:
            assert level == ("calibrated" if knowledge.is_calibrated(device) else "generation")


def test_a_new_generation_is_calibrated_by_rates_of_memory_and_of_a_cache_or_a_unit():
    device = load("a100-sxm4-80gb")
    assert knowledge.is_calibrated(device)
    text = device.dump()
    start = text.index("measured:")
    end = next(
        (i for i in range(start + 9, len(text)) if text[i - 1] == "\n" and text[i] not in " \n"),
        len(text),
    )
    assert not knowledge.is_calibrated(loads(text[:start] + text[end:], "bare"))


def test_an_implementation_is_known_by_framework_and_kernel():
    assert of("h100-sxm", implementation="torch-2.4:mm").implementation == "fitted"
    assert of("h100-sxm", implementation="cublas").implementation == "fitted"
    assert of("h100-sxm").implementation == "assumed"
    assert "triton-gemm" not in {name.split()[-1] for name in FITTED["kernels"]}
    assert of("h100-sxm", implementation="triton-gemm").implementation == "named"
    strange = of("h100-sxm", implementation="nobody-1.0:kernel")
    assert strange.implementation == "assumed"


def test_a_framework_that_never_ran_a_kernel_does_not_know_it():
    entry = table()["families"]["attention-prefill"]
    assert "vllm flash3" in entry["kernels"]
    assert not any(name.startswith("aiter ") for name in entry["kernels"])
    assert knowledge._implementation(entry, "vllm-9.0:vllm_flash_attn_fa3", "flash3") == "fitted"
    assert knowledge._implementation(entry, "aiter-9.0:fa3", "flash3") == "named"
    assert knowledge._implementation(entry, "flash3", "flash3") == "fitted"


def test_a_harness_is_known_or_assumed():
    assert of("h100-sxm", harness="cuda_graph").harness == "known"
    assert of("h100-sxm", harness="unknown").harness == "assumed"


def test_a_harness_by_which_a_framework_was_never_timed_is_unseen():
    assert "sglang cuda_graph" in FITTED["harnesses"]
    assert not any(pair == "sglang wall_clock" for pair in FITTED["harnesses"])
    name = "sglang-0.5.14:sglang_torch_linear"
    seen, unseen, alone = (
        of("h100-sxm", implementation=name, harness=harness)
        for harness in ("cuda_graph", "wall_clock", "kernel")
    )
    assert [each.harness for each in (seen, unseen, alone)] == ["known", "unseen", "known"]
    assert spread.widening(unseen) > spread.widening(seen)


def test_json_and_arrays_say_it():
    found = predict(Matmul(64, 64, 64), load("h20"), harness="unknown")
    said = found.as_dict()["known"]
    assert said == {"device": "sibling", "implementation": "assumed", "harness": "assumed"}
    many = predict_arrays(Matmul(64, 64, 64), load("h20"), harness="unknown")
    assert many.one(0).known == found.known


def test_compared_rows_say_it():
    pd = pytest.importorskip("pandas")
    from perfmodel.validation.compare import KNOWN, predict_table

    row = {
        "op": "gemm", "dtype": "bf16", "m": 512, "n": 512, "k": 512, "measured_us": 10.0,
        "direction": "fwd", "implementation": "torch-2.4:mm",
    }  # fmt: skip
    rows = [
        {**row, "device": "h100-sxm", "harness": "profiler"},
        {**row, "device": "h20", "harness": "somebody's"},
        {**row, "device": "h20", "harness": "cuda_graph", "m": None},
    ]
    found = predict_table(tidy(pd.DataFrame(rows)))
    assert found[list(KNOWN)].to_numpy().tolist() == [
        ["fitted", "fitted", "known"], ["sibling", "fitted", "assumed"], ["", "", ""],
    ]  # fmt: skip
    assert (
        found["kernel"].tolist()[0]
        == predict(
            Matmul(512, 512, 512), load("h100-sxm"), implementation="torch-2.4:mm"
        ).implementation
    )


@pytest.mark.parametrize(
    ("problem", "name", "level"),
    [
        (Attention(1, 8, 8, 1024, 1024, 64), "my_triton_attn", "assumed"),
        (Attention(1, 8, 8, 1024, 1024, 64), "better-flash2", "assumed"),
        (Attention(1, 8, 8, 1024, 1024, 64), "triton", "fitted"),
        (Attention(1, 8, 8, 1024, 1024, 64), "flash2", "fitted"),
        (Matmul(512, 512, 512), "our_cublas_wrapper", "assumed"),
        (Matmul(512, 512, 512), "vllm-0.24.0:torch.nn.functional.linear", "fitted"),
    ],
)
def test_a_name_that_only_contains_a_known_one_is_assumed(problem, name, level):
    found = predict(problem, load("a100-sxm4-80gb"), implementation=name)
    assert found.known.implementation == level
    told = any("is not known: taken for the kernel whose name it contains" in a
               for a in found.assumptions)  # fmt: skip
    assert told == (level == "assumed")


@pytest.mark.parametrize(
    ("problem", "slug", "said"),
    [
        (Attention(1, 8, 8, 1024, 1024, 64), "mi300x", "no attention runs of its architecture"),
        (
            Matmul(512, 512, 512, dtype="w4a16"),
            "h100-sxm",
            "no w4a16 gemm runs of its architecture",
        ),
    ],
)
def test_what_is_not_known_of_a_device_names_the_kind_of_runs(problem, slug, said):
    notes = basis([predict(problem, load(slug)).as_dict()])
    assert any(said in note for note in notes if note.startswith("known"))
