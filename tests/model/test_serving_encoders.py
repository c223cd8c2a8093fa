"""Encoder-decoders as they are served: laws of the encoder's pass, of the keys that are kept of its
output, and of steps that read them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cases import cases

from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_device
from perfmodel.networks.library import load as load_network
from perfmodel.serving.cachememory import fitting_batch, sequence_bytes, weight_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import load
from perfmodel.serving.kernels import kernels
from perfmodel.serving.queue.loop import simulate
from perfmodel.serving.queue.traffic import Traffic
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps

H100 = load_device("h100-sxm")


def deployment(network="t5-large", engine="ideal", **options):
    return Deployment(load_network(network), H100, load(engine), **options)


def served(network="t5-large", *, isl=512, osl=64, batch=16, **options):
    (one,) = serve(Steps(deployment(network, **options)), "static batch", [batch], isl, osl)
    return one


def test_keys_and_values_of_the_input_are_kept_once_for_each_layer_of_the_decoder():
    """T5-large: 24 layers x 2 x 16 heads x 64 x 2 bytes a token of the input, as of the answer;
    Whisper large-v3: 32 layers x 2 x 1,280 x 2 bytes x 1,500 = 245,760,000."""
    kept, prompt = deployment().reading(512)
    assert prompt == 1
    assert sequence_bytes(kept, 10) == 24 * 2 * 16 * 64 * 2 * (512 + 10)
    halves, _ = deployment(tensor=2).reading(512)
    assert sequence_bytes(halves, 10) == sequence_bytes(kept, 10) / 2
    window, prompt = deployment("whisper-large-v3").reading(4)
    assert (window.encoded, prompt) == (1500, 4)
    assert sequence_bytes(window, 0) == 245_760_000


def test_longer_inputs_are_never_faster_and_fewer_fit():
    loads = [served(isl=isl, batch=64) for isl in (128, 512, 2048, 8192)]
    for short, long in pairwise(loads):
        assert short.ttft_seconds < long.ttft_seconds
        assert short.tpot_seconds < long.tpot_seconds
        assert short.isl < long.isl
    engine = {"engine": "vllm"}
    fits = [fitting_batch(deployment(**engine).reading(isl)[0], 64) for isl in (32768, 131072)]
    assert fits[0] > 3 * fits[1]


def test_tokens_read_the_keys_of_the_input():
    """What 64 sequences of 8,192 more tokens take longer is the time to read their keys and values
    from HBM, and no more than three times that."""
    short, long = (served(isl=isl, batch=64).tpot_seconds for isl in (4096, 12288))
    seconds = 64 * 24 * 2 * 16 * 64 * 2 * 8192 / H100.hbm_bytes_per_s
    assert seconds < long - short < 3 * seconds


def test_the_input_is_read_once():
    """No step of the decoder multiplies the encoder's output, and no token passes the encoder."""
    names = [kernel.name for kernel in kernels(deployment(), 16)]
    assert "cross attention q projection" in names
    assert not {"cross attention k projection", "cross attention v projection"} & {*names}
    assert not any("encoder" in name for name in names)
    load = served().load
    made = {line.name for line in load.prompt.lines}
    assert {"encoder projector 1", "encoder attention", "cross attention"} <= made
    assert not any(line.name.startswith("encoder") for line in load.token.lines)
    twice = served(osl=128)
    assert twice.ttft_seconds == served().ttft_seconds


def test_the_pass_of_the_input_multiplies_what_its_weights_say():
    """2 x (24 x 12 x 1,024² + 24 x 2 x 1,024²) operations a token: no faster than the peak."""
    steps = Steps(deployment().reading(2048)[0])
    seconds = steps.encoding(np.array([64.0])).total[0]
    operations = 64 * 2048 * 2 * (24 * 12 + 24 * 2) * 1024**2
    assert operations / H100.matrix_flops("bf16") < seconds < 5 * operations / 989e12


def test_weights_are_those_of_the_whole_network():
    count = load_network("flan-t5-xl").sizes["parameters"]
    assert weight_bytes(deployment("flan-t5-xl")) == pytest.approx(2 * count, rel=1e-3)
    split = weight_bytes(deployment("flan-t5-xl", tensor=4))
    assert count / 2 < split < 0.27 * 2 * count


def test_a_window_of_sound_takes_the_same_pass_whatever_the_text():
    few, many = (served("whisper-large-v3", isl=isl, osl=100) for isl in (1, 4))
    encoders = [
        sum(row[0] for line, row in zip(one.load.prompt.lines, one.load.prompt.seconds, strict=True)
            if line.name.startswith("encoder"))
        for one in (few, many)
    ]  # fmt: skip
    assert encoders[0] == encoders[1] > 0.5 * few.ttft_seconds
    turbo = served("whisper-large-v3-turbo", isl=4, osl=100)
    assert turbo.tpot_seconds < many.tpot_seconds / 4 < turbo.ttft_seconds < many.ttft_seconds


def test_loads_of_several_inputs_are_those_of_each():
    steps = Steps(deployment(engine="vllm"))
    both = serve(steps, "concurrency", [8, 8], np.array([256, 1024]), 64)
    alone = [serve(steps, "concurrency", [8], isl, 64)[0] for isl in (256, 1024)]
    assert [one.ttft_seconds for one in both] == [one.ttft_seconds for one in alone]
    assert [one.isl for one in both] == [256, 1024]


def test_the_event_loop_reads_inputs_too():
    steps = Steps(deployment(engine="vllm"))
    (form,) = serve(steps, "concurrency", [8], 1024, 64, vary=0.2)
    asked = Traffic(requests=80, seed=5).arriving(1024, 64, clients=8, vary=0.2)
    mean = simulate(steps, asked).statistic("e2e", "mean")
    assert mean * 1e3 == pytest.approx(form.metric("e2e_ms").value, rel=0.06)


@cases
def test_what_cannot_be_served_is_said(network, options, sizes, words):
    with pytest.raises(ProblemError, match=words):
        served(network, **options, **sizes)
