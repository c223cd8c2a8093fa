"""FLOPs of traced modules beside the expected values of other counters' tests, and torch's counter.

traceforms.py has the forms. `EXPECTED` are values of public tests. Of `COUNTED` torch's own counter
makes the value again on the same module; where it counts nothing, `UNCOUNTED` has the closed form.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel import load, predict, predict_graph
from perfmodel.tracing import trace
from perfmodel.tracing.module import TraceError

torch = pytest.importorskip("torch")
nn = pytest.importorskip("torch.nn")
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
forms = pytest.importorskip("traceforms")

H100 = load("h100-sxm")
F = nn.functional
C1, C2, C3, T1, T2, T3 = (getattr(forms, name) for name in ("C1", "C2", "C3", "T1", "T2", "T3"))


def on_meta(module, *shapes, dtype=torch.float32):
    """A module or function, and inputs of these shapes, on the meta device."""
    module = module if isinstance(module, nn.Module) else forms.Run(module)
    inputs = tuple(torch.zeros(shape, device="meta", dtype=dtype) for shape in shapes)
    return module.to("meta", dtype).eval(), inputs


def of_torch(module, inputs, *, backward=False):
    """What torch's counter sees."""
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        out = module(*inputs)
        if backward:
            (out[0] if isinstance(out, tuple) else out).sum().backward()
    return counter.get_total_flops()


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "i"), [(s, i) for s, rows in forms.EXPECTED.items() for i in range(len(rows))]
)
def test_flops_are_what_other_counters_tests_expect(source, i):
    function, *shapes, flops = forms.EXPECTED[source][i]
    traced = trace(*on_meta(function, *shapes))
    assert traced.flops == flops
    assert not traced.unknown


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("i", range(len(forms.COUNTED)))
def test_flops_are_those_of_torchs_counter(i):
    module, inputs = on_meta(*forms.COUNTED[i])
    traced = trace(module, inputs)
    assert traced.flops == of_torch(module, inputs)
    assert not traced.unknown
    assert predict_graph(traced.graph, H100).seconds > 0


@pytest.mark.parametrize("name", forms.UNCOUNTED)
def test_products_that_torch_does_not_count_are_counted(name):
    function, *shapes, flops = forms.UNCOUNTED[name]
    assert trace(*on_meta(function, *shapes)).flops == flops
    module = function if isinstance(function, nn.Module) else forms.Run(function)
    on_cpu = [torch.ones(shape) for shape in shapes]
    assert of_torch(module.to_empty(device="cpu"), on_cpu) == 0


def test_what_is_not_traced_is_named():
    flex = pytest.importorskip("torch.nn.attention.flex_attention").flex_attention
    with pytest.raises(TraceError, match="FlexAttention"):
        trace(*on_meta(flex, *forms.qkv(1, 2, 128, 64)))
    branches = (lambda y: y @ y, lambda y: y @ y @ y)
    branching = trace(*on_meta(lambda x: torch.cond(x.sum() > 0, *branches, (x,)), (4, 4)))
    assert branching.unknown == {"cond": 1}


# --- laws ------------------------------------------------------------------------------------


@examples(0.6)
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 3), st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_any_convolution_has_torchs_flops(
    rank, groups, channels, filters, taps, stride, dilation, transposed
):
    kind = ((C1, C2, C3), (T1, T2, T3))[transposed][rank - 1]
    layer = kind(groups * channels, groups * filters, taps, stride=stride, dilation=dilation,
                 padding=1, groups=groups)  # fmt: skip
    module, inputs = on_meta(layer, (2, groups * channels, *range(6, 6 + rank)))
    assert trace(module, inputs).flops == of_torch(module, inputs) > 0


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_both_gradients_of_a_convolution_have_its_flops(groups, transposed):
    kind = T2 if transposed else C2
    layers = [nn.Conv2d(8, 8, 1), kind(8, 8, 3, stride=2, groups=groups)]
    module, inputs = on_meta(nn.Sequential(*layers), (2, 8, 9, 9))
    found = trace(module, inputs, backward=True)
    flops = {x.name: x.flops for x in found.operations if x.flops and x.module == "1"}
    forward, *gradients = flops.values()
    assert gradients == [forward] * 2
    assert predict_graph(found.graph, H100).seconds > 0
    if groups == 1:  # of g groups torch counts the gradient of the weights g times
        assert found.flops == of_torch(module, inputs, backward=True)


@pytest.mark.parametrize("groups", [1, 64])
def test_a_convolution_reads_its_image_once_whatever_its_taps(groups):
    moved = {}
    for taps in (1, 3, 5):
        layer = nn.Conv2d(64, 64, taps, padding=taps // 2, groups=groups)
        found = trace(*on_meta(layer, (32, 64, 56, 56), dtype=torch.bfloat16))
        ((node, _),) = predict_graph(found.graph, H100).kernels
        moved[taps] = node.run.bytes["hbm"]
    image = 32 * 64 * 56 * 56 * 2
    assert all(2 * image <= x <= 2.3 * image for x in moved.values())


def test_a_depthwise_convolution_takes_about_as_long_as_its_bytes():
    layer = nn.Conv2d(64, 64, 3, padding=1, groups=64)
    found = trace(*on_meta(layer, (32, 64, 56, 56), dtype=torch.bfloat16))
    copy = trace(*on_meta(nn.ReLU(), (32, 64, 56, 56), dtype=torch.bfloat16))
    seconds = [predict_graph(each.graph, H100).children[0].seconds for each in (found, copy)]
    assert 0.8 * seconds[1] < seconds[0] < 3 * seconds[1]


def test_a_recurrence_has_a_product_for_each_step_and_one_for_all_inputs():
    module, inputs = on_meta(nn.GRU(32, 64), (7, 2, 32))
    products = [x for x in trace(module, inputs).operations if x.kind == "matmul"]
    assert [(x.repeat, x.problem.m, x.problem.n, x.problem.k) for x in products] == [
        (1, 14, 192, 32), (7, 2, 192, 64),
    ]  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_useful_operations_are_those_of_predict_and_flops_are_torchs(causal):
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    found = trace(*on_meta(attend, *forms.qkv(2, 8, 1024, 64), dtype=torch.bfloat16))
    (item,) = found.operations
    assert found.flops == 4 * 2 * 8 * 1024**2 * 64
    assert found.useful_flops == predict(item.problem, H100).useful_flops
    assert found.useful_flops == found.flops / (2 if causal else 1)
