"""Values that the tests, documents and threads of other tools expect, beside ours.

tests/vectors/peers.yaml has those of networks, traceforms.py those of traced modules. Each value
agrees; or it is the peer's fault, and ours is what is right; or perfmodel leaves the model or a
part of it out and names it. docs/networks.md has the counts.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest
from folders import ROOT
from metamodels import CONFIGS, REMOVED, built, without
from transformersmodels import MODELS

from perfmodel.errors import PerfmodelError
from perfmodel.hardware import load as load_device
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.huggingface import read
from perfmodel.networks.summary import cache_bytes
from perfmodel.serving.cachememory import sequence_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import load as load_engine
from perfmodel.yamltable import parse

SOURCES = {
    source.pop("name"): source
    for source in parse(
        (ROOT / "tests/vectors/peers.yaml").read_text(encoding="utf-8")
    )["sources"]
}  # fmt: skip
ROWS = [(name, i) for name, source in SOURCES.items() for i in range(len(source["rows"]))]


# --- what is measured ------------------------------------------------------------------------


def step_flops(network, row):
    """Operations of training on sequences of these lengths, scores under the causal mask."""
    return sum(s * flops_per_token(network, s) for s in row["lengths"])


def step_flops_with_embedding(network, row):
    """The same, the table of the input embedding taken for a product."""
    table = 6 * network.vocabulary * network.hidden
    return step_flops(network, row) + table * sum(row["lengths"])


def attention_flops(network, row):
    """Of these, operations on scores: a token that sees one key has them once a layer and head."""
    first = 6 * sum(
        block.repeat
        * block.attention.heads
        * (block.attention.score_width + block.attention.value_width)
        for block in network.blocks
    )
    rest = step_flops(network, row) - sum(row["lengths"]) * flops_per_token(network, 1)
    return rest + sum(row["lengths"]) * first


def forward_flops(network, row):
    """Operations of a forward pass, a third of training, attention without a mask."""
    return sum(s * flops_per_token(network, s, "megatron") / 3 for s in row["lengths"])


def palm_flops(network, row):
    """Operations of a token in training, by the convention `palm`."""
    return sum(flops_per_token(network, s, "palm") for s in row["lengths"])


def device_cache_bytes(network, row):
    """Bytes that a token adds on each of `tensor` devices."""
    shared = Deployment(
        network, load_device("h200-sxm"), load_engine("ideal"), tensor=row["tensor"]
    )
    return sequence_bytes(shared, 1024) / 1024


MEASURES = {
    "parameters": lambda network, row: parameter_count(network),
    "cache_bytes": lambda network, row: sum(cache_bytes(network, s) for s in row["lengths"]),
    **{
        each.__name__: each
        for each in (
            step_flops, step_flops_with_embedding, attention_flops, forward_flops, palm_flops,
            device_cache_bytes,
        )
    },
}  # fmt: skip


# --- rows ------------------------------------------------------------------------------------


@cache
def published(name):
    """A file of tests/configs."""
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))


def config(row):
    """The config.json of a row."""
    data = dict(row.get("config") or published(row["file"]))
    for key in row.get("without", ()):
        data = without(data, key)
    if "text_config" in data:
        data["text_config"] = {**data["text_config"], **row.get("change", {})}
    else:
        data = {**data, **row.get("change", {})}
    if "wrapper" not in row:
        return data
    kind = row["wrapper"]
    if kind.startswith("qwen"):
        data["model_type"] = f"{kind}_text"
    return {"model_type": kind, "text_config": data, "vision_config": {"hidden_size": 1152},
            "tie_word_embeddings": data.get("tie_word_embeddings", False)}  # fmt: skip


def network_and_remarks(row):
    """The network of a row, or None, and what its error or its notes say."""
    if "preset" in row:
        return library.load(row["preset"]), ""
    try:
        imported = read(config(row))
    except PerfmodelError as error:
        return None, str(error)
    return imported.network, "; ".join(imported.notes)


def verdict(source, row):
    """`agrees`, `peer` or `left out`; raises where ours is none of these."""
    network, remarks = network_and_remarks(row)
    if "unstated" in row:
        assert "lacks hidden_size" in remarks  # and no word of its family
        return "left out"
    if "unsupported" in row and row["unsupported"] in remarks:
        return "left out"
    assert network is not None, remarks
    ours = MEASURES[source["measure"]](network, row)
    within = row.get("within", source["within"])
    if "fault" in row:
        assert ours != pytest.approx(row["expected"], rel=within)
    assert ours == pytest.approx(row.get("right", row["expected"]), rel=within, abs=0)
    return "peer" if "fault" in row else "agrees"


@pytest.mark.parametrize(("name", "i"), ROWS)
def test_a_value_agrees_or_its_disagreement_is_named(name, i):
    source = SOURCES[name]
    assert verdict(source, source["rows"][i]) in ("agrees", "peer", "left out")


def test_transformers_still_builds_that():
    pytest.importorskip("transformers")
    rows = SOURCES["config.json with unusual keys, parameters"]["rows"]
    row = next(row for row in rows if "without" in row)
    assert built(config(row))[0] == row["expected"]


# --- totals ----------------------------------------------------------------------------------


def of_traces():
    """Verdicts of traced modules, whose values test_trace_vectors.py and test_trace_models.py
    check."""
    forms = pytest.importorskip("traceforms", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    return {
        "pytorch test_flop_counter.py": {"agrees": len(forms.EXPECTED["pytorch"])},
        "fvcore test_flop_count.py": {"agrees": len(forms.EXPECTED["fvcore"])},
        "DeepSpeed test_flops_profiler.py": {"agrees": len(forms.EXPECTED["DeepSpeed"])},
        "ptflops common_test.py": {"agrees": len(forms.EXPECTED["ptflops"])},
        "torch's counter, modules": {
            "agrees": len(forms.COUNTED), "peer": len(forms.UNCOUNTED), "left out": 2,
        },
        "torch's counter, models of transformers": {"agrees": len(MODELS)},
    }  # fmt: skip


def counts():
    """Verdicts by source."""
    removed = json.loads(REMOVED.read_text(encoding="utf-8"))
    return {
        **{
            name: Counter(verdict(source, row) for row in source["rows"])
            for name, source in SOURCES.items()
        },
        "config.json without a key": {"agrees": sum(map(len, removed.values()))},
        **of_traces(),
    }


def test_the_document_counts_what_comes_out():
    rows = [
        [tally.get(kind, 0) for kind in ("agrees", "peer", "left out")]
        for tally in counts().values()
    ]
    agree, otherwise, left_out = (sum(column) for column in zip(*rows, strict=True))
    text = " ".join((ROOT / "docs/networks.md").read_text(encoding="utf-8").split())
    assert f"compare {agree + otherwise + left_out} values" in text
    assert f"from {len(rows)} groups" in text
    assert f"{agree} agree, in {otherwise} the other tool" in text
    assert f"in {left_out} the model" in text
