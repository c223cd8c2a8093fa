"""Forms of products and convolutions, by the public tests of counters that expect a value of them.

A form is a module or function, the shapes of its inputs, and the FLOPs that the test expects: two
for each multiply-add, without the additions of biases, which `trace` does not count as FLOPs.
"""

import torch
from torch import nn
from torch.nn import functional as F

C1, C2, C3 = nn.Conv1d, nn.Conv2d, nn.Conv3d
T1, T2, T3 = nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d


class Run(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def einsum(equation):
    return lambda *operands: torch.einsum(equation, *operands)


def qkv(batch, heads, seq, dim):
    return [(batch, heads, seq, dim)] * 3


class LeNet5(nn.Module):
    """Three convolutions and two products, as DeepSpeed's test has it."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            C2(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), C2(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
            C2(16, 120, 5), nn.Tanh(),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))

    def forward(self, image):
        return self.classifier(torch.flatten(self.features(image), 1))


class Split(nn.Module):
    """One product for each third of the columns, of one layer or of three."""

    def __init__(self, *, shared):
        super().__init__()
        first = nn.Linear(100, 100, bias=False)
        others = [first if shared else nn.Linear(100, 100, bias=False) for _ in range(2)]
        self.parts = nn.ModuleList(nn.Sequential(layer) for layer in (first, *others))

    def forward(self, x):
        return tuple(part(y) for part, y in zip(self.parts, torch.split(x, 100, 1), strict=True))


class ThreeNet(nn.Module):
    """fvcore's: a convolution, a mean over the image, two products."""

    def __init__(self):
        super().__init__()
        self.conv, self.pool = C2(2, 5, 1), nn.AdaptiveAvgPool2d((1, 1))
        self.linear1, self.linear2 = nn.Linear(5, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.linear2(self.linear1(torch.flatten(self.pool(self.conv(x)), 1)))


def variety(a, b, c, d, e, f, g, h):
    """Five products of pytorch's test, the last with a bias."""
    return (torch.mm(a, b), torch.addmm(h, a, b), torch.matmul(c, d), einsum("ab,bc->ac")(d, e),
            F.linear(f, g))  # fmt: skip


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def transposed(c, k, groups, stride, padding):
    return T2(c, k, 3, stride=stride, padding=padding, output_padding=stride - 1, groups=groups)


MATMULS = [  # DeepSpeed test_matmul_flops, without those of two vectors or of one
    ((4, 8), (8, 5), 320), ((3, 4, 8), (3, 8, 5), 960), ((2, 1, 4, 8), (3, 8, 5), 1920),
]  # fmt: skip
VECTORS = [((8,), (8,), 16), ((4, 8), (8,), 64), ((8,), (8, 5), 80)]

EXPECTED = {
    # pytorch/pytorch test/test_flop_counter.py: test_flop_counter_variety, test_op, test_sdpa
    "pytorch": [
        (variety, (4, 5), (5, 6), (5, 6), (6, 7), (7, 8), (8, 9), (10, 9), (4, 6), 3012),
        (torch.mm, (4, 5), (5, 6), 240),
        (torch.bmm, (3, 4, 5), (3, 5, 6), 720),
        *((torch.addmm, bias, (4, 5), (5, 6), 240) for bias in ((4, 6), (4, 1), (6,))),
        (torch.baddbmm, (3, 4, 6), (3, 4, 5), (3, 5, 6), 720),
        (lambda x, w: F.conv2d(x, w, padding=1), (2, 3, 6, 6), (6, 3, 4, 4), 28800),
        (lambda x, w: F.conv1d(x, w, padding=1), (2, 3, 6), (6, 3, 4), 1440),
        (causal, *qkv(4, 8, 128, 64), 134217728),
        (causal, (4, 8, 128, 64), (4, 8, 256, 64), (4, 8, 256, 64), 268435456),
    ],
    # facebookresearch/fvcore tests/test_flop_count.py, and #78; it expects multiply-adds
    "fvcore": [
        (nn.Linear(10, 20), (5, 10), 2 * 5 * 10 * 20),
        (C2(10, 3, 3, padding=1), (5, 10, 15, 15), 2 * 5 * 15**2 * 9 * 10 * 3),
        (C2(10, 6, 3, padding=1, stride=2), (2, 10, 20, 20), 2 * 2 * 10**2 * 9 * 10 * 6),
        (C2(16, 8, 5, padding=2, groups=4), (5, 16, 15, 15), 2 * 5 * 15**2 * 25 * 16 * 8 // 4),
        (C2(16, 8, 3, padding=1, groups=8), (5, 16, 15, 15), 2 * 5 * 15**2 * 9 * 16 * 8 // 8),
        (C1(10, 3, 3, padding=1), (5, 10, 15), 2 * 5 * 15 * 3 * 10 * 3),
        (C3(10, 3, 3, padding=1), (5, 10, 15, 15, 15), 2 * 5 * 15**3 * 27 * 10 * 3),
        *((T2(10, 3, 3, padding=1, stride=s, output_padding=s - 1), (5, 10, 15, 15),
           2 * 5 * 15**2 * 9 * 10 * 3) for s in (1, 2, 3)),
        (T2(32, 1, 3), (1, 32, 1, 1), 576),
        (torch.matmul, (20, 10), (10, 100), 40000),
        (torch.matmul, (1, 20, 10), (1, 10, 100), 40000),
        (torch.matmul, (2, 2, 20, 10), (2, 2, 10, 100), 160000),
        (torch.matmul, (1, 20, 10), (10, 100), 40000),
        (torch.matmul, (2, 20, 10), (10, 100), 80000),
        (torch.bmm, (2, 5, 2), (2, 2, 12), 480),
        (einsum("nct,ncp->ntp"), (1, 5, 2), (1, 5, 12), 240),
        (einsum("ntg,ncg->nct"), (1, 2, 6), (1, 5, 6), 120),
        (einsum("nc,nchw->hw"), (3, 4), (3, 4, 2, 3), 144),
        (torch.mm, (3, 4), (4, 5), 120),
        (ThreeNet(), (4, 2, 10, 10), 2 * (4 * 5 * 2 * 100 + 4 * 5 * 3 + 4 * 3)),
    ],
    # deepspeedai/DeepSpeed tests/unit/profiling/flops_profiler; two for each of its MACs
    "DeepSpeed": [
        (F.scaled_dot_product_attention, *qkv(2, 4, 16, 8), 65536),
        *((transposed(4, 8, groups, *of), (2, 4, 8, 8), 2 * 2 * 64 * 4 * 8 // groups * 9)
          for groups in (1, 2, 4) for of in ((1, 0), (2, 1))),
        (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, [1, 1]), (2, 4, 8, 8), (4, 8, 3, 3),
         2 * 2 * 64 * 4 * 8 * 9),
        (LeNet5(), (1024, 1, 32, 32), 2 * 426516480),
        (Split(shared=True), (1, 300), 60000),
        (Split(shared=False), (1, 300), 60000),
        (nn.Linear(8, 16), (4, 8), 1024),
        (nn.Linear(8, 16, bias=False), (4, 8), 1024),
        *((torch.matmul, *of) for of in (*VECTORS, *MATMULS)),
        *((torch.addmm, bias, (4, 8), (8, 5), 320)
          for bias in ((4, 5), (5,), (1, 5), (4, 1), (1,))),
        *((torch.baddbmm, bias, (2, 4, 8), (2, 8, 5), 640)
          for bias in ((2, 4, 5), (5,), (1, 1, 5), (4, 5))),
    ],
    # sovrasov/flops-counter.pytorch tests/common_test.py and #57; its MACs without those of biases
    "ptflops": [
        (C2(3, 2, 3), (1, 3, 224, 224), 2 * (2759904 - 2 * 222**2)),
        (nn.Linear(3, 2), (1, 3), 2 * (8 - 2)),
        (nn.Linear(3, 2), (4, 5, 3), 2 * (8 - 2) * 4 * 5),
        (nn.Sequential(nn.Linear(3, 2)), (1, 3), 2 * (8 - 2)),
        (T2(64, 32, 7), (1, 64, 3, 9), 2 * 64 * 27 * 32 * 49),
    ],
}  # fmt: skip

# Forms of which torch's own counter is asked: FlopCounterMode beside `trace`.
PRODUCTS = [
    (torch.matmul, (2, 3, 4, 5), (5, 6)),
    (einsum("bhqd,bhkd->bhqk"), (2, 3, 4, 8), (2, 3, 5, 8)),
    (nn.Linear(5, 6), (3, 4, 5)),
    (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 7)), (3, 5)),
    (nn.MultiheadAttention(8, 2, batch_first=True), (2, 4, 8), (2, 4, 8), (2, 4, 8)),
    (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 4, 8)),
    (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (2, 4, 8), (2, 5, 8)),
    (torch.matmul, (1, 20, 30), (4, 30, 10)),
    (lambda a, b: a @ b, (2, 16, 12), (2, 12, 8)),
    (lambda x: einsum("bij,jk->ik")(x, torch.ones(4, 5, device="meta")), (2, 3, 4)),
]
CONVOLUTIONS = [
    (C1(3, 4, 3, padding=2, dilation=2), (1, 3, 11)),
    (C2(4, 8, 3, stride=3), (2, 4, 9, 9)),
    (C2(64, 64, 3, padding=1, groups=64), (1, 64, 56, 56)),
    (C2(3, 32, 7, stride=2, bias=False), (1, 3, 32, 32)),
    (C2(4, 8, 3, padding="same"), (4, 12, 13)),  # an image without a batch
    (C3(3, 6, (1, 2, 3), bias=False), (2, 3, 5, 6, 7)),
    (C3(4, 8, 3, stride=2, dilation=2, groups=2), (2, 4, 12, 13, 14)),
    *((C2(c, k, 3, stride=s, padding=p, groups=g), (2, c, 8, 9))
      for c, k, s, p, g in ((4, 8, 1, 0, 1), (4, 8, 2, 1, 2), (8, 8, 1, 1, 8), (6, 4, 3, 2, 2))),
    (T1(4, 6, 5, stride=3, dilation=2), (2, 4, 17)),
    (T1(4, 8, 4, stride=2), (2, 4, 16)),
    (T1(5, 4, 3, stride=2), (1, 5, 9)),
    (T2(4, 2, 4, stride=2, padding=1, bias=False), (1, 4, 8, 8)),
    (T2(6, 3, 3, stride=2, output_padding=1, groups=3), (2, 6, 5, 7)),
    (T2(8, 8, 3, stride=2, padding=1, output_padding=1, groups=8), (2, 8, 8, 8)),
    (T3(3, 5, 2), (1, 3, 4, 5, 6)),
    (T3(4, 8, 3, stride=2, groups=4), (2, 4, 4, 5, 6)),
]  # fmt: skip
RECURRENT = [
    (nn.GRU(4, 8, num_layers=2, bidirectional=True), (5, 2, 4)),
    (nn.RNN(4, 8, nonlinearity="relu"), (5, 2, 4)),
    (nn.LSTM(4, 8, 2, proj_size=3, batch_first=True), (2, 5, 4)),
    (nn.LSTMCell(4, 8), (2, 4)),
    (nn.GRUCell(4, 8), (2, 4)),
    (nn.RNNCell(4, 8), (2, 4)),
]
COMPOSITE = [
    (einsum("ab,bc,cd->ad"), (4, 5), (5, 6), (6, 7)),
    (torch.inner, (3, 8), (4, 8)),
    (lambda a, b: torch.tensordot(a, b, dims=([1], [0])), (3, 8), (8, 4)),
    (lambda a, b, c: torch.linalg.multi_dot([a, b, c]), (4, 5), (5, 6), (6, 7)),
    (lambda a: torch.linalg.matrix_power(a, 5), (4, 4)),
    (torch.kron, (3, 4), (5, 6)),
    (lambda a, b: torch.chain_matmul(a, b), (4, 5), (5, 6)),
]
COUNTED = [*PRODUCTS, *CONVOLUTIONS, *RECURRENT, *COMPOSITE]

# What torch's counter has no formula for, and what the multiply-adds of it are.
UNCOUNTED = {
    "dot": (torch.dot, (8,), (8,), 2 * 8),
    "mv": (torch.mv, (4, 8), (8,), 2 * 4 * 8),
    "addmv": (torch.addmv, (4,), (4, 8), (8,), 2 * 4 * 8),
    "vecdot": (torch.linalg.vecdot, (3, 8), (3, 8), 2 * 3 * 8),
    "addbmm": (torch.addbmm, (4, 7), (3, 4, 5), (3, 5, 7), 2 * 3 * 4 * 5 * 7),
    # x Wᵒ for each output o, and then the product of the result with y
    "bilinear": (nn.Bilinear(5, 6, 7), (4, 5), (4, 6), 2 * 4 * 7 * (5 * 6 + 6)),
    "conv_tbc": (lambda x, w, b: torch.conv_tbc(x, w, b, 1), (5, 2, 3), (3, 3, 4), (4,),
                 2 * 5 * 2 * 3 * 3 * 4),
    "lstm": (nn.LSTM(4, 8), (5, 2, 4), 2 * 5 * 2 * 4 * 8 * (4 + 8)),
    "sdpa on a CPU": (F.scaled_dot_product_attention, *qkv(1, 12, 64, 64), 4 * 12 * 64**3),
}  # fmt: skip
