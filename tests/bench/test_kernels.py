"""Bundled kernels: what each declares, and how kernels are found."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.proof import registry
from perfmodel.proof.kernel import Array, KernelError, relative_error, torch_type

NAMES = {
    "copy", "scale", "add", "triad", "silu_mul", "chain-fused", "chain-unfused", "softmax",
    "softmax-online", "layernorm", "layernorm-backward", "rmsnorm", "rmsnorm-backward",
    "add-rmsnorm", "quantise", "rotary", "cross-entropy", "matmul", "matmul-split-k",
    "matmul-persistent", "matmul-w8a16", "matmul-w4a16", "attention-standard",
    "attention-standard-backward", "attention-tiled", "attention-backward", "attention-flash1",
    "attention-decode", "matmul-grouped", "matmul-fp8-block", "attention-paged",
    "matmul-microscaled", "attention-latent", "ssd-scan", "gated-delta",
}  # fmt: skip
# What Triton's interpreter cannot run: see test_attention_kernels.py.
DEVICE_ONLY = {"attention-gluon", "attention-gluon-backward", "attention-gluon-blackwell"}


def kernel_names() -> list[str]:
    return sorted(NAMES)


def test_every_bundled_kernel_is_found():
    assert set(registry.kernels()) >= NAMES | DEVICE_ONLY
    assert registry.failures() == ()
    assert {k.name for k in registry.kernels().values() if not k.interpreted} == DEVICE_ONLY


@pytest.mark.parametrize("name", kernel_names())
def test_has_a_menu_and_five_cases_with_two_types(name):
    kernel = registry.kernel(name)
    assert len(kernel.cases) >= 5
    assert len(kernel.configs) > 1
    assert len({repr(config) for config in kernel.configs}) == len(kernel.configs)
    usual = {"fp32", "fp16"} & set(kernel.dtypes)
    assert {problem.dtype for problem, _ in kernel.cases} >= usual


def test_inputs_are_fresh_for_each_seed_and_the_same_for_one():
    kernel = registry.kernel("softmax")
    problem, _ = kernel.cases[0]
    first, again, other = (kernel.make_inputs(problem, seed).tensors["X"] for seed in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)


def test_outputs_start_poisoned():
    kernel = registry.kernel("softmax")
    problem, config = kernel.cases[1]
    assert kernel.allocate(problem, config)["Y"].isnan().all()


def test_an_unwritten_element_is_an_error_and_so_is_a_misplaced_infinity():
    import torch

    good = torch.tensor([1.0, -math.inf, 2.0])
    assert relative_error(good, good) == 0
    assert math.isnan(relative_error(torch.tensor([1.0, -math.inf, math.nan]), good))
    assert relative_error(torch.tensor([1.0, 0.0, 2.0]), good) == math.inf


@pytest.mark.parametrize("name", kernel_names())
def test_a_launch_says_the_type_of_every_parameter(name):
    kernel = registry.kernel(name)
    for launch in kernel.launches(*kernel.cases[0]):
        assert list(launch.signature) == list(launch.function.arg_names)
        assert launch.blocks > 0
        for parameter, kind in launch.signature.items():
            assert (kind == "constexpr") == (parameter in launch.constexprs)


@pytest.mark.parametrize("name", kernel_names())
def test_launches_carry_out_the_schedule_in_order(name):
    kernel = registry.kernel(name)
    for problem, config in kernel.cases:
        scheduled = [part.name for part in kernel.schedule(problem, config).kernels]
        launched = [launch.kernel for launch in kernel.launches(problem, config)]
        # A combining kernel is not launched where there is one slice.
        assert launched in (scheduled, scheduled[:1])


def test_weight_only_bytes_are_those_of_the_storage_format():
    from perfmodel.count import count
    from perfmodel.elements import element

    kernel = registry.kernel("matmul-w4a16")
    problem, config = kernel.cases[0]
    cost = count(kernel.schedule(problem, config), problem.sizes(), problem.elements())
    part = cost.kernels[0].l2
    blocks_down = -(-problem.m // config.bm)
    packed = problem.k * problem.n * element("int4_g128").bytes * blocks_down
    assert part["W"].read_bytes + part["scale"].read_bytes == packed


def test_an_unknown_kernel_names_the_nearest():
    with pytest.raises(UnknownName, match="attention-tiled"):
        registry.kernel("attention-tile")


class _Point:
    """An entry point of a user's package."""

    def __init__(self, name, value, loaded):
        self.name, self.value, self._loaded = name, value, loaded

    def load(self):
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


@pytest.fixture
def users_points(monkeypatch):
    def install(*points):
        monkeypatch.setattr(metadata, "entry_points", lambda group: list(points))
        registry.refresh()

    yield install
    monkeypatch.undo()
    registry.refresh()


def test_a_users_kernel_plugs_in(users_points):
    mine = replace(registry.kernel("copy"), name="my-copy")
    users_points(_Point("mine", "my_package:KERNEL", mine))
    assert registry.kernel("my-copy") is mine
    assert set(registry.kernels()) >= NAMES


@pytest.mark.parametrize(
    "loaded", [ImportError("No module named 'gone'"), SyntaxError("bad\nlines"), "not a kernel"]
)
def test_a_broken_entry_point_is_named_and_skipped(users_points, loaded):
    users_points(_Point("broken", "my_package:KERNEL", loaded))
    assert set(registry.kernels()) >= NAMES
    (line,) = registry.failures()
    assert "broken" in line
    assert "my_package" in line
    assert "\n" not in line


def test_a_name_that_is_taken_is_reported(users_points):
    users_points(_Point("second", "my_package:KERNEL", registry.kernel("copy")))
    assert registry.kernel("copy")
    assert "copy" in registry.failures()[0]


def test_bad_values_are_one_line():
    from perfmodel_kernels.attention_decode import DecodeConfig
    from perfmodel_kernels.weight_only import WeightOnly

    for wrong in (
        lambda: WeightOnly(1, 1, 100, bits=4),
        lambda: WeightOnly(1, 1, 100, bits=3),
        lambda: DecodeConfig(100, 16, 64),
    ):
        with pytest.raises(ProblemError) as caught:
            wrong()
        assert "\n" not in str(caught.value)
    with pytest.raises(KernelError, match="fp32"):
        torch_type("fp4")
    assert issubclass(KernelError, PerfmodelError)


def test_an_array_knows_its_bytes():
    assert Array("X", (3, 5), "fp16").size_bytes == 30
    assert Array("parts", (2,), "fp32", "scratch", "C").counted_as == "C"


def test_the_registry_loads_no_torch_until_asked():
    code = (
        "import sys, perfmodel.proof.registry, perfmodel.proof.kernel; "
        "assert not {'torch', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
