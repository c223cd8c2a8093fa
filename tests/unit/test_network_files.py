"""Networks in YAML: what is written is read again, what is wrong is one line, names are found."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from cases import listed
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import formats
from perfmodel.errors import SpecError, UnknownName
from perfmodel.networks import library, reading
from perfmodel.networks.network import ACTIVATIONS, Block, Latent, Mlp, Network, SelfAttention
from perfmodel.yamltable import parse

ENTRIES = library.entries()
FILES = sorted(library._files())
whole = st.integers(1, 10**6)
flag = st.booleans()
printable = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
line = st.text(printable, min_size=1, max_size=40).filter(str.strip)


@st.composite
def attention(draw):
    kv_heads, groups = draw(st.integers(1, 16)), draw(st.integers(1, 8))
    latent = st.builds(Latent, whole, whole, whole, whole, st.sampled_from([0, 1536]))
    window, chunk = draw(st.sampled_from([(0, 0), (128, 0), (0, 8192)]))
    return SelfAttention(
        kv_heads * groups, kv_heads, draw(whole), draw(flag), window, chunk,
        *(draw(flag) for _ in range(6)), relative_buckets=draw(st.integers(0, 64)),
        latent=draw(st.none() | latent),
    )  # fmt: skip


@st.composite
def mlp(draw):
    experts = draw(st.integers(0, 64))
    return Mlp(
        draw(whole), draw(flag), draw(st.sampled_from(ACTIVATIONS)), draw(flag), experts,
        draw(st.integers(1, experts)) if experts else 0, draw(st.integers(0, 100)), draw(flag),
        draw(flag), draw(st.floats(1, 100)),
    )  # fmt: skip


@st.composite
def block(draw):
    parallel = draw(flag)
    return Block(
        draw(attention()), draw(mlp()), draw(st.integers(1, 200)), draw(flag), parallel,
        own_norm=parallel and draw(flag), sandwich=draw(flag),
        cross=draw(st.none() | attention()),
    )  # fmt: skip


@st.composite
def stack(draw, least):
    """Blocks in order, some sequences of them several times over."""
    runs = st.tuples(st.lists(block(), min_size=1, max_size=2), st.integers(1, 3))
    return tuple(
        one for some, times in draw(st.lists(runs, min_size=least, max_size=2))
        for one in some * times
    )  # fmt: skip


@st.composite
def network(draw):
    return Network(
        draw(line), draw(whole), draw(whole), draw(stack(1)), draw(stack(0)),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm"])), norm_bias=draw(flag),
        positions=draw(st.integers(0, 9999)), token_types=draw(st.integers(0, 3)),
        **{name: draw(flag) for name in ("embedding_norm", "final_norm", "tied", "head_bias")},
        head=draw(st.sampled_from(["language", "pretraining", "pooler", "none"])),
        dropout=draw(st.floats(0, 0.99)), family=draw(st.just("") | line),
        weights=draw(st.sampled_from(["", "mxfp4", "fp8_block"])),
        **{name: draw(st.just("") | line) for name in ("about", "source")},
        sizes=draw(st.dictionaries(st.sampled_from(reading.TOTALS), whole)),
    )  # fmt: skip


@given(network())
def test_a_network_written_and_read_again_is_the_same(made):
    (found,) = reading.parse(reading.text(made))
    assert found.network == made
    assert found.network.sizes == made.sizes
    assert found.aliases == ()
    assert reading.text(found.network) == reading.text(made)


def test_layers_that_alternate_are_written_once():
    oss = library.load("gpt-oss-20b")
    assert len(oss.blocks) == 24
    (entry,) = reading.plain(oss)["blocks"]
    assert (entry["repeat"], len(entry["blocks"])) == (12, 2)
    gemma = reading.plain(library.load("gemma-3-27b"))["blocks"]
    assert [item["repeat"] for item in gemma] == [10, 2]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shipped_files_are_valid_by_the_schema_and_read_as_they_are_parsed(path, validator):
    text = path.read_text(encoding="utf-8")
    validator.validate(parse(text))
    assert reading.parse(text, str(path)) == reading.read(path)
    assert text.startswith("# yaml-language-server: $schema=../network.schema.json\n")


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    committed = formats.schema("network")
    jsonschema.Draft202012Validator.check_schema(committed)
    return jsonschema.Draft202012Validator(committed)


def test_the_schema_describes_every_field():
    properties = formats.schema("network")["else"]["properties"]
    assert all(len(entry["description"].split()) > 1 for entry in properties.values())


def test_a_written_network_is_valid_by_the_schema(validator):
    for entry in ENTRIES:
        validator.validate(parse(reading.text(entry.network)))


GOOD = listed(__file__, "GOOD")
BLOCK = GOOD["blocks"][0]


def changed(**more):
    """`GOOD` with other keys; None drops one."""
    return {key: value for key, value in {**GOOD, **more}.items() if value is not None}


def of_block(**more):
    return changed(blocks=[{**BLOCK, **more}])


def of(part, **more):
    return of_block(**{part: {**BLOCK[part], **more}})


WRONG = [
    (changed(hiden=512), "hiden: there is no such key; did you mean hidden"),
    (changed(hidden=None), "hidden: the key is missing; add it"),
    (changed(name=None), "name: the key is missing"),
    (changed(blocks=None), "blocks: the key is missing"),
    (changed(blocks=[]), "blocks: is a list of blocks; write - {attention"),
    (changed(blocks={"attention": 1}), "blocks: is a list of blocks"),
    (changed(vocabulary=-5), "vocabulary: '-5' is not a whole number"),
    (changed(vocabulary=0), "vocabulary is 0; give a whole number of 1 or more"),
    (changed(vocabulary="32k"), "vocabulary: '32k' is not a whole number"),
    (changed(vocabulary=True), "vocabulary: 'True' is not a whole number"),
    (changed(norm="batch"), "norm: 'batch' is not known; write one of layernorm, rmsnorm"),
    (changed(head="lm"), "head: 'lm' is not known; write one of language"),
    (changed(tied="yes please"), "tied: 'yes please' is neither true nor false"),
    (changed(dropout=1.5), "dropout is 1.5; it is a share below 1"),
    (changed(about="two\nlines"), "about: is one line of printable text"),
    (changed(sizes={"params": 3}), "sizes.params: there is no such total; did you mean parameters"),
    (changed(sizes={"active": 0.5}), "sizes.*'0.5' is not a whole number"),
    (changed(aliases=["other"]), "aliases: there is no such key"),
    (of("attention", heads=7), r"blocks.0.attention: .*7 heads are not one of 2; 1, 7 divide"),
    (of("attention", head_sise=7), "blocks.0.attention.head_sise: .* did you mean head_size"),
    (of("attention", window=1, chunk=1), "a window or chunks, not both"),
    (of("attention", latent={"nope": 1}), "blocks.0.attention.latent.kv_rank: the key is missing"),
    (of("mlp", activation="swish"), "no activation named 'swish'"),
    (of("mlp", experts=8), "a token goes to 0 of 8 experts; chosen is from 1 to 8"),
    (of("mlp", experts=8, chosen=9), "a token goes to 9 of 8 experts"),
    (of("mlp", chosen=2), "chosen goes with experts"),
    (of("mlp", imbalance=0.5), "imbalance is 1 where tokens spread evenly"),
    (of_block(repeat=0), "blocks.0: block: repeat is 0"),
    (of_block(own_norm=True), "own_norm goes with parallel"),
    (of_block(mlp=None), "blocks.0.mlp: 'None' is not a mapping"),
    (changed(blocks=[{"repeat": 0, "blocks": [BLOCK]}]), "blocks.0.repeat: 0 is no whole number"),
    (changed(blocks=[{"blocks": [BLOCK]}]), "blocks.0.repeat: None is no whole number"),
    (changed(blocks=[{"repeat": 2, "blocks": [BLOCK], "mlp": 1}]), "blocks.0.mlp: blocks that alt"),
    (
        changed(blocks=[{"repeat": 9999, "blocks": [BLOCK] * 2}]),
        "blocks.0.repeat: 9,999 times 2 blocks are too many",
    ),
    (
        changed(blocks=[{"repeat": 9000, "blocks": [BLOCK]}] * 2),
        "blocks: more than 10,000 blocks; join equal ones by repeat",
    ),
    ({"networks": {"mine": GOOD}}, "mine: name: there is no such key"),
    ({"networks": {}}, "networks is a mapping"),
    ({"networks": {"mine": 3}}, "mine: '3' is no mapping"),
    ({**GOOD, "networks": {}}, "name: a file of several networks has them all below networks"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_what_is_no_network_is_one_line_with_file_line_and_key(data, said, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")  # JSON is YAML
    with pytest.raises(SpecError) as error:
        library.load(path)
    assert re.search(said, str(error.value)), error.value
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(error.value))
    assert "\n" not in str(error.value)


def test_the_line_is_that_of_the_mistake(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(of("mlp", inner="wide"), sort_keys=False), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next(i for i, text in enumerate(lines, 1) if "wide" in text)
    with pytest.raises(SpecError, match=f"mine.yaml:{number}: blocks.0.mlp.inner: 'wide'"):
        library.load(path)


def test_plain_data_is_a_network_too():
    assert reading.made_of(GOOD).layers == 1
    with pytest.raises(SpecError, match="network 'mine': hidden"):
        reading.made_of(changed(hidden=None))


def test_names_that_are_not_there():
    with pytest.raises(UnknownName, match="did you mean llama-3-8b"):
        library.load("lama-3-8b")
    with pytest.raises(SpecError, match="cannot be read"):
        library.load("./none.yaml")
    with pytest.raises(SpecError, match=r"perfmodel network import x/config\.json -o my\.yaml"):
        library.load("x/config.json")
    with pytest.raises(SpecError, match="holds 2 networks"):
        library.load(next(path for path in FILES if path.stem == "gpt-oss"))
