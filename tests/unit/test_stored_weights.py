"""Which weights a format stores: bytes, products, and the format of a network's checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfmodel.algorithms import Matmul
from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import UnknownName
from perfmodel.hardware import load
from perfmodel.networks import huggingface, library
from perfmodel.networks.expand import expand, parameters
from perfmodel.offload.layershape import of_network
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.offload.streaming import streamed
from perfmodel.serving import engine
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.kernels import kernels
from perfmodel.serving.weights import FORMATS, stored_bits

NETWORKS = ("gpt-oss-20b", "llama-3-8b", "deepseek-v2-lite")


def deployment(network, weights="", device="h100-sxm"):
    return Deployment(library.load(network), load(device), engine.load("ideal"), weights)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("weights", sorted(FORMATS))
def test_a_product_is_narrow_where_its_weight_is_stored_so(network, weights):
    of = deployment(network, weights)
    stored = {
        weight.name.removesuffix(".weight"): stored_bits(weight, of.format, of.network)
        for segment in expand(of.network, of.setting(4))
        for weight in segment.weights
        if segment.block
    }
    products = [
        (kernel.name, kernel.asked.problem.dtype)
        for kernel in kernels(of, 4)
        if kernel.name in stored and isinstance(kernel.asked.problem, Matmul)
    ]
    assert len(products) >= 4
    for name, dtype in products:
        assert dtype == (of.product if stored[name] == of.format.bits else of.dtype), name


def test_attention_of_an_mxfp4_network_is_multiplied_in_16_bits():
    narrow = {item.name: item.asked.problem for item in kernels(deployment("gpt-oss-20b"), 4)}
    wide = {item.name: item.asked.problem for item in kernels(deployment("gpt-oss-20b", "bf16"), 4)}
    assert narrow["attention output"] == wide["attention output"]
    assert narrow["router"] == wide["router"]
    assert narrow["experts down"].dtype == "w4a16"


def test_a_network_says_the_format_of_its_checkpoint():
    assert library.load("gpt-oss-120b").weights == "mxfp4"
    assert library.load("llama-3-8b").weights == ""
    read = huggingface.read("tests/configs/gpt-oss-20b.json")
    assert read.network.weights == "mxfp4"
    assert not any("quantization" in note for note in read.notes)
    with pytest.raises(UnknownName, match="mxfp3"):
        replace(library.load("llama-3-8b"), weights="mxfp3")


@pytest.mark.parametrize("network", NETWORKS[:2])
@pytest.mark.parametrize("weights", ["fp16", "w4a16", "q4_k_m", "mxfp4"])
def test_streamed_weights_are_those_that_the_format_stores(network, weights):
    """Layers' bytes over the link's rate; activations and cache stay in 16 bits."""
    plain, device = library.load(network), load("rtx4090")
    stored = Compressed(plain, naming.scheme(weights))
    layers = [pair for pair in parameters(plain) if not pair[0].name.startswith(("head", "embed"))]
    moved = sum(stored.stored_bytes(weight) * repeat for weight, repeat in layers)
    moved -= stored.stored_bytes(next(w for w, _ in layers if w.name == "final norm.weight"))
    link, work = streamed(stored, device, 1, 128).children
    assert link.seconds == pytest.approx(moved / host_bytes_per_s(device), rel=1e-9)
    shape, wide = of_network(stored), of_network(plain)
    assert shape.cache_bytes == wide.cache_bytes
    assert shape.product_flops == wide.product_flops
    if weights == "fp16":
        assert shape == wide
    else:
        assert shape.weight_bytes < 0.65 * wide.weight_bytes
        assert work.seconds < streamed(plain, device, 1, 128).children[1].seconds
