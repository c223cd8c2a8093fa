"""`perfmodel graph`: its formats, its schema, and one line for bad input."""

from __future__ import annotations

import csv
import io
import json

import pytest
from predictionschema import validator


@pytest.mark.parametrize("harness", ["kernel", "cuda_events_eager"])
@pytest.mark.parametrize("graph", ["decoder-layer", "unfused-attention"])
def test_json_follows_the_schema_and_adds_up(output, graph, harness):
    text = output(
        "graph", graph, "-d", "h100-sxm", "-d", "mi300x", "--harness", harness, "-f", "json"
    )
    document = json.loads(text, parse_constant=pytest.fail)
    validator("graphs").validate(document)
    assert [one["device"] for one in document["graphs"]] == ["h100-sxm", "mi300x"]
    for one in document["graphs"]:
        nodes = sum(node["time_us"] for node in one["kernels"])
        assert one["time_us"] == pytest.approx(nodes + one["gap_us"] + one["waiting_us"])
        assert sum(one["by_operator_us"].values()) == pytest.approx(nodes)
        assert one["peak_bytes"] == max(node["live_bytes"] for node in one["kernels"])
        assert all(node["limiter"] != "launch" for node in one["kernels"])


@pytest.mark.parametrize("by", ["node", "operator"])
def test_lines_add_up_to_the_last(output, by):
    text = output(
        "graph", "decoder-layer", "-d", "a100", "-s", "seq=256,batch=2", "--by", by, "-f", "csv"
    )
    *parts, whole = csv.DictReader(io.StringIO(text))
    assert whole[by] == "all"
    assert len(parts) == (12 if by == "node" else 6) + 2
    assert sum(float(row["time_us"]) for row in parts) == pytest.approx(float(whole["time_us"]))
    assert sum(float(row["share"]) for row in parts) == pytest.approx(1)
    moved = sum(float(row["hbm_bytes"] or 0) for row in parts)
    assert moved == pytest.approx(float(whole["hbm_bytes"]))


def test_a_file_of_ones_own(output, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\nsizes: {rows: 64}\ninputs: {x: [rows, 128]}\noutputs: y\nnodes:\n"
        "  soft: {operator: softmax, sizes: {rows: rows, cols: 128}, repeat: 3,"
        " reads: {X: x}, writes: {Y: y}}\n"
    )
    text = output("graph", str(path), "-d", "h100", "-s", "rows=1k")
    assert "rows=1024" in text
    assert "kernels" in text
