"""`perfmodel train`: one plan, grids of plans, charts, every format, and one line for bad input."""

from __future__ import annotations

import csv
import io
import json

import pytest
from refusing import refused

ONE = ("train", "gpt2", "-d", "a100", "--seq", "512")
EIGHT = (*ONE, "--gpus", "8")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_one_plan_is_its_classes_and_its_memory(output):
    (step,) = json.loads(output(*ONE, "-f", "json"))["steps"]
    assert sum(step["by_class_us"].values()) == pytest.approx(step["step_us"])
    assert (step["plan"]["zero"], step["plan"]["sequence"]) == (0, False)
    assert step["low_us"] < step["step_us"] < step["high_us"]
    assert sum(step["memory_bytes"].values()) == pytest.approx(step["memory_total_bytes"])
    text = output(*ONE)
    for word in ("matmul", "optimiser states", "tokens/s a device", "MFU", "fits: "):
        assert word in text


def test_a_grid_has_what_varies_in_columns_and_the_rest_in_its_title(output):
    title, header, *rows = output(*EIGHT, "--zero", "1,2,3").splitlines()
    assert title.startswith("gpt2 on a100-sxm4-80gb: devices=8 data=8 micro-batch=1")
    assert header.split()[:2] == ["zero", "step"]
    assert [row.split()[0] for row in rows[1:4]] == ["1", "2", "3"]
    assert "zero" not in title


def test_a_system_named_twice_is_predicted_once(output):
    # A system holds its sources in a mapping, so it has no hash to be told apart by.
    rows = table(output("train", "gpt2", "--system", "dgx-h100,dgx-a100,dgx-h100", "--seq", "512",
                      "--gpus", "8", "-f", "csv"))  # fmt: skip
    assert [row["device"] for row in rows] == ["h100-sxm", "a100-sxm4-80gb"]


def test_every_axis_that_varies_tells_plans_apart(output):
    rows = table(output(*EIGHT, "--zero", "0,1", "--tensor", "1,2", "--micro-batch", "1,2",
                      "--recompute", "none,full", "-f", "csv"))  # fmt: skip
    axes = ("device", *(f"plan_{n}" for n in ("zero", "tensor", "micro_batch", "recompute")))
    assert len({tuple(row[axis] for axis in axes) for row in rows}) == len(rows) == 16


def test_more_recomputation_holds_less_and_takes_longer(output):
    none, full = table(output(*ONE, "--recompute", "none,full", "-f", "csv"))
    assert float(full["memory_total_bytes"]) < float(none["memory_total_bytes"])
    assert float(full["step_us"]) > float(none["step_us"])


def test_the_same_plans_on_several_devices_are_those_of_each(output):
    both = table(output("train", "gpt2", "-d", "a100,h100", "--seq", "512", "--zero", "0,1",
                      "--gpus", "2", "-f", "csv"))  # fmt: skip
    assert [row["device"] for row in both] == ["a100-sxm4-80gb"] * 2 + ["h100-sxm"] * 2
    for device, rows in (("a100", both[:2]), ("h100", both[2:])):
        alone = table(output("train", "gpt2", "-d", device, "--seq", "512", "--zero", "0,1",
                           "--gpus", "2", "-f", "csv"))  # fmt: skip
        assert alone == rows


def test_systems_are_named_in_lists_too(output):
    rows = table(output("train", "gpt2", "--system", "dgx-a100,dgx-h100", "-s", "dgx-a100",
                      "--seq", "512", "--gpus", "8", "-f", "csv"))  # fmt: skip
    assert [row["device"] for row in rows] == ["a100-sxm4-80gb", "h100-sxm"]


def test_the_fastest_that_fits_is_the_best_of_the_grid(output):
    grid = ("train", "llama-3-8b", "-d", "a100,h100", "--gpus", "4,8", "--zero", "1,3",
            "--seq", "2k", "--recompute", "none,full", "-f", "csv")  # fmt: skip
    rows, best = table(output(*grid)), table(output(*grid, "--fastest"))
    assert [(row["device"], row["devices"]) for row in best] == [
        ("a100-sxm4-80gb", "4"), ("a100-sxm4-80gb", "8"), ("h100-sxm", "4"), ("h100-sxm", "8"),
    ]  # fmt: skip
    for row in best:
        rivals = [
            float(one["tokens_per_s_per_device"])
            for one in rows
            if (one["device"], one["devices"], one["fits"])
            == (row["device"], row["devices"], "True")
        ]
        assert float(row["tokens_per_s_per_device"]) == max(rivals)


@pytest.mark.parametrize("format", ["table", "json", "csv", "markdown", "latex"])
@pytest.mark.parametrize("grid", [(), ("--zero", "0,1", "--gpus", "2")], ids=["one", "grid"])
def test_every_format(output, tmp_path, format, grid):
    text = output(*ONE, *grid, "-f", format)
    assert "matmul" in text or "a100-sxm4-80gb" in text
    output(*ONE, *grid, "-f", format, "-o", "out.txt")
    assert (tmp_path / "out.txt").read_text() == text


def test_charts_are_of_a_grid_or_of_a_pipeline(cli, tmp_path):
    code, _, err = cli(*EIGHT, "--zero", "1,3", "--chart", "grid.svg")
    assert (code, "wrote grid.svg" in err) == (0, True)
    assert "a100-sxm4-80gb" in (tmp_path / "grid.svg").read_text()
    code, _, err = cli(*EIGHT, "--pipeline", "4", "--global-batch", "16", "--chart", "pipe.svg")
    assert (code, "wrote pipe.svg" in err) == (0, True)
    code, out, err = cli(*ONE, "--chart", "none.svg")
    assert (code, out) == (2, "")
    assert "one plan without a pipeline has no timeline" in err


def test_plans_that_cannot_be_laid_out_are_named_with_their_device(cli):
    code, out, err = cli("train", "gpt2", "-d", "a100,h100", "--seq", "512", "--gpus", "8",
                         "--tensor", "1,3")  # fmt: skip
    assert (code, err) == (0, "")
    assert "left out: a100-sxm4-80gb, tensor 3: " in out
    assert "left out: h100-sxm, tensor 3: " in out


def test_a_grid_without_any_plan_is_an_error(cli):
    refused(
        cli(*EIGHT, "--tensor", "3,5"),
        "perfmodel: tensor 3: 8 devices are no multiple",
        "(and 1 more)",
    )


def test_a_search_of_plans_names_the_best_first(output):
    plan = ("--gpus", "4", "--seq", "2k", "--plan", "auto", "--chunks", "1", "--micro-batch", "1")
    asked = ("train", "llama-3.2-3b", "-d", "h100", *plan, "--global-batch", "8", "-f", "json")
    out = output(*asked)
    times = [step["step_us"] for step in json.loads(out)["steps"]]
    assert times == sorted(times)


@pytest.mark.parametrize("by", ["operator", "kernel"])
def test_lines_of_a_plan_add_up_to_its_step(output, by):
    plan = ("llama-3-8b", "-d", "h100", "--gpus", "16", "--tensor", "4", "--pipeline", "2",
            "--zero", "1", "--global-batch", "32")  # fmt: skip
    *lines, total = table(output("train", *plan, "--by", by, "-f", "csv"))
    (step,) = json.loads(output("train", *plan, "-f", "json"))["steps"]
    assert len(lines) > 8
    assert float(total["share"]) == pytest.approx(1.0)
    assert sum(float(line["share"]) for line in lines) == pytest.approx(1.0)
    assert float(total["time_us"]) == pytest.approx(step["step_us"])
    hidden = [
        line
        for line in lines
        if float(line["time_us"]) > 1.01 * step["step_us"] * float(line["share"])
    ]
    assert {line[by] for line in hidden} <= {"all-gather", "reduce-scatter", "all-reduce"}
    launched = sum(float(line["launches"]) for line in lines if line["launches"])
    assert launched == sum(kernel["launches"] for kernel in step["kernels"])


def test_kernels_are_of_one_plan(cli):
    line = refused(
        cli("train", "gpt2-xl", "-d", "a100", "--zero", "0,1", "--gpus", "2", "--by", "kernel")
    )
    assert "--by kernel is of one plan" in line
