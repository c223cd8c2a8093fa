"""Bytes of weights, gradients and states: recipes of mixed precision, and shards of them."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from folders import SHARED
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.training import optimisers, precision
from perfmodel.training.parameter import Parameter
from perfmodel.training.stepmemory import STAGES, model_states
from perfmodel.yamltable import parse

ADAM = optimisers.load("adam")
MATRIX = Parameter("w", (1000, 1000))
NAMES = precision.names()


def states_of(recipe):
    """Bytes a parameter of Adam's states."""
    return ADAM.state_bytes([MATRIX], recipe) / MATRIX.elements


def held(recipe, parameters, **how):
    return model_states(recipe, parameters, parameters * states_of(recipe), **how)


def total(*args, **how):
    return sum(held(*args, **how).values())


def deepspeed(recipe, parameters, layer, offload, *, shards=1, buffer=1.5):
    """DeepSpeed's estimate of stage 3 (estimate_zero3_model_states_mem_needs, zero_init) for
    one host: bytes of a device and of the host, the largest layer gathered in fp32."""
    states = held(recipe, parameters, stage=3, shards=shards)
    if offload == "none":
        return sum(states.values()) + 4 * layer, 4 * layer * shards * buffer
    weights = states["weights"] if offload == "optimiser" else 0
    return weights + 4 * layer, (sum(states.values()) - weights) * shards * buffer


counts = st.integers(1, 2**40)
shards = st.integers(1, 2**14)
recipes = st.sampled_from([precision.load(name) for name in NAMES])


@given(recipes, counts)
def test_one_shard_is_the_whole(recipe, parameters):
    for stage in STAGES:
        assert held(recipe, parameters, stage=stage) == held(recipe, parameters)


@given(recipes, counts, shards)
def test_a_later_stage_and_more_shards_hold_no_more(recipe, parameters, ranks):
    totals = [total(recipe, parameters, stage=stage, shards=ranks) for stage in STAGES]
    assert totals == sorted(totals, reverse=True)
    assert totals[3] * ranks == pytest.approx(totals[0])
    for stage, size in zip(STAGES, totals, strict=True):
        assert total(recipe, parameters, stage=stage, shards=2 * ranks) <= size
        if ranks > 1 and stage:
            assert size < totals[stage - 1] or recipe.master is None


@given(recipes, st.lists(st.tuples(counts, shards), min_size=1, max_size=5))
def test_arrays_are_as_many_integers(recipe, cases):
    parameters, ranks = (np.array(column) for column in zip(*cases, strict=True))
    for stage in STAGES:
        found = held(recipe, parameters, stage=stage, shards=ranks)
        alone = [held(recipe, n, stage=stage, shards=d) for n, d in cases]
        for name, sizes in found.items():
            want = [one[name] for one in alone]
            np.testing.assert_allclose(np.broadcast_to(sizes, parameters.shape), want, rtol=1e-12)


def test_symbols_are_the_papers_table():
    """Rajbhandari et al. 2019, Figure 1, with K bytes of master weights and states."""
    sympy = pytest.importorskip("sympy")
    psi, ranks, kept = sympy.symbols("Psi N_d K", positive=True)
    recipe = precision.load("mixed")
    states = (kept - 4) * psi  # K is those and the 4 bytes of the master weights
    table = [
        (4 + kept) * psi,
        4 * psi + kept * psi / ranks,
        2 * psi + (2 + kept) * psi / ranks,
        (4 + kept) * psi / ranks,
    ]
    for stage, expected in zip(STAGES, table, strict=True):
        found = sum(model_states(recipe, psi, states, stage=stage, shards=ranks).values())
        assert sympy.simplify(sympy.nsimplify(found) - expected) == 0


@cases
def test_bytes_a_parameter_with_adam(name, parts):
    assert list(held(precision.load(name), 1).values()) == parts


def test_copies_beside_the_weights():
    copies = {name: precision.load(name).copy_bytes("step", "forward", "layer") for name in NAMES}
    assert {name: size for name, size in copies.items() if size} == {
        "fsdp": 2, "autocast": 2, "fp8": 2
    }  # fmt: skip
    assert precision.load("fsdp").copy_bytes("step") == 0


def test_a_distributed_optimiser_holds_6_and_a_share_of_12():
    for ranks in (1, 8, 64):
        assert total(precision.load("megatron"), 1, stage=1, shards=ranks) == 6 + 12 / ranks


# Published figures.

VECTORS = SHARED / "reference" / "networks_vectors.yaml"
MINE = ("mem.zero.", "mem.deepspeed.", "mem.korth.")


@pytest.fixture(scope="module")
def figures():
    if not VECTORS.is_file():
        pytest.skip(f"no published figures at {VECTORS}")
    found = parse(VECTORS.read_text(encoding="utf-8"))
    return {item["id"]: item for item in found if item["id"].startswith(MINE)}


def counted(key, inputs):
    """Our figure of a published one, in its unit."""
    if key.startswith("mem.zero."):
        parameters, ranks = int(inputs["params"]), inputs["dp"]
        recipe = precision.load("mixed")
        assert recipe.master_bytes + states_of(recipe) == inputs["K"]
        return [total(recipe, parameters, stage=s, shards=ranks) / 1e9 for s in (1, 2, 3)]
    recipe = precision.load("megatron")
    if key.startswith("mem.korth."):
        parameters = 12 * inputs["L"] * inputs["h"] ** 2 / (inputs["t"] * inputs["p"])
        return total(recipe, parameters) / 2**30
    parameters = int(inputs["params"])
    return [
        deepspeed(recipe, parameters, 0, which, buffer=inputs["buffer"])[1] / 2**30
        for which in ("all", "optimiser")
    ]  # fmt: skip


def test_published_figures_of_model_states(figures):
    assert len(figures) == 8
    for key, item in figures.items():
        expected, tolerance = item["expected"], item["tolerance"]
        # Figures are printed to so many digits: 0.12 of 0.117.
        printed = [0.005 if want < 1 else 0 for want in np.atleast_1d(expected)]
        for found, want, digits in zip(
            np.atleast_1d(counted(key, item["inputs"])), np.atleast_1d(expected), printed,
            strict=True,
        ):  # fmt: skip
            within = max(tolerance.get("abs", 0), digits)
            assert found == pytest.approx(want, rel=tolerance.get("rel", 0), abs=within), key


@cases
def test_deepspeeds_estimate_of_one_node(gpus, offload, host, device):
    """Transformers' documentation of DeepSpeed, zero_init=1, GiB: T0-3B with 2,783 M parameters,
    65 M in the largest layer."""
    recipe, psi, layer = precision.load("megatron"), 2783.4e6, 65.5e6
    on_device, on_host = deepspeed(recipe, psi, layer, offload, shards=gpus)
    assert on_host / 2**30 == pytest.approx(host, abs=0.02)
    assert on_device / 2**30 == pytest.approx(device, abs=0.01)


def test_what_means_nothing_is_refused():
    recipe = precision.load("mixed")
    with pytest.raises(UnknownName, match="no stage of ZeRO named '4'"):
        held(recipe, 1, stage=4)
    for ranks in (0, np.array([4, 0])):
        with pytest.raises(ProblemError, match="at least 1"):
            held(recipe, 1, stage=1, shards=ranks)
    with pytest.raises(UnknownName, match="did you mean mixed"):
        precision.load("mixd")
    with pytest.raises(UnknownName, match="element type"):
        precision.Precision("mine", "", "fp17", "fp32", "fp32")
