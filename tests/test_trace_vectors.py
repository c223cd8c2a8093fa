"""FLOPs of traced modules beside torch's own counter, on the forms of other counters' tests.

Each group is named for the public tests whose forms it takes. torch's counter makes the value again
on the same module; where it counts nothing, the closed form stands here with the reason.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel import load, predict, predict_graph
from perfmodel.tracing import trace

torch = pytest.importorskip("torch")
nn = pytest.importorskip("torch.nn")
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

H100 = load("h100-sxm")
F = nn.functional


class Run(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def on_meta(module, *shapes, dtype=torch.float32):
    """A module or function, and inputs of these shapes, on the meta device."""
    module = module if isinstance(module, nn.Module) else Run(module)
    inputs = tuple(torch.zeros(shape, device="meta", dtype=dtype) for shape in shapes)
    return module.to("meta", dtype).eval(), inputs


def of_torch(module, inputs, *, backward=False):
    """What torch's counter sees."""
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        out = module(*inputs)
        if backward:
            (out[0] if isinstance(out, tuple) else out).sum().backward()
    return counter.get_total_flops()


def einsum(equation):
    return lambda *operands: torch.einsum(equation, *operands)


def qkv(batch, heads, seq, dim):
    return [(batch, heads, seq, dim)] * 3


C1, C2, C3 = nn.Conv1d, nn.Conv2d, nn.Conv3d
T1, T2, T3 = nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d

# source: (module, shapes), the forms that torch counts
COUNTED = {
    # pytorch test/test_flop_counter.py
    "pytorch": [
        (torch.mm, (4, 5), (5, 6)),
        (torch.bmm, (3, 4, 5), (3, 5, 6)),
        (torch.matmul, (2, 3, 4, 5), (5, 6)),
        (torch.matmul, (2, 1, 4, 5), (3, 5, 6)),
        (torch.addmm, (4, 6), (4, 5), (5, 6)),
        (torch.baddbmm, (3, 4, 6), (3, 4, 5), (3, 5, 6)),
        (einsum("bhqd,bhkd->bhqk"), (2, 3, 4, 8), (2, 3, 5, 8)),
        (nn.Linear(5, 6), (3, 4, 5)),
        (C1(3, 6, 3), (2, 3, 9)),
        (C2(6, 6, 4, padding=1), (1, 6, 8, 8)),
        (C3(4, 8, 3, stride=2, dilation=2, groups=2), (2, 4, 12, 13, 14)),
        (T1(4, 6, 5, stride=3, dilation=2), (2, 4, 17)),
        (T2(6, 3, 3, stride=2, output_padding=1, groups=3), (2, 6, 5, 7)),
        (T3(4, 8, 3, stride=2, groups=4), (2, 4, 4, 5, 6)),
        (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 7)), (3, 5)),
        (nn.MultiheadAttention(8, 2, batch_first=True), (2, 4, 8), (2, 4, 8), (2, 4, 8)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 4, 8)),
        (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (2, 4, 8), (2, 5, 8)),
    ],
    # facebookresearch/fvcore tests/test_flop_count.py, and #78
    "fvcore": [
        (C1(3, 4, 3, padding=2, groups=1, dilation=2), (1, 3, 11)),
        (C2(4, 8, 3, stride=3), (2, 4, 9, 9)),
        (C2(6, 9, 3, groups=3), (2, 6, 8, 8)),
        (C2(64, 64, 3, padding=1, groups=64), (1, 64, 56, 56)),
        (C3(3, 6, (1, 2, 3), bias=False), (2, 3, 5, 6, 7)),
        (T1(5, 4, 3, stride=2), (1, 5, 9)),
        (T2(32, 1, 3), (1, 32, 1, 1)),
        (T3(3, 5, 2), (1, 3, 4, 5, 6)),
        (torch.matmul, (20, 30), (30, 10)),
        (torch.matmul, (1, 20, 30), (4, 30, 10)),
        (einsum("nct,ncp->ntp"), (1, 2, 7), (1, 2, 5)),
        (einsum("nct,ntg->ncg"), (1, 2, 7), (1, 7, 5)),
        (einsum("ab,bc,cd->ad"), (4, 5), (5, 6), (6, 7)),
        (nn.Linear(20, 10, bias=False), (5, 20)),
    ],
    # deepspeedai/DeepSpeed tests/unit/profiling/flops_profiler, #3815, #4723, PR#8323
    "DeepSpeed": [
        *((C2(c, k, 3, stride=s, padding=p, groups=g), (2, c, 8, 9))
          for c, k, s, p, g in
          ((4, 8, 1, 0, 1), (4, 8, 2, 1, 2), (8, 8, 1, 1, 8), (6, 4, 3, 2, 2))),
        *((T2(c, k, 3, stride=s, padding=1, output_padding=s - 1, groups=g), (2, c, 8, 8))
          for c, k, s, g in ((4, 8, 1, 1), (4, 8, 2, 1), (4, 8, 2, 2), (8, 8, 2, 8), (6, 9, 3, 3))),
        (T1(4, 8, 4, stride=2), (2, 4, 16)),
        (lambda a, b: a @ b, (2, 16, 12), (2, 12, 8)),
        (lambda x: einsum("bij,jk->ik")(x, torch.ones(4, 5, device="meta")), (2, 3, 4)),
        (nn.GRU(4, 8, num_layers=2, bidirectional=True), (5, 2, 4)),
        (nn.RNN(4, 8, nonlinearity="relu"), (5, 2, 4)),
        (nn.LSTM(4, 8, 2, proj_size=3, batch_first=True), (2, 5, 4)),
        (nn.LSTMCell(4, 8), (2, 4)),
        (nn.GRUCell(4, 8), (2, 4)),
        (nn.RNNCell(4, 8), (2, 4)),
    ],
    # sovrasov/flops-counter.pytorch tests/common_test.py, #57 and #98
    "ptflops": [
        (nn.Linear(3, 8, bias=False), (2, 3)),
        (C2(3, 8, 3, bias=False), (1, 3, 16, 16)),
        (C2(3, 32, 7, stride=2, bias=False), (1, 3, 32, 32)),
        (T2(4, 2, 4, stride=2, padding=1, bias=False), (1, 4, 8, 8)),
        (C2(4, 8, 3, padding="same"), (4, 12, 13)),  # an image without a batch
    ],
    # operators that are products of others
    "composite": [
        (torch.inner, (3, 8), (4, 8)),
        (lambda a, b: torch.tensordot(a, b, dims=([1], [0])), (3, 8), (8, 4)),
        (lambda a, b, c: torch.linalg.multi_dot([a, b, c]), (4, 5), (5, 6), (6, 7)),
        (lambda a: torch.linalg.matrix_power(a, 5), (4, 4)),
        (torch.kron, (3, 4), (5, 6)),
        (lambda a, b: torch.chain_matmul(a, b), (4, 5), (5, 6)),
    ],
}  # fmt: skip
CASES = [(source, i) for source, cases in COUNTED.items() for i in range(len(cases))]

# What torch's counter has no formula for, and what the multiply-adds of it are.
UNCOUNTED = {
    "dot": (torch.dot, ((8,), (8,)), 2 * 8),
    "mv": (torch.mv, ((4, 8), (8,)), 2 * 4 * 8),
    "addmv": (torch.addmv, ((4,), (4, 8), (8,)), 2 * 4 * 8),
    "vecdot": (torch.linalg.vecdot, ((3, 8), (3, 8)), 2 * 3 * 8),
    "addbmm": (torch.addbmm, ((4, 7), (3, 4, 5), (3, 5, 7)), 2 * 3 * 4 * 5 * 7),
    # x Wᵒ for each output o, and then the product of the result with y
    "bilinear": (nn.Bilinear(5, 6, 7), ((4, 5), (4, 6)), 2 * 4 * 7 * (5 * 6 + 6)),
    "conv_tbc": (lambda x, w, b: torch.conv_tbc(x, w, b, 1), ((5, 2, 3), (3, 3, 4), (4,)),
                 2 * 5 * 2 * 3 * 3 * 4),
    "lstm": (nn.LSTM(4, 8), ((5, 2, 4),), 2 * 5 * 2 * 4 * 8 * (4 + 8)),
    "sdpa on a CPU": (F.scaled_dot_product_attention, qkv(1, 12, 64, 64), 4 * 12 * 64**3),
}  # fmt: skip


# --- values ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("source", "i"), CASES, ids=[f"{s}-{i}" for s, i in CASES])
def test_flops_are_those_of_torchs_counter(source, i):
    module, inputs = on_meta(COUNTED[source][i][0], *COUNTED[source][i][1:])
    found = trace(module, inputs)
    assert found.flops == of_torch(module, inputs)
    assert not found.unknown
    assert predict_graph(found.graph, H100).seconds > 0


@pytest.mark.parametrize("name", UNCOUNTED)
def test_products_that_torch_does_not_count_are_counted(name):
    function, shapes, flops = UNCOUNTED[name]
    assert trace(*on_meta(function, *shapes)).flops == flops


# --- laws ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
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
        (node,) = predict_graph(found.graph, H100).nodes
        moved[taps] = node.prediction.bytes["hbm"]
    image = 32 * 64 * 56 * 56 * 2
    assert all(2 * image <= x <= 2.3 * image for x in moved.values())


def test_a_depthwise_convolution_takes_about_as_long_as_its_bytes():
    layer = nn.Conv2d(64, 64, 3, padding=1, groups=64)
    found = trace(*on_meta(layer, (32, 64, 56, 56), dtype=torch.bfloat16))
    copy = trace(*on_meta(nn.ReLU(), (32, 64, 56, 56), dtype=torch.bfloat16))
    seconds = [predict_graph(each.graph, H100).nodes[0].seconds for each in (found, copy)]
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

    found = trace(*on_meta(attend, *qkv(2, 8, 1024, 64), dtype=torch.bfloat16))
    (item,) = found.operations
    assert found.flops == 4 * 2 * 8 * 1024**2 * 64
    assert found.useful_flops == predict(item.problem, H100).useful_flops
    assert found.useful_flops == found.flops / (2 if causal else 1)
