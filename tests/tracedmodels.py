"""Small PyTorch modules to trace: decoders as Llama and GPT-2, an encoder, experts."""

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN, HEADS, KV_HEADS, FFN, VOCABULARY = 512, 8, 2, 1408, 4096
DIM = HIDDEN // HEADS


class WrittenNorm(nn.Module):
    """A root-mean-square norm written out, as Llama's reference code has it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * self.weight


def turned(x, cos, sin):
    """Rotary positions."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


class Attention(nn.Module):
    """Grouped queries, rotary positions, causal."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k = nn.Linear(HIDDEN, KV_HEADS * DIM, bias=False)
        self.v = nn.Linear(HIDDEN, KV_HEADS * DIM, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, _ = x.shape
        q, k, v = (
            layer(x).view(batch, tokens, -1, DIM).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN))


class GatedMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, FFN, bias=False)
        self.up = nn.Linear(HIDDEN, FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = WrittenNorm(), Attention()
        self.norm2, self.mlp = nn.RMSNorm(HIDDEN), GatedMlp()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Llama(nn.Module):
    """A decoder of two layers with embedding and head."""

    def __init__(self, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device).float()
        steps = 1e4 ** (-torch.arange(0, DIM // 2, device=ids.device) / (DIM // 2))
        angle = torch.outer(places, steps)
        angle = torch.cat((angle, angle), -1)
        cos, sin = (f(angle).to(self.embedding.weight.dtype) for f in (torch.cos, torch.sin))
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


class Gpt2(nn.Module):
    """A layer with biases, one product for queries, keys and values, and learnt positions."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.places = nn.Embedding(1024, HIDDEN)
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids):
        batch, tokens = ids.shape
        x = self.tokens(ids) + self.places(torch.arange(tokens, device=ids.device))
        parts = self.qkv(self.norm1(self.dropout(x))).split(HIDDEN, -1)
        q, k, v = (part.view(batch, tokens, HEADS, DIM).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GptLayer(nn.Module):
    """A layer without biases, dropout and positions."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN, bias=False)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x):
        batch, tokens, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, HEADS, DIM).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A decoder of equal layers."""

    def __init__(self, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(GptLayer() for _ in range(layers))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Bert(nn.Module):
    """Attention by steps, with a mask, as an encoder's first code had it."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.out, self.norm = nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN)

    def forward(self, x, mask):
        batch, tokens, _ = x.shape
        q, k, v = (layer(x).view(batch, tokens, HEADS, DIM).transpose(1, 2) for layer in self.qkv)
        scores = torch.matmul(q, k.transpose(-1, -2)) / DIM**0.5 + mask
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        return self.norm(x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN)))


class Experts(nn.Module):
    """Two of eight experts a token, by one batched product of tokens sorted by expert."""

    def __init__(self, experts=8, top=2):
        super().__init__()
        self.experts, self.top = experts, top
        self.router = nn.Linear(HIDDEN, experts, bias=False)
        self.up = nn.Parameter(torch.zeros(experts, HIDDEN, FFN))
        self.down = nn.Parameter(torch.zeros(experts, FFN, HIDDEN))

    def forward(self, x):
        tokens = x.reshape(-1, HIDDEN)
        weights, chosen = torch.softmax(self.router(tokens), -1).topk(self.top, -1)
        order = chosen.reshape(-1).argsort()
        spread = tokens.repeat_interleave(self.top, 0)[order]
        grouped = spread.view(self.experts, -1, HIDDEN)  # evenly spread
        made = torch.bmm(F.gelu(torch.bmm(grouped, self.up)), self.down).view(-1, HIDDEN)
        back = made[order.argsort()].view(-1, self.top, HIDDEN)
        return (back * weights.unsqueeze(-1)).sum(1).view(x.shape)


class Patches(nn.Module):
    """A convolution whose stride is its size, and a mean."""

    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, HIDDEN, 16, stride=16)

    def forward(self, image):
        return self.cut(image).flatten(2).mean(-1)
