"""The backward pass of any algorithm by one rule: operations as torch counts them, and reads.

Every shipped algorithm runs in torch at tiny sizes, a contraction as einsum, and autograd makes its
backward pass; torch's own counter counts both.
"""

from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel import predict
from perfmodel.algorithms import Matmul, library
from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor, tensors
from perfmodel.algorithms.declaration import declare
from perfmodel.algorithms.gradient import gradient
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import load
from perfmodel.operators import load as operator
from perfmodel.schedules.standard import standard_backward

torch = pytest.importorskip("torch")
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
H100 = load("h100")
# Parameters that tiny sizes do not fit, or that hide a part of the pairs.
SIZES = {"causal": False, "share": 1.0, "window": 0, "ratio": 1, "seq": 8, "chunk_size": 4}
LEAVES = {"k": 2, "kv_heads": 2, "heads": 4, "groups": 2, "key_heads": 2, "top_k": 2, "experts": 4}
UNLIKE = ("conv", "causal-conv1d")  # windows: einsum has none; torch's own modules stand in
PRODUCTS = [
    name
    for name in library.names()
    if name not in UNLIKE
    and any(step.kind == "contraction" for step in library.load(name).algorithm.steps)
]


def tiny(name):
    declared = library.load(name).parameters
    plain = {key: 4 for key, value in declared.items() if type(value) is int and value > 2}
    sizes = {**plain, **{k: v for k, v in {**SIZES, **LEAVES}.items() if k in declared}}
    sizes |= {key: 8 for key in declared if key in ("seq_q", "tokens") and key in plain}
    sizes |= {"k": 8} if name == "sparse24-matmul" else {}
    return replace(library.load(name), mask=None).at(**sizes)


def run(algorithm, sizes):
    """The algorithm in torch, for its operations alone: any maps and sums with these axes."""
    letters = {axis: chr(97 + i) for i, axis in enumerate(algorithm.axes)}

    def shape(name):
        return [sizes[axis] for axis in algorithm.tensors[name].axes]

    values = {
        name: torch.rand(shape(name), requires_grad=not algorithm.tensors[name].constant)
        for name in algorithm.inputs
    }
    for step in algorithm.steps:
        axes = algorithm.step_axes(step)
        for name in step.outputs:
            wanted = algorithm.tensors[name].axes
            texts = ["".join(letters[a] for a in algorithm.tensors[x].axes) for x in step.inputs]
            if step.kind == "contraction":
                out = "".join(letters[axis] for axis in wanted)
                operands = [values[x] for x in step.inputs]
                values[name] = torch.einsum(f"{','.join(texts)}->{out}", *operands)
                continue
            total = torch.zeros([sizes[axis] for axis in axes])
            for x in step.inputs:
                own = algorithm.tensors[x].axes
                order = [own.index(axis) for axis in axes if axis in own]
                index = tuple(slice(None) if axis in own else None for axis in axes)
                total = total + values[x].permute(order)[index]
            total = (
                total.sum([i for i, axis in enumerate(axes) if axis not in wanted] or None)
                if (len(wanted) < len(axes))
                else total.sin()
            )
            kept = [axis for axis in axes if axis in wanted]
            values[name] = total.permute([kept.index(axis) for axis in wanted])
    results = (values[name] for name in algorithm.outputs if values[name].requires_grad)
    return sum((value.sum() for value in results), torch.zeros(()))


def torch_flops(algorithm, sizes):
    with FlopCounterMode(display=False) as counter:
        run(algorithm, sizes).backward()
    return counter.get_total_flops()


def flops(algorithm, sizes):
    products = [step for step in algorithm.steps if step.kind == "contraction"]
    return sum(2 * np.prod([sizes[a] for a in algorithm.step_axes(step)]) for step in products)


@pytest.mark.parametrize("name", PRODUCTS)
def test_operations_of_both_passes_are_those_that_torch_counts(name):
    case = tiny(name)
    both = (case.algorithm, gradient(case.algorithm))
    assert sum(flops(each, case.sizes) for each in both) == torch_flops(case.algorithm, case.sizes)


def test_enough_algorithms_are_asked_of_torch():
    assert len(PRODUCTS) >= 24


@st.composite
def chains(draw):
    """A chain of products with maps, norms and sums between them; the first input is read again."""
    widths = draw(st.lists(st.integers(2, 5), min_size=2, max_size=5))
    axes = ("t", *(f"a{i}" for i in range(len(widths))))
    parts, steps, last = [Tensor("X", ("t", "a0"))], [], "X"
    for i in range(1, len(widths)):
        parts += [
            Tensor(f"W{i}", (f"a{i - 1}", f"a{i}"), "weights"),
            Tensor(f"Z{i}", ("t", f"a{i}")),
        ]
        steps.append(Step(f"p{i}", "contraction", (last, f"W{i}"), (f"Z{i}",), (f"a{i - 1}",)))
        last = f"Z{i}"
        kind = draw(st.sampled_from(["none", "map", "normalisation", "bias"]))
        if kind == "none":
            continue
        extra = (f"b{i}",) if kind == "bias" else ()
        parts += [Tensor(f"Y{i}", ("t", f"a{i}")), *(Tensor(x, (f"a{i}",)) for x in extra)]
        along = f"a{i}" if kind == "normalisation" else None
        step_kind = "normalisation" if along else "map"
        steps.append(Step(f"m{i}", step_kind, (last, *extra), (f"Y{i}",), along=along, vector=1))
        last = f"Y{i}"
    sizes = dict(zip(axes, (draw(st.integers(2, 5)), *widths), strict=True))
    return Algorithm("chain", axes, tensors(*parts), tuple(steps), (last,)), sizes


@examples(1.6)
@given(chains())
def test_operations_of_any_chain_are_those_that_torch_counts(drawn):
    algorithm, sizes = drawn
    counted = flops(algorithm, sizes) + flops(gradient(algorithm), sizes)
    assert counted == torch_flops(algorithm, sizes)
    back = gradient(algorithm)
    assert {f"d{name}" for name in algorithm.inputs} == {*back.outputs}
    for name in back.outputs:
        assert back.tensors[name].axes == algorithm.tensors[name[1:]].axes


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_counts_as_torch_counts_it(stride):
    module = torch.nn.Conv2d(4, 6, 3, stride=stride, bias=False)
    image = torch.rand(2, 4, 9, 9, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        out = module(image)
        out.sum().backward()
    _, _, height, width = out.shape
    declaration = declare(
        name="conv", axes={"n": 2, "p": height, "q": width, "k": 6, "r": 3,
                           "s": 3, "c": 4},
        tensors={
            "X": {"axes": ["n", "c", "p", "q", "r", "s"],
                  "windows": [["p", "r", stride], ["q", "s", stride]]},
            "W": ["k", "c", "r", "s"], "Y": ["n", "k", "p", "q"],
        },
        steps={"multiply": {"contraction": ["X", "W"], "to": "Y", "over": ["c", "r", "s"]}},
        outputs="Y",
    )  # fmt: skip
    case, back = declaration.at(), declaration.backward.at()
    both = flops(case.algorithm, case.sizes) + flops(back.algorithm, back.sizes)
    assert both == counter.get_total_flops()


# -- what a derivative reads -----------------------------------------------------------------------


def test_standard_attention_runs_four_contractions_backward():
    """FlashAttention (2205.14135), Algorithm 3: dV, dP, dS, dQ, dK from saved probabilities."""
    steps = standard_backward(mask_pass="masked_fill", dropout=True).algorithm.steps
    assert [step.outputs[0] for step in steps] == ["dV", "dPd", "dP", "dSm", "dS", "dQ", "dK"]
    assert [step.kind for step in steps].count("contraction") == 4


def test_a_sum_passes_its_gradient_on_and_meeting_gradients_are_added():
    back = library.load("add-rmsnorm").backward.algorithm
    assert back.outputs == ("dS", "dgamma")  # of both terms of the sum
    (total,) = (step for step in back.steps if step.outputs == ("dS",))
    assert set(total.inputs) == {"dS given", "dS of norm"}


def test_tensors_that_are_made_again_are_not_read():
    declaration = library.load("cross-entropy")
    assert "Z" not in declaration.backward.algorithm.inputs
    assert "Z" in declaration.recomputing(()).algorithm.inputs


def test_gradients_of_linear_layers_are_transposed_products():
    """dX = dY·Wᵀ, m × k; dWᵀ = dYᵀ·X, n × k where weights are stored by rows of n."""
    product = Matmul(48, 80, 112, dtype="fp16")
    kernels = {each.makes[0]: each.problem for each in product.backward()}
    sizes = {name: (p.m, p.n, p.k) for name, p in kernels.items()}
    assert sizes == {"A": (48, 112, 80), "B": (112, 80, 48)}
    assert [dict(each.operands) for each in product.backward()] == [
        {"A": "dC", "B": "B", "C": "dA"}, {"A": "A", "B": "dC", "C": "dB"}
    ]  # fmt: skip
    stored = product.backward(stored="nk")[1].problem
    assert (stored.m, stored.n, stored.k, stored.gradient) == (80, 112, 48, True)


@pytest.mark.parametrize("name", ["matmul", "mlp", "add-rmsnorm"])
def test_both_passes_take_as_long_as_each(name):
    forward, backward, both = (
        predict(operator(name).problem(direction=way), H100, harness="kernel")
        for way in ("fwd", "bwd", "fwdbwd")
    )
    apart = forward.seconds + backward.seconds
    assert both.seconds == pytest.approx(apart, rel=0.05)
    assert backward.seconds > forward.seconds > 0


# -- an operator of one's own ----------------------------------------------------------------------

OPERATOR = """
name: squared-relu
about: Product and squared ReLU
parameters: {tokens: 4096, hidden: 2048, out: 8192, top_k: 2, experts: 8}
limits: [top_k <= experts, out % 64 == 0]
axes: {t: tokens, d: hidden, o: out}
types: {weights: data}
tensors:
  X: [t, d]
  W: {axes: [d, o], element: weights}
  Z: [t, o]
  Y: {axes: [t, o], element: output}
steps:
  up: {contraction: [X, W], to: Z, over: d}
  square: {map: Z, to: Y, vector: 2, derivative: {reads: Z, vector: 2}}
outputs: Y
"""
LIBRARY = """
kernels:
  acme-squared:
    operator: squared-relu
    fusion: fused
    source: "Acme's manual, section 2"
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    for kind, text in (("algorithms", OPERATOR), ("libraries", LIBRARY)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "squared-relu.yaml").write_text(text)
    monkeypatch.setenv("PERFMODEL_PATH", str(tmp_path))
    from perfmodel.timing.libraries import files, naming

    caches = [files.brought, files.kernels, naming.names]
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("mine")
def test_two_entries_bring_an_operator_with_both_directions_and_its_kernel(cli, output):
    times = {}
    for way in ("fwd", "bwd", "fwdbwd"):
        answer = predict(operator("squared-relu").problem(direction=way), H100)
        assert answer.implementation == "acme-squared"
        times[way] = float(answer.seconds)
    assert times["fwd"] < times["bwd"] < times["fwdbwd"]
    out = output("predict", "squared-relu", "-d", "h100", "--direction", "fwd,bwd")
    assert "acme-squared" in out
    code, _, err = cli("predict", "squared-relu", "-d", "h100", "--top-k", "9")
    assert code == 2
    assert err == (
        "perfmodel: squared-relu needs top_k <= experts, but experts = 8 and top_k = 9; change one "
        "of them\n"
    )


def test_limits_hold_for_arrays_too():
    many = {"top_k": np.array([1, 4, 9, 2]), "experts": 8}
    with pytest.raises(ProblemError, match=r"moe needs top_k <= experts.*top_k = 9"):
        operator("moe").problem(**many)


@cases
def test_limits_without_meaning_are_refused(limits, message):
    with pytest.raises(PerfmodelError, match=message):
        declare(
            name="x", parameters={"top_k": 2, "experts": 8}, limits=limits, axes={"n": 4},
            tensors={"X": ["n"], "Y": ["n"]}, steps={"m": {"map": "X", "to": "Y"}}, outputs="Y",
        )  # fmt: skip


def test_what_has_no_gradient_says_so():
    with pytest.raises(ProblemError, match="adamw has no gradient; leave the direction at fwd"):
        operator("adamw").problem(direction="bwd")
