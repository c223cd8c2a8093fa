"""config.json files, written from their field tables, as the networks that have a name here."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from cases import cases
from folders import TESTS
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import PerfmodelError, ProblemError, SpecError, UnknownName
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.huggingface import FAMILIES, read
from perfmodel.networks.huggingface.config import COMMON, WITHOUT_EFFECT
from perfmodel.networks.huggingface.declared import TOWERS
from perfmodel.networks.summary import cache_bytes_per_token

CONFIGS = sorted((TESTS / "configs").glob("*.json"))
DEPLOYED = json.loads((TESTS / "vectors" / "deployed.json").read_text(encoding="utf-8"))
"""Networks that people deploy: published parameters, those that transformers builds of the keys on
the meta device (metamodels.py), and the keys."""
READERS_OF_IMAGES = json.loads((TESTS / "vectors" / "wrappers.json").read_text(encoding="utf-8"))
"""Networks that read images: the published keys, and the parameters of text and encoder that
transformers builds of them (metamodels.py)."""
TOWERS_WITHOUT_FILE = {
    "intern_vit_6b", "moonvit", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe",
}  # fmt: skip
"""Code that is not part of transformers, and encoders like one that has a file."""
WITHOUT_FILE = {"llama4_text", "gemma3_text", "phi3", "gemma", "gemma3n_text"}
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in CONFIGS}


def changed(name, **more):
    """A file with other keys; `...` drops one."""
    return {key: value for key, value in {**FILES[name], **more}.items() if value is not ...}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_the_network_of_its_name(name):
    wanted = library.load(name)
    found = read(FILES[name]).network
    same = replace(found, name=wanted.name, about=wanted.about, source=wanted.source)
    assert same == wanted


def test_every_family_has_a_file():
    kinds = {data["model_type"] for data in FILES.values()}
    kinds |= {entry["keys"]["model_type"] for entry in DEPLOYED.values()}
    assert kinds >= {*FAMILIES} - WITHOUT_FILE
    assert {"llama4", "gemma3"} <= kinds


@pytest.mark.parametrize("name", DEPLOYED)
def test_a_deployed_network_has_the_parameters_that_were_published(name):
    """Within 1 % of the published number, and a thousandth of what transformers builds."""
    entry = DEPLOYED[name]
    parameters = parameter_count(read(entry["keys"]).network)
    assert parameters == pytest.approx(entry["built"], rel=1e-3)
    assert parameters == pytest.approx(1e9 * entry["published_billions"], rel=1e-2)


@pytest.mark.parametrize("name", READERS_OF_IMAGES)
def test_a_wrapper_has_the_parameters_of_its_text_and_its_encoder(name):
    """Exactly what transformers builds of the published keys on the meta device."""
    network = read(READERS_OF_IMAGES[name]["keys"]).network
    assert network.tower is not None
    built = [parameter_count(network), parameter_count(network.tower)]
    assert built == READERS_OF_IMAGES[name]["built"]


def test_every_encoder_is_read_of_a_file():
    kinds = {read(entry["keys"]).network.tower.family for entry in READERS_OF_IMAGES.values()}
    assert kinds >= {*TOWERS} - {"encoder", *TOWERS_WITHOUT_FILE}


def test_every_second_pixel_of_a_side_takes_a_quarter_of_the_patches():
    tower = read(READERS_OF_IMAGES["qwen2-vl-7b"]["keys"]).network.tower
    whole, half = (tower.patches.passes(1120 // n, 560 // n, merge=2) for n in (1, 2))
    assert (whole.rows, whole.tokens) == (4 * half.rows, 4 * half.tokens)


def test_windows_of_an_encoder_are_chunks_of_patches():
    blocks = read(READERS_OF_IMAGES["qwen2.5-vl-72b"]["keys"]).network.tower.blocks
    layers = [block.attention.chunk for block in blocks for _ in range(block.repeat)]
    assert [i for i, chunk in enumerate(layers) if not chunk] == [7, 15, 23, 31]
    assert {*layers} == {0, 64}


@cases
def test_an_encoder_that_is_not_described_is_left_out_and_said(keys, said):
    text = {"model_type": "llama", "hidden_size": 64, "vocab_size": 100}
    found = read({"text_config": text, **keys})
    assert found.network.tower is None
    assert any(said in note for note in found.notes), found.notes


LAYERS = {  # layers with a state, with keys and values, and with experts
    "qwen3-next-80b-a3b": (36, 12, 48), "qwen3.5-27b": (48, 16, 0), "minimax-text-01": (70, 10, 80),
    "kimi-linear-48b-a3b": (20, 7, 26), "mamba-codestral-7b": (64, 0, 0), "bamba-9b": (29, 3, 0),
    "falcon-mamba-7b": (64, 0, 0), "jamba-v0.1": (28, 4, 16), "nemotron-h-8b": (24, 4, 0),
    "granite-4.0-h-small": (36, 4, 40), "nemotron-3-nano-30b-a3b": (23, 6, 23),
    "glm-4.5": (0, 92, 89), "deepseek-v3.2": (0, 61, 58), "gemma-4-26b-a4b": (0, 30, 30),
}  # fmt: skip
"""As their reports say: MiniMax-01 (2501.08313) one in eight, Jamba (2403.19887) one in eight and
experts in every other, Nemotron-H (2504.03624) four of 52."""


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_of_the_kinds_that_were_published(name):
    blocks = read(DEPLOYED[name]["keys"]).network.blocks
    states = sum(block.repeat for block in blocks if block.attention.state is not None)
    layers = sum(block.repeat for block in blocks)
    experts = sum(block.repeat for block in blocks if block.mlp.experts)
    assert (states, layers - states, experts) == LAYERS[name]


def test_two_inner_layers_in_a_row_are_refused():
    keys = DEPLOYED["nemotron-h-8b"]["keys"] | {"layers_block_type": ["mamba", "mlp", "mlp"]}
    with pytest.raises(ProblemError, match="layer 2 is an inner layer without a mixer before it"):
        read(keys)


@cases
def test_layers_with_embeddings_of_their_own_have_the_parameters_of_transformers(keys, built):
    """Gemma 3n E4B and E2B, Gemma 4 E2B, on the meta device."""
    network = read(keys).network
    assert parameter_count(network) == built
    lenders = [block for block in network.blocks if not block.attention.borrowed]
    borrowers = [block for block in network.blocks if block.attention.borrowed]
    assert sum(block.repeat for block in borrowers) == keys.get("num_kv_shared_layers", 15)
    assert cache_bytes_per_token(network) == cache_bytes_per_token(
        replace(network, blocks=tuple(lenders))
    )


def test_what_a_file_leaves_out_is_said():
    notes = read(FILES["gemma-3-4b"]).notes
    assert not any("text_config" in note for note in notes)
    (taken,) = (note for note in notes if note.startswith("not in the file"))
    for key in ("num_attention_heads 8", "num_key_value_heads 4", "head_dim 256",
                "vocab_size 262208", "tie_word_embeddings true"):  # fmt: skip
        assert key in taken
    assert read(FILES["llama-3-8b"]).notes == ()
    (note,) = read(FILES["qwen2.5-7b"]).notes
    assert note == "not recognised, left out: use_mrope"
    (note,) = read(FILES["deepseek-v3"]).notes
    assert note.startswith("num_nextn_predict_layers")


@pytest.mark.parametrize(
    ("quantization", "weights"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, ""),
        ({"quant_method": "awq", "bits": 4}, ""),
    ],
)
def test_a_format_of_the_checkpoint_is_read_or_noted(quantization, weights):
    found = read({**FILES["qwen3-8b"], "quantization_config": quantization})
    assert found.network.weights == weights
    assert any("quantization_config" in note for note in found.notes) is not bool(weights)


@given(st.dictionaries(st.from_regex(r"x_[a-z]{1,12}", fullmatch=True), st.none() | st.integers()))
def test_unknown_keys_are_listed_and_change_nothing(more):
    known = read(FILES["llama-3-8b"])
    found = read({**FILES["llama-3-8b"], **more})
    assert found.network == known.network
    assert found.notes == ((f"not recognised, left out: {', '.join(more)}",) if more else ())


@pytest.mark.parametrize("name", FILES)
def test_every_size_of_a_file_counts(name):
    """Twice as much of it is another network, or an error; `IDLE` says where it may be neither."""
    whole = FILES[name]
    data = whole.get("text_config", whole)
    idle = set()
    for key in data.keys() - WITHOUT_EFFECT:
        if isinstance(data[key], int) and data[key] > 0 and not isinstance(data[key], bool):
            other = {**data, key: 2 * data[key]}
            with suppress(ProblemError):
                if read(other if data is whole else {**whole, "text_config": other}) == read(whole):
                    idle.add(key)
    assert idle == IDLE.get(name, set())


IDLE = {
    "mpt-7b-released": {"max_seq_len"},
    "switch-base-8": {"expert_capacity", "num_sparse_encoder_layers", "num_sparse_decoder_layers"},
    "qwen2.5-7b": {"max_window_layers", "sliding_window"},
    "qwen1.5-moe-a2.7b": {"max_window_layers", "sliding_window", "intermediate_size"},
    "qwen3-8b": {"max_window_layers"},
    "qwen3-30b-a3b": {"max_window_layers", "intermediate_size"},
    "deepseek-v2-lite": {"num_key_value_heads"},
    "deepseek-v3": {"num_key_value_heads", "num_nextn_predict_layers"},
    "gpt-oss-20b": {"experts_per_token"},
    "llama-4-scout": {"intermediate_size_mlp"},
}
"""Windows that are off, dense layers that there are none of, what the importer says it leaves out,
and what means nothing in a family."""


TRAPS = {
    "absent kv heads mean as many as heads": (
        changed("llama-3-8b", num_key_value_heads=...), lambda n: n.blocks[0].attention.kv_heads, 32
    ),
    "and 8 of them in Mistral": (
        changed("mistral-7b-v0.1", num_attention_heads=64, num_key_value_heads=...),
        lambda n: n.blocks[0].attention.kv_heads,
        8,
    ),
    "but as many as heads where they are null": (
        changed("mistral-7b-v0.1", num_key_value_heads=None),
        lambda n: n.blocks[0].attention.kv_heads,
        32,
    ),
    "a head may be wider than the width over the heads": (
        changed("qwen3-8b", num_attention_heads=16),
        lambda n: (n.blocks[0].attention.heads, n.blocks[0].attention.head_size),
        (16, 128),
    ),
    "a null inner width means four times": (
        FILES["gpt2-xl"], lambda n: n.blocks[0].mlp.inner, 6400
    ),
    "Qwen2's window is off": (FILES["qwen2.5-7b"], lambda n: n.blocks[0].attention.window, 0),
    "Qwen2's window, where it is on, begins at a layer": (
        changed("qwen2.5-7b", use_sliding_window=True, max_window_layers=20, sliding_window=4096),
        lambda n: [(b.repeat, b.attention.window) for b in n.blocks],
        [(20, 0), (8, 4096)],
    ),
    "layer types overrule the rest": (
        changed("qwen2.5-7b", sliding_window=64, use_sliding_window=True, layer_types=[
            "full_attention", *["sliding_attention"] * 27]),
        lambda n: [(b.repeat, b.attention.window) for b in n.blocks],
        [(1, 0), (27, 64)],
    ),
    "gpt-oss without layer types alternates": (
        changed("gpt-oss-20b", layer_types=...),
        lambda n: n.blocks,
        library.load("gpt-oss-20b").blocks,
    ),
    "biases of attention": (
        changed("llama-3-8b", attention_bias=True),
        lambda n: (n.blocks[0].attention.qkv_bias, n.blocks[0].attention.output_bias),
        (True, True),
    ),
    "dense layers among sparse ones": (
        changed("qwen3-30b-a3b", decoder_sparse_step=2, mlp_only_layers=[1]),
        lambda n: [(b.repeat, b.mlp.experts) for b in n.blocks][:3],
        [(3, 0), (1, 128), (1, 0)],
    ),
    "a tied head where nothing is said": (changed("gpt2-xl"), lambda n: n.tied, True),
    "and none": (changed("llama-3-8b", tie_word_embeddings=...), lambda n: n.tied, False),
    "kv heads mean nothing to latent attention": (
        changed("deepseek-v3", num_key_value_heads=1), lambda n: n.blocks[0].attention.kv_heads, 128
    ),
    "gated gelu": (
        changed("t5-large", feed_forward_proj="gated-gelu"),
        lambda n: (n.blocks[0].mlp.gated, n.blocks[0].mlp.activation),
        (True, "gelu_new"),
    ),
    "older Falcon with its own heads": (
        changed("falcon-7b", multi_query=False, parallel_attn=False, bias=True),
        lambda n: (n.blocks[0].attention.kv_heads, n.blocks[0].parallel, n.blocks[0].mlp.bias),
        (71, False, True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap):
    data, what, wanted = TRAPS[trap]
    assert what(read(data).network) == wanted


def test_a_family_may_be_named(tmp_path):
    data = changed("llama-3-8b", model_type="lama9", glue_size=3)
    with pytest.raises(ProblemError) as error:
        read(data)
    said = str(error.value)
    assert "model_type 'lama9' is not known, did you mean llama" in said
    assert "recognised: attention_bias, hidden_act" in said
    assert "not recognised: glue_size" in said
    assert "--family" in said
    assert "\n" not in said
    found = read(data, family="llama", name="mine")
    assert found.network.blocks == library.load("llama-3-8b").blocks
    assert found.network.name == "mine"
    assert found.notes == ("not recognised, left out: glue_size",)
    with pytest.raises(UnknownName, match="no family named 'lama'; did you mean llama"):
        read(data, family="lama")
    with pytest.raises(ProblemError, match="has no model_type; recognised"):
        read(changed("llama-3-8b", model_type=...))


OTHER_LAYERS = (
    "moe_num_experts", "n_routed_experts", "num_local_experts", "moe_intermediate_size",
    "share_expert_dim", "ssm_state_size", "mamba_num_heads", "mamba_d_state", "conv_kernel",
    "hybrid_override_pattern", "linear_num_value_heads", "kv_lora_rank", "index_topk", "lru_width",
)  # fmt: skip


@pytest.mark.parametrize("key", OTHER_LAYERS)
def test_a_named_family_refuses_layers_that_it_does_not_have(key):
    data = changed("llama-3-8b", model_type="lama9")
    with pytest.raises(ProblemError, match=f"{key} names layers that llama does not have"):
        read({**data, key: 64}, family="llama")
    for off in (None, 0, False, []):
        assert read({**data, key: off}, family="llama").network.layers == 32


def test_a_named_family_lends_no_sizes():
    with pytest.raises(ProblemError, match="lacks hidden_size"):
        read(changed("llama-3-8b", model_type="lama9", hidden_size=...), family="llama")
    with pytest.raises(ProblemError, match="lacks num_hidden_layers"):
        read(changed("mistral-7b-v0.1", num_hidden_layers=...), family="llama")


def test_files_of_2023_say_falcons_newer_form_by_its_heads():
    old = {
        "model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128,
        "n_head_kv": 8, "parallel_attn": True, "bias": False, "alibi": False, "vocab_size": 65024,
    }  # fmt: skip
    network = read(old).network
    assert parameter_count(network) == 41_303_293_952
    assert network.blocks == library.load("falcon-40b").blocks
    small = {**old, "model_type": "RefinedWebModel", "hidden_size": 4544, "n_layer": 32,
             "n_head": 71, "multi_query": True}  # fmt: skip
    del small["n_head_kv"]
    assert read(small).network.blocks == library.load("falcon-7b").blocks


@cases
def test_phi_3_and_gemma_have_the_parameters_that_transformers_counts(data, parameters):
    assert parameter_count(read(data).network) == parameters


WRAPPERS = {
    ("llava", "text_config"): "llama-7b",
    ("mistral3", "text_config"): "mistral-nemo-12b",
    ("qwen2_5_vl", "text_config"): "qwen2.5-7b",
    ("qwen3_vl", "text_config"): "qwen3-8b",
    ("qwen3_vl_moe", "text_config"): "qwen3-30b-a3b",
    ("internvl_chat", "llm_config"): "qwen3-8b",
    ("kimi_k25", "text_config"): "deepseek-v3",
    ("deepseek_vl_v2", "language_config"): "deepseek-v2-lite",
}
"""Models of several kinds of input, where their text part stands, and one that may stand there."""


@pytest.mark.parametrize(("kind", "key"), WRAPPERS)
def test_a_wrapper_is_read_by_its_text_parts_family(kind, key):
    name = WRAPPERS[kind, key]
    data = {"model_type": kind, key: FILES[name], "vision_config": {}}
    found = read(data)
    assert found.network.blocks == library.load(name).blocks
    assert parameter_count(found.network) == parameter_count(library.load(name))
    assert (found.network.tower is None) == (
        f"only {key} is read; left out: vision_config" in found.notes
    )
    own = {**data, key: {**FILES[name], "model_type": f"{kind}_text"}}
    if kind.startswith("qwen"):
        assert read(own).network.blocks == found.network.blocks
    else:
        with pytest.raises(ProblemError, match=f"model_type '{kind}_text' is not known"):
            read(own)


@pytest.mark.parametrize("tied", [True, False])
def test_a_wrapper_says_whether_its_head_is_tied(tied):
    data = {"model_type": "qwen2_5_vl", "tie_word_embeddings": tied, "text_config": {
        **FILES["qwen2.5-7b"], "tie_word_embeddings": not tied}}  # fmt: skip
    assert read(data).network.tied is tied


def test_a_flat_file_of_several_inputs_is_its_text_part():
    found = read(
        {**FILES["qwen2.5-7b"], "model_type": "qwen2_5_vl", "vision_config": {"depth": 32}}
    )
    assert found.network.blocks == library.load("qwen2.5-7b").blocks
    assert found.network.tower.layers == 32


def test_no_dense_layer_needs_no_dense_width():
    for name in ("qwen3-30b-a3b", "qwen1.5-moe-a2.7b"):
        found = read(changed(name, intermediate_size=...))
        assert found.network.blocks == library.load(name).blocks
        assert "intermediate_size" not in " ".join(found.notes).replace("moe_intermediate_size", "")


def test_the_name_is_the_path_the_file_or_the_family(tmp_path):
    for file, more, name in (
        ("Qwen3_8B.json", {}, "qwen3-8b"),
        ("config.json", {}, "qwen3"),
        ("config.json", {"_name_or_path": "Qwen/Qwen3-8B-Base"}, "qwen3-8b-base"),
    ):
        path = tmp_path / file
        path.write_text(json.dumps({**FILES["qwen3-8b"], **more}), encoding="utf-8")
        assert read(path).network.name == name


@pytest.mark.parametrize("kind", ["falcon_h1", "zamba2", "rwkv", "lfm2"])
def test_families_that_are_no_transformers_are_one_line(kind):
    with pytest.raises(ProblemError, match=f"model_type {kind} has .*; only transformers"):
        read({"model_type": kind, "hidden_size": 64})


WRONG = [
    (changed("llama-3-8b", hidden_size=None), "lacks hidden_size .or n_embd, d_model"),
    (changed("llama-3-8b", hidden_size="4k"), "hidden_size is '4k'; it is a whole number"),
    (changed("llama-3-8b", vocab_size=-1), "vocab_size is '-1'; it is a whole number, 0 or more"),
    (changed("llama-3-8b", num_hidden_layers=2**63), "a number of layers up to 10,000"),
    (changed("llama-3-8b", vocab_size=0), "vocabulary is 0"),
    (changed("llama-3-8b", num_hidden_layers=0), "no blocks"),
    (changed("llama-3-8b", num_attention_heads=0), "does not divide by 0 heads"),
    (changed("llama-3-8b", num_attention_heads=33), "width 4,096 does not divide by 33 heads"),
    (changed("llama-3-8b", num_key_value_heads=7), "32 heads are not one of 7"),
    (changed("llama-3-8b", hidden_act="swoosh"), "no activation named 'swoosh'"),
    (changed("llama-3-8b", attention_bias="no"), "attention_bias is 'no'; it is true or false"),
    (changed("mixtral-8x7b", num_experts_per_tok=9), "a token goes to 9 of 8 experts"),
    (changed("gpt2-xl", resid_pdrop=1.5), "resid_pdrop is '1.5'; it is a share below 1"),
    (changed("opt-1.3b", word_embed_proj_dim=512), "word_embed_proj_dim differs from the width"),
    (changed("gpt-oss-20b", layer_types=["full_attention"]), "layer_types has 1 entries for 24"),
    (
        changed("gpt-oss-20b", layer_types=["linear_attention"] * 24),
        "layers of kind linear_attention are none",
    ),
    (changed("gpt-oss-20b", layer_types=[1] * 24), "layer_types is .*; it is a list of texts"),
    (changed("mpt-7b-released", attn_config=3), "attn_config is '3'; it is a mapping"),
    (
        changed("mpt-7b-released", attn_config={"kv_n_heads": "x"}),
        "attn_config.kv_n_heads is 'x'; it is a whole number",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_a_wrong_value_is_one_line_with_the_file(data, said, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(PerfmodelError, match=said) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", r"config.json:1: not JSON: "),
        (b"[1]", "holds no mapping"),
        (b"\xff\xfe{", "not UTF-8"),
        (b" " * (2**20 + 1), "larger than 1024 KiB"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": NaN, "model_type": 1e999}', "no model_type"),
    ],
)
def test_what_is_no_config(content, said, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(PerfmodelError, match=said) as error:
        read(path)
    assert "\n" not in str(error.value)
    with pytest.raises(SpecError, match="cannot be read"):
        read(tmp_path / "none.json")


@given(
    st.sampled_from(sorted(FILES)),
    st.dictionaries(
        st.sampled_from(sorted(COMMON)),
        st.none() | st.booleans() | st.integers(-5, 300) | st.text(max_size=5) | st.just([1]),
        max_size=4,
    ),
)
def test_a_damaged_file_is_a_network_or_one_line(name, more):
    said = ""
    try:
        found = read({**FILES[name], **more})
    except PerfmodelError as error:
        said = str(error)
    else:
        assert parameter_count(found.network) > 0
    assert "\n" not in said
