"""The attention backward kernels: gradients of any shape, bytes as counted, menus that fit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walker import same

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from perfmodel_kernels.backward_menu import BackwardConfig
from perfmodel_kernels.common import visible

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.evidence import registry
from perfmodel.evidence.compiled import CompiledKernel, Request, compile_all
from perfmodel.evidence.compiledeffect import effect
from perfmodel.evidence.disassembly import loops
from perfmodel.evidence.instructions import unit_of
from perfmodel.evidence.kernel import Inputs, relative_error
from perfmodel.evidence.replay import replay
from perfmodel.evidence.suite import TOLERANCES
from perfmodel.evidence.targets import TARGETS, target
from perfmodel.hardware import load
from perfmodel.schedules.tiled import tiled_gradients

NAME = "attention-backward"
KERNEL = registry.kernel(NAME)
lengths = st.integers(1, 90)
tiles = st.sampled_from([16, 32, 64])


@st.composite
def problems(draw: st.DrawFn, most: int = 90) -> Attention:
    """Ragged lengths, grouped heads, two head dims, causal masks and windows."""
    batch, kv, ratio = draw(st.sampled_from([(1, 1, 1), (2, 1, 1), (1, 2, 2), (1, 1, 3)]))
    return Attention(
        batch,
        ratio * kv,
        kv,
        draw(st.integers(1, most)),
        draw(st.integers(1, most)),
        draw(st.sampled_from([16, 24, 40, 64, 128])),
        head_dim_v=draw(st.none() | st.sampled_from([16, 32, 72])),
        causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, most + 5)),
        dtype=draw(st.sampled_from(["fp32", "fp16"])),
        direction="bwd",
    )


configs = st.builds(
    BackwardConfig,
    tiles,
    tiles,
    query_br=st.sampled_from([0, 16, 64]),
    query_bc=tiles,
    spread=st.booleans(),
    descriptors=st.booleans(),
    turned=st.booleans(),
)


def by_autograd(inputs: Inputs) -> dict[str, torch.Tensor]:
    """dQ, dK and dV in float64, by differentiating softmax(Q·Kᵀ/√d)·V."""
    problem = inputs.problem
    q, k, v = (inputs.tensors[name].double().requires_grad_() for name in "QKV")
    group = problem.heads_q // problem.heads_kv
    scores = q @ k.repeat_interleave(group, 1).mT / math.sqrt(problem.head_dim)
    seen = visible(problem)
    if seen is not None:
        scores = scores.masked_fill(~seen, -1e300)
        weights = torch.where(seen, scores.softmax(-1), 0.0)
    else:
        weights = scores.softmax(-1)
    out = weights @ v.repeat_interleave(group, 1)
    out.backward(inputs.tensors["dO"].double())
    return {"dQ": q.grad, "dK": k.grad, "dV": v.grad}


# -- gradients -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(problems(), configs, st.integers(0, 99))
def test_gradients_are_those_of_autograd_and_bytes_those_counted(problem, config, seed):
    found = replay(NAME, problem, config, seed=seed, check=False)
    assert found.equal, [row for row in found.tensors if not row.equal]
    inputs = KERNEL.make_inputs(problem, seed)
    outputs = KERNEL.run(inputs, config)
    for name, expected in by_autograd(inputs).items():
        assert outputs[name].dtype == inputs.tensors["Q"].dtype
        scale = float(inputs.tensors["dO"].double().norm())
        difference = float((outputs[name].double() - expected).norm())
        # Gradients that cancel (one visible key) are measured by what cancels.
        assert difference <= TOLERANCES[problem.dtype] * max(float(expected.norm()), scale), name
