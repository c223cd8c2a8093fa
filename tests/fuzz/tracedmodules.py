"""Modules for `trace`: layers, products, masks, sizes that depend on data, code that raises."""

from __future__ import annotations

from commands import mishap
from dice import DEVICES, Dice
from inputs import Input

# Bodies of `forward(self, x, y)`, of x of the sizes drawn and y like it.
_PRODUCTS = (
    "return x @ y.transpose(-1, -2)",
    "return torch.einsum('...ab,...cb->...ac', x, y)",
    "return torch.einsum('ab,cb,cd->ad', x, y, y)",
    "return torch.inner(x, y)",
    "return torch.tensordot(x, y, dims=1)",
    "return torch.linalg.multi_dot([x, y.T, x])",
    "return torch.linalg.matrix_power(x @ y.transpose(-1, -2), 3)",
    "return torch.linalg.vecdot(x, y)",
    "return torch.addbmm(x[0] @ y[0].T, x, y.transpose(1, 2))",
    "return torch.kron(x, y)",
    "return torch.outer(x.flatten(), y.flatten())",
    "return torch.cdist(x, y)",
    "return torch.nn.functional.bilinear(x, y, torch.zeros(3, x.shape[-1], y.shape[-1]))",
    "return torch.vmap(torch.mm)(x, y.transpose(1, 2))",
    "return (x[..., :0] @ y[..., :0].transpose(-1, -2)).relu()",
)
_MAPS = (
    "return torch.softmax(x, {dim}) * y",
    "return torch.nn.functional.layer_norm(x, x.shape[-1:]) + y",
    "x = x.clone(); x[..., :1].mul_(2); return x + y.exp()",
    "return torch.cat([x, y], {dim}).cumsum(0)",
    "return torch.nn.functional.gelu(x).sum({dim}, keepdim=True) / y",
    "return torch.where(x > y, x, 0.0).to(torch.int8)",
    "return torch.fft.fft(x.float()).abs()",
    "return x.sort({dim})[0], y.topk(1, {dim})",
    "return torch.linalg.inv(x.float() @ y.float().transpose(-1, -2))",
    "return torch.nn.functional.cross_entropy(x, y.argmax(-1))",
    "return x.view(-1)[::3].reshape(-1, 1).expand(-1, 5) + y.flatten()[:1]",
    "return {{'a': [x + 1], 'b': (y,)}}",
    "return x.T",
    "return None",
    "return x",
    "return 3",
)
_ATTENTION = (
    "return F.scaled_dot_product_attention(x, y, y, is_causal={flag})",
    "mask = torch.ones(x.shape[-2], y.shape[-2]) > 0\n"
    "        return F.scaled_dot_product_attention(x, y, y, attn_mask=mask)",
    "return F.scaled_dot_product_attention(x, y[..., :1, :, :], y[..., :1, :, :], enable_gqa=True)",
    "return F.scaled_dot_product_attention(x, y, y[..., :1], dropout_p=0.1)",
    "p = torch.arange(x.shape[-2]); ok = (torch.diff(p) == 1).all()\n"
    "        return F.scaled_dot_product_attention(x, y, y, is_causal=bool(ok))",
)  # fmt: skip
_DATA = (
    "return x.unique()",
    "return x[x > 0]",
    "return x.nonzero()",
    "return x if x.sum() > 0 else y",
    "return torch.zeros(int(x.sum()))",
    "return x.repeat_interleave(y.flatten()[0].long())",
    "return [x, y][int(y.max())]",
    "return x.tolist()",
)
_RAISING = (
    "import sys; sys.exit({number})",
    "raise ValueError('\\x1b[31mtwo\\nlines')",
    "raise KeyError",
    "raise type('Own', (BaseException,), {{}})('x' * 1000)",
    "raise StopIteration",
    "raise GeneratorExit",
    "return self.forward(x, y)",
    "return x @ torch.zeros(7919, 2)",
    "return undefined",
    "print('a line'); return x + y",
    "assert x.shape[0] == 7919, x.shape",
    "import warnings; warnings.warn('x'); return x + y",
)
_LAYERS = (
    "nn.Conv{n}d(c, {out}, {taps}, {stride}, padding={pad}, dilation={dilation}, groups={g})",
    "nn.Conv{n}d(c, c, {taps}, groups=c)",
    "nn.Conv{n}d(c, {out}, {taps}, padding='same', padding_mode='{mode}')",
    "nn.ConvTranspose{n}d(c, {out}, {taps}, stride={stride}, output_padding={pad}, groups={g})",
    "nn.BatchNorm{n}d(c)",
    "nn.MaxPool{n}d({taps}, stride={stride})",
)  # fmt: skip
_ROWS = (
    "nn.LSTM(w, {out}, num_layers={stride}, bidirectional={flag}, batch_first={flag})",
    "nn.LSTM(w, 8, proj_size=3)",
    "nn.GRU(w, {out}, bias={flag})",
    "nn.RNN(w, {out}, nonlinearity='relu')",
    "nn.LSTMCell(w, {out})",
    "nn.Linear(w, {out})",
    "nn.Sequential(nn.Linear(w, {out}), nn.GELU(), nn.LayerNorm({out}), nn.Dropout(0.5))",
    "nn.TransformerEncoderLayer(w, {stride}, batch_first=True)",
    "nn.Bilinear(w, w, {out})",
)


def make(dice: Dice) -> Input:
    """A file with a module, and a command that traces it."""
    shape = [
        dice.choice((1, 2, 3, 4, 8, 16, 33)) for _ in range(dice.choice((1, 2, 3, 3, 4, 4, 5)))
    ]
    text, inputs = _module(dice, shape)
    if dice.chance(0.08):
        text = dice.damaged(text)
    data = text.encode("utf-8", "surrogatepass")
    if dice.chance(0.02):
        data = dice.broken(data)
    name = dice.choice(("mine.py", "mine.py", "torch.py", "json.py", "a b.py"))
    called = "M" if dice.chance(0.97) else dice.hostile()
    arguments = ["trace", f"{name}:{called}", "-d", dice.choice(DEVICES[:6])]
    kind = dice.choice(("bf16", "fp32", "fp32", "fp16"))
    size = ",".join(map(str, shape))
    for i in range(inputs):
        given = f"{kind}[{size}]"
        if dice.chance(0.03):
            given = dice.choice((f"int64[{size}]", f"{'xy'[i]}:{given}", dice.damaged(given)))
        arguments += ["-i", given]
    arguments += ["--dtype", kind if dice.chance(0.95) else dice.choice(("fp8", "int8", "fp64"))]
    arguments += ["-f", dice.choice(("json", "table", "csv", "markdown"))]
    arguments += ["--backward"] * dice.chance(0.25)
    if dice.chance(0.3):
        arguments += ["--fuse", dice.choice(("pointwise", "engine", "none"))]
    if dice.chance(0.3):
        arguments += ["--by", dice.choice(("module", "kind", "operator", "node"))]
    if dice.chance(0.03):
        arguments = mishap(dice, arguments)
    return Input("traces", tuple(arguments), {name: data})


def _module(dice: Dice, shape: list[int]) -> tuple[str, int]:
    """The text of a module, and how many inputs it has."""
    draw = dice.random()
    if draw < 0.45:
        return _of_layer(dice, shape), 1
    bodies = dice.choice((_PRODUCTS, _PRODUCTS, _MAPS, _MAPS, _ATTENTION, _DATA, _RAISING))
    body = dice.choice(bodies).format(dim=dice.choice((-1, 0, 1)), **_numbers(dice, shape))
    head = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
    return f"{head}class M(nn.Module):\n    def forward(self, x, y):\n        {body}\n", 2


def _of_layer(dice: Dice, shape: list[int]) -> str:
    """One layer of torch's, sometimes among others."""
    layers = _LAYERS if len(shape) > 2 and dice.chance(0.6) else _ROWS
    dimensions = max(min(len(shape) - 2, 3), 1)
    layer = dice.choice(layers).format(n=dimensions, **_numbers(dice, shape))
    channels = shape[1] if len(shape) > 1 else shape[0]
    if dice.chance(0.2):
        layer = f"nn.Sequential(nn.ReLU(), {layer})"
    sizes = f"c, w = {channels}, {shape[-1]}"
    return f"from torch import nn\n\n{sizes}\n\n\ndef M():\n    return {layer}\n"


def _numbers(dice: Dice, shape: list[int]) -> dict[str, object]:
    channels = shape[1] if len(shape) > 1 else shape[0]
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    return {
        "out": channels * dice.choice((1, 1, 2)),
        "taps": dice.choice((1, 2, 3, 3, 5)),
        "stride": dice.choice((1, 1, 2, 3)),
        "pad": dice.choice((0, 0, 1, 2)),
        "dilation": dice.choice((1, 1, 1, 2)),
        "g": dice.choice(divisors),
        "mode": dice.choice(("zeros", "circular", "reflect")),
        "flag": dice.chance(0.5),
        "number": dice.choice((0, 1, 3, -1)),
    }
