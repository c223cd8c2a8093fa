"""Tensor descriptors made on the host: aligned or refused in Python, exact when replayed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import triton
import triton.language as tl

from perfmodel.algorithms import Rowwise
from perfmodel.errors import ProblemError
from perfmodel.proof import registry
from perfmodel.proof.kernel import Array, BundledKernel, Descriptor, Launch
from perfmodel.schedules.rowwise import elementwise


@dataclass(frozen=True)
class Config:
    rows: int = 32
    cols: int = 64


@triton.jit
def double(X, Y, n, TR: tl.constexpr, TC: tl.constexpr):
    i = tl.program_id(0)
    for first in range(0, n, TC):
        x = X.load([i * TR, first])
        Y.store([i * TR, first], x + x)


def _arrays(problem, config):
    shape = (problem.rows, problem.cols)
    return (Array("X", shape, problem.dtype), Array("Y", shape, problem.dtype, "output"))


def _plan(problem, config):
    shape, block = (problem.rows, problem.cols), (config.rows, config.cols)
    arguments = {name: Descriptor(name, shape, block) for name in "XY"} | {"n": problem.cols}
    grid = (-(-problem.rows // config.rows),)
    tile = {"TR": config.rows, "TC": config.cols}
    return (Launch("pointwise", double, grid, arguments, tile),)


KERNEL = BundledKernel(
    name="double",
    summary="Y = 2 X",
    dtypes=("fp32", "fp16"),
    configs=(Config(), Config(16, 32)),
    cases=((Rowwise("pointwise", 70, 136, "fp16"), Config()),),
    arrays=_arrays,
    plan=_plan,
    schedule=lambda problem, config: elementwise(problem, 1024),
    reference_of=lambda problem, tensors: {"Y": 2 * tensors["X"].double()},
)


def test_what_lies_outside_the_shape_is_read_as_zero_and_not_written():
    (problem, config), *_ = KERNEL.cases  # neither 70 nor 136 is a multiple of the tile
    inputs = KERNEL.make_inputs(problem)
    assert KERNEL.errors(inputs, KERNEL.run(inputs, config)) == {"Y": 0}


def test_a_descriptor_is_typed_by_its_element_and_its_tile():
    ((launch,),) = [KERNEL.launches(problem, config) for problem, config in KERNEL.cases]
    assert launch.signature["X"] == "tensordesc<fp16[32, 64]>"


shapes = st.lists(st.integers(1, 300), min_size=1, max_size=5).map(tuple)


@given(shapes, st.integers(0, 6).map(lambda n: 2**n), st.sampled_from([1, 2, 4, 8]))
def test_aligned_means_what_the_driver_means(shape, columns, item_bytes):
    found = Descriptor("X", shape, (*(1 for _ in shape[1:]), columns))
    strides = [math.prod(shape[axis + 1 :]) * item_bytes for axis in range(len(shape) - 1)]
    refused = any(stride % 16 for stride in strides) or columns * item_bytes < 16
    assert bool(found.misalignment(item_bytes)) == refused


@given(st.integers(1, 400), st.sampled_from(["fp32", "fp16"]))
def test_rows_that_are_not_aligned_are_refused_before_anything_is_launched(cols, dtype):
    problem = Rowwise("pointwise", 3, cols, dtype)
    aligned = cols * {"fp32": 4, "fp16": 2}[dtype] % 16 == 0
    if aligned:
        assert KERNEL.menu(problem, "sm_90", 132) == KERNEL.configs
        return
    for refused in (
        lambda: KERNEL.menu(problem, "sm_90", 132),
        lambda: KERNEL.launches(problem, Config()),
        lambda: KERNEL.run(KERNEL.make_inputs(problem), Config()),
    ):
        with pytest.raises(ProblemError, match="multiple of 16"):
            refused()


def test_a_type_that_the_kernel_does_not_take_is_refused():
    with pytest.raises(ProblemError, match="double takes fp32, fp16, not bf16"):
        KERNEL.launches(Rowwise("pointwise", 8, 8, "bf16"), Config())


def test_descriptors_made_on_a_device_have_an_allocator_before_the_launch(monkeypatch):
    @dataclass(frozen=True)
    class OnDevice:
        """A tensor on a device that this machine lacks."""

        device: str = "cuda:0"
        is_cuda: bool = True

    allocators = []
    monkeypatch.setattr(triton, "set_allocator", allocators.append)
    kernel = registry.kernels()["matmul"]
    problem, config = next(case for case in kernel.cases if case[1].descriptors == "block")
    (launch,) = kernel.launches(problem, config)
    kernel.bind(launch, dict.fromkeys("ABC", OnDevice()))
    assert len(allocators) == 1
