"""A config.json without one of its keys builds what transformers builds, or an error names the key.

tests/vectors/removed_keys.json has parameters and cached elements a token of the models of
transformers 5.24 on the meta device (metamodels.py). With transformers installed, the defaults are
compared with its classes and one file is built again.
"""

from __future__ import annotations

import dataclasses
import json

import pytest
from metamodels import CONFIGS, NOT_BUILT, REMOVED, built, without

from perfmodel.errors import PerfmodelError
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.huggingface import FAMILIES, read
from perfmodel.networks.huggingface.families import ALIASES, DEFAULTS
from perfmodel.networks.summary import cached_elements

BUILT = json.loads(REMOVED.read_text(encoding="utf-8"))
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS.glob("*.json")}


def network_or_error(name, key):
    """What is read of a file without a key, or the error's text."""
    try:
        return read(without(FILES[name], key) if key else FILES[name])
    except PerfmodelError as error:
        return str(error)


def test_every_file_is_compared():
    assert BUILT.keys() == FILES.keys() - NOT_BUILT.keys()
    assert sum(map(len, BUILT.values())) == 391


@pytest.mark.parametrize("name", BUILT)
def test_a_file_without_a_key_is_what_transformers_builds(name):
    for key, wanted in BUILT[name].items():
        found = network_or_error(name, key)
        if isinstance(found, str):
            assert key in found
            continue
        network = found.network
        assert wanted is not None, key
        assert parameter_count(network) == wanted[0], key
        if wanted[1] is not None:
            cached = sum(
                block.repeat * cached_elements(block.attention) for block in network.blocks
            )
            assert cached == wanted[1], key


@pytest.mark.parametrize("name", BUILT)
def test_a_default_that_changes_a_network_is_noted(name):
    whole = read(FILES[name])
    for key in filter(None, BUILT[name]):
        found = network_or_error(name, key)
        if isinstance(found, str):
            continue
        if found.network != whole.network and key in DEFAULTS[found.network.family]:
            assert any(note.startswith("not in the file") and key in note for note in found.notes)


def test_defaults_are_those_of_families_that_are_read():
    assert all(ALIASES.get(kind, kind) in FAMILIES for kind in DEFAULTS)


@pytest.mark.parametrize("kind", [kind for kind in DEFAULTS if not kind.startswith("Refined")])
def test_defaults_are_those_of_transformers(kind):
    mapping = pytest.importorskip("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    if kind not in mapping:
        pytest.skip(f"this transformers has no {kind}")
    ours, theirs = DEFAULTS[kind], mapping[kind]
    of_class = {
        field.name: field.default
        for field in dataclasses.fields(theirs)
        if isinstance(field.default, bool | int | float | str)
        and field.name != "tie_word_embeddings"
    }
    if not kind.endswith("vl_moe_text"):  # its head is tied as the whole model's class says
        of_class["tie_word_embeddings"] = getattr(theirs(), "tie_word_embeddings", False)
    nested = theirs().attn_config.to_dict() if kind == "mpt" else {}
    for key, value in ours.items():
        if isinstance(value, dict):
            assert value.items() <= nested.items()
        elif key in of_class:
            assert of_class[key] == value, key
    sizes = {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
             "num_hidden_layers", "intermediate_size", "moe_intermediate_size", "d_model",
             "num_experts_per_tok", "n_shared_experts", "first_k_dense_replace", "q_lora_rank",
             "tie_word_embeddings"}  # fmt: skip
    latent = {"num_key_value_heads", "head_dim"} if kind.startswith("deepseek") else set()
    for key in (sizes - latent) & of_class.keys():
        assert ours.get(key, False) == of_class[key] or not of_class[key], key


@pytest.mark.parametrize("name", ["qwen3-8b", "gemma-3-4b"])
def test_transformers_still_builds_that(name):
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    assert list(built(FILES[name])) == BUILT[name][""]
