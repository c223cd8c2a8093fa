"""Prompts with images: laws of the encoder's passes, memory and tokens; worked examples."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_device
from perfmodel.networks.expand import parameter_count
from perfmodel.networks.images import Patches, Projector, image_size
from perfmodel.networks.library import load as load_network
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.serving.cachememory import fitting_batch, memory, weight_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import load
from perfmodel.serving.queue.loop import simulate
from perfmodel.serving.queue.traffic import Traffic
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps

TOWER = Network(
    "clip", hidden=1024, vocabulary=0, norm="layernorm", norm_bias=True, positions=577, head="none",
    blocks=(Block(
        SelfAttention(16, 16, 64, causal=False, qkv_bias=True, output_bias=True, rotary=False),
        Mlp(4096, gated=False, activation="gelu", bias=True), repeat=24,
    ),),
    patches=Patches(14, side=336, extra=1), projectors=(Projector((4096, 4096)),),
    embedding_norm=True,
)  # fmt: skip
"""The encoder of LLaVA 1.5: CLIP-L at 336 pixels, and two products to the width of the text."""
TEXT = load_network("llama-3-8b")
WHOLE = replace(TEXT, name="llava", tower=TOWER)


def deployment(network=WHOLE, device="h100-sxm", engine="vllm", **options):
    return Deployment(network, load_device(device), load(engine), **options)


@lru_cache
def loads(kind="concurrency", size=8, isl=512, network=WHOLE, **options):
    (load_,) = serve(Steps(deployment(network, **options)), kind, [size], isl, 64)
    return load_


@pytest.mark.parametrize("kind", ["static batch", "concurrency", "rate", "full"])
def test_a_prompt_without_images_takes_the_times_of_the_text_network(kind):
    size = 1 if kind == "rate" else 8
    whole, text = loads(kind, size), loads(kind, size, network=TEXT)
    if kind == "full":  # the encoder's weights leave room for fewer
        assert whole.resident <= text.resident
    else:
        assert whole.ttft_seconds == pytest.approx(text.ttft_seconds, rel=1e-6)
        assert whole.tpot_seconds == pytest.approx(text.tpot_seconds, rel=1e-6)


@examples(0.32)
@given(
    images=st.integers(0, 6), more=st.integers(1, 4), tensor=st.sampled_from((1, 2)),
    engine=st.sampled_from(("vllm", "sglang", "tensorrt-llm", "ideal")), size=st.integers(1, 24),
)  # fmt: skip
def test_more_images_are_never_faster(images, more, tensor, engine, size):
    """Of a batch the first token; of clients the whole request, as one that waits for the server's
    process does not wait for a step."""
    for kind in ("static batch", "concurrency"):
        few, many = (
            loads(kind, size, engine=engine, tensor=tensor, images=count)
            for count in (images, images + more)
        )
        assert many.tpot_seconds >= few.tpot_seconds * (1 - 1e-9)
        assert many.metric("e2e_ms").value > few.metric("e2e_ms").value
        if kind == "static batch":
            assert many.ttft_seconds > few.ttft_seconds


@pytest.mark.parametrize("weights", ["bf16", "fp8", "int4-g128"])
@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_memory_has_the_encoder_in_sixteen_bits_whatever_the_text_has(weights, tensor):
    text, whole = (deployment(net, weights=weights, tensor=tensor) for net in (TEXT, WHOLE))
    more = weight_bytes(whole) - weight_bytes(text)
    share = 2 * parameter_count(TOWER) / tensor
    assert share <= more <= 1.02 * share  # norms and biases are on every device


def test_devices_that_do_not_divide_the_encoder_hold_all_of_it():
    odd = replace(TOWER.blocks[0], mlp=replace(TOWER.blocks[0].mlp, inner=4095))
    whole = replace(WHOLE, tower=replace(TOWER, blocks=(odd,)))
    text, both = (deployment(net, tensor=2) for net in (TEXT, whole))
    more = weight_bytes(both) - weight_bytes(text)
    assert more == 2 * parameter_count(whole.tower)


def test_images_leave_room_for_fewer_sequences():
    counts = [deployment(images=count) for count in (0, 2, 8)]
    sizes = [fitting_batch(each, 1024 + each.image_tokens) for each in counts]
    assert sizes == sorted(set(sizes), reverse=True)


def test_many_images_take_more_activations_than_a_step_of_the_text():
    few, many = (memory(deployment(images=count)).activations_bytes for count in (1, 64))
    assert many > few == memory(deployment()).activations_bytes


def test_the_first_token_comes_after_the_text_and_the_encoder():
    """TTFT of one prompt is a prefill of text and image tokens, and the encoder's passes."""
    steps = Steps(deployment(images=3))
    one = np.array([1.0])
    tokens = 512 + steps.of.image_tokens
    text = Steps(deployment()).prefill(one, np.array([tokens]))
    both = loads("static batch", 1, images=3).ttft_seconds
    assert both == pytest.approx(float((text.total + steps.encoding(one).total)[0]))


def test_cached_images_are_not_encoded_again():
    def first(cached):
        return serve(Steps(deployment(images=4)), "static batch", [1], 512, 64, cached=cached)[0]

    assert first(0.0).ttft_seconds > first(0.5).ttft_seconds > first(0.95).ttft_seconds
    names = {name for name, us in first(0.95).terms()["prompt"].items() if us > 0}
    assert "encoder attention" in names


def test_the_queue_encodes_images_of_each_request_once():
    """With one request at a time, its first token takes what the closed form says."""
    steps = Steps(deployment(images=2))
    arrivals = Traffic(requests=6, burst=0.0).arriving(512, 64, rate=0.01)
    outcome = simulate(steps, arrivals)
    wait = steps.of.engine.request_seconds
    (alone,) = serve(steps, "static batch", [1], 512, 64)
    assert np.allclose(outcome.first - outcome.sent - wait, alone.ttft_seconds, rtol=0.03)


def test_a_network_of_text_reads_no_images():
    with pytest.raises(ProblemError, match="llama-3-8b reads no images; drop --images"):
        deployment(TEXT, images=1)


def test_an_encoder_alone_is_not_served():
    with pytest.raises(ProblemError, match="makes no token after token"):
        serve(Steps(deployment(TOWER)), "static batch", [1], 512, 64)


@cases
def test_a_size_that_is_none_says_what_to_give(text):
    with pytest.raises(ProblemError, match="give width and height in pixels, as 1024x768"):
        image_size(text)


@cases
def test_images_take_the_passes_and_tokens_of_their_model(patches, merge, size, passes):
    assert list(Patches(**patches).passes(*size, merge)) == passes
