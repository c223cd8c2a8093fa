"""The operations of one layer: how blocks, embeddings and heads are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfmodel.errors import ProblemError
from perfmodel.networks.network import Block, Latent, Mlp, Network, SelfAttention
from perfmodel.networks.operations.attention import FusedAttention, UnfusedAttention
from perfmodel.networks.operations.embedding import Embedding
from perfmodel.networks.operations.exchange import Exchange, Way
from perfmodel.networks.operations.experts import Choice, Combine, Permute, touched
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.loss import Loss
from perfmodel.networks.operations.maps import Dropout, Map, Pass, Repeat, Rotary, activation
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.operations.operation import Operation
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value, Weight

# Tokens that BERT predicts, in a hundred (1810.04805, section 3.1).
_MASKED = 15


def share(what: str, count: int, ranks: int, axis: str) -> int:
    """A device's share of `count`; raises `ProblemError` that names ranks that divide it."""
    if count % ranks:
        fits = [n for n in range(1, min(count, 4 * ranks) + 1) if count % n == 0]
        raise ProblemError(
            f"{count:,} {what} do not divide by {axis} {ranks}; "
            f"{axis} of {', '.join(str(n) for n in fits[-6:])} would"
        )
    return count // ranks


class Layer:
    """Builds the operations of one layer; `x` is what the layer reads."""

    def __init__(self, network: Network, setting: Setting, name: str) -> None:
        self.network, self.setting, self.name = network, setting, name
        self.found: list[Operation] = []
        shards = setting.shards
        self.tensor = shards.tensor
        split = self.tensor if shards.sequence else 1
        self.tokens = setting.tokens
        self.rows = share("tokens", self.tokens, split, "tensor")
        self.x = Value("x", self.rows, network.hidden, setting.data)
        self.drops = setting.training and self._dropout > 0.0

    @property
    def _dropout(self) -> float:
        said = self.setting.dropout
        return self.network.dropout if said is None else said

    def _add(self, operation: Operation) -> tuple[Value, ...]:
        self.found.append(operation)
        return operation.outputs

    def _one(self, operation: Operation) -> Value:
        return self._add(operation)[0]

    # -- parts ---------------------------------------------------------------------------------

    def norm(self) -> tuple[Operation, ...]:
        """A norm by itself: behind an encoder."""
        self._norm("encoder norm", self.x)
        return tuple(self.found)

    def embedding(self, first: SelfAttention) -> tuple[Operation, ...]:
        """Tables and their sums; a norm; dropout. `first` is the attention that follows."""
        network = self.network
        tables = [("positions", network.positions), ("types", network.token_types)]
        added = tuple((name, rows) for name, rows in tables if rows)
        vocabulary = -(-network.vocabulary // self.tensor)
        table = Embedding(
            "embedding", self.setting, self.tokens, network.hidden, vocabulary, added,
            shared=self.name == "decoder", distances=(first.relative_buckets, first.heads),
        )  # fmt: skip
        x = self._one(table)
        x = self._parallel(x, "scatter" if self.setting.shards.sequence else "reduce", "embedding")
        if network.embedding_norm:
            x = self._norm("embedding norm", x)
        if self.drops:
            self._one(Dropout("embedding dropout", self.setting, x))
        return tuple(self.found)

    def block(self, block: Block) -> tuple[Operation, ...]:
        """Attention, cross-attention where there is some, and the inner layer."""
        if block.parallel:
            read = self._norm("norm", self.x)
            beside = self._norm("norm of mlp", self.x) if block.own_norm else read
            attended = self._attention(block.attention, read, "attention")
            x = self._residual("residual 1", attended, self.x)
            self._residual("residual 2", self._inner(block.mlp, beside), x)
            return tuple(self.found)
        x = self._part(block, self.x, "attention", 1)
        if block.cross is not None:
            x = self._part(block, x, "cross", 2)
        self._part(block, x, "mlp", 3 if block.cross is not None else 2)
        return tuple(self.found)

    def _part(self, block: Block, x: Value, what: str, number: int) -> Value:
        """One part of a block, its norm and its residual."""
        read = x if block.norm_after else self._norm(f"norm {number}", x)
        if what == "attention":
            made = self._attention(block.attention, read, "attention")
        elif what == "cross":
            assert block.cross is not None
            made = self._attention(block.cross, read, "cross attention", cross=True)
        else:
            made = self._inner(block.mlp, read)
        if block.sandwich:
            made = self._norm(f"norm behind {number}", made)
        y = self._residual(f"residual {number}", made, x)
        return self._norm(f"norm {number}", y) if block.norm_after else y

    def head(self) -> tuple[Operation, ...]:
        """Final norm, logits and loss; or BERT's heads."""
        network, setting = self.network, self.setting
        x = self.x
        if network.final_norm:
            x = self._norm("final norm", x)
        if network.head == "none":
            return tuple(self.found)
        if network.head in ("pooler", "pretraining"):
            self._pooler(x)
        if network.head == "pooler":
            return tuple(self.found)
        if network.head == "pretraining":
            if setting.stack.masked_logits:
                x = Value("masked tokens", -(-x.rows * _MASKED // 100), x.cols, x.dtype)
            x = self._one(Linear("transform", setting, x, network.hidden, bias=True))
            x = self._one(activation("transform activation", setting, x, "gelu", None))
            x = self._norm("transform norm", x)
        if setting.logits == "last" and not setting.training:
            x = Value("last tokens", setting.batch, x.cols, x.dtype)
        logits = self._logits(x)
        if setting.training and setting.loss:
            self._add(Loss("loss", setting, logits))
        return tuple(self.found)

    # -- small pieces --------------------------------------------------------------------------

    def _norm(self, name: str, x: Value) -> Value:
        return self._one(
            Norm(name, self.setting, x, self.network.norm, bias=self.network.norm_bias)
        )

    def _residual(self, name: str, made: Value, x: Value) -> Value:
        if self.drops and (self.setting.stack.fused_dropout_add or self.setting.stack.joins_maps):
            return self._one(Dropout(name, self.setting, made, residual=x))
        if self.drops:
            made = self._one(Dropout(f"{name} dropout", self.setting, made))
        return self._one(Map(name, self.setting, (x, made), (Pass("add", reads=2),), ()))

    def _parallel(self, x: Value, way: Way, name: str, axis: str = "tensor") -> Value:
        """An exchange among the devices of an axis, where there are several."""
        ranks = getattr(self.setting.shards, axis)
        if ranks == 1:
            return x
        return self._one(Exchange(f"{name} {way}", self.setting, x, way, axis, ranks))

    def _spread(self, x: Value, name: str) -> Value:
        """Rows of all devices, before products whose columns are split."""
        return self._parallel(x, "gather" if self.setting.shards.sequence else "copy", name)

    def _joined(self, x: Value, name: str) -> Value:
        """Sums over devices, after products whose rows are split."""
        return self._parallel(x, "scatter" if self.setting.shards.sequence else "reduce", name)

    def _value(self, name: str, cols: int) -> Value:
        return Value(name, self.tokens, cols, self.setting.data)

    # -- attention -----------------------------------------------------------------------------

    def _attention(self, of: SelfAttention, x: Value, name: str, *, cross: bool = False) -> Value:
        """Projections, positions, attention, output."""
        x = self._spread(x, name)
        heads = share("heads", of.heads, self.tensor, "tensor")
        whole = of.kv_heads % self.tensor and self.tensor % of.kv_heads == 0
        kv_heads = 1 if whole else share("kv_heads", of.kv_heads, self.tensor, "tensor")
        if of.latent is not None:
            q, k, v = self._latent(of, of.latent, x, heads, name)
        else:
            q, k, v = self._projections(of, x, heads, kv_heads, name, cross=cross)
        setting = self.setting
        context = setting.shards.context
        seq = share("tokens of a sequence", setting.seq, context, "context")
        past = setting.past if not cross else 0
        keys = past + seq
        if context > 1:
            keys = self._keys(of)
            of = replace(of, causal=False) if of.causal else of
            k = self._circulated(k, keys, f"{name} k")
            v = self._circulated(v, keys, f"{name} v")
        if past:
            size = setting.batch * past * kv_heads
            k = (Value(f"{name} past k", size, of.score_width, setting.data), *k)
            v = (Value(f"{name} past v", size, of.value_width, setting.data), *v)
        kind = FusedAttention if setting.fused_attention else UnfusedAttention
        attended = self._one(
            kind(
                name,
                setting,
                of,
                q,
                k,
                v,
                setting.batch,
                heads,
                kv_heads,
                seq,
                keys,
                dropout=self.drops,
            )  # fmt: skip
        )
        output = Linear(
            f"{name} output", setting, attended, self.network.hidden, of.output_bias, split="in"
        )
        return self._joined(self._one(output), name)

    def _keys(self, of: SelfAttention) -> int:
        """Keys that a query of a sequence in shards sees: all; half of them on average where a
        causal mask is balanced among devices (zigzag or stripes), and those of its window."""
        seq = self.setting.seq
        reach = of.window or of.chunk
        if 0 < reach < seq:
            return reach
        return -(-seq // 2) if of.causal else seq

    def _circulated(self, group: tuple[Value, ...], keys: int, name: str) -> tuple[Value, ...]:
        """Keys or values of all devices of a ring (2310.01889), as they pass a device by."""
        ranks, rows = self.setting.shards.context, self.setting.batch * keys
        return tuple(
            self._one(Exchange(f"{name} {i}", self.setting, x, "circulate", "context", ranks, rows))
            for i, x in enumerate(group)
        )

    def _projections(
        self, of: SelfAttention, x: Value, heads: int, kv_heads: int, name: str, *, cross: bool
    ) -> tuple[tuple[Value, ...], ...]:
        """Queries, keys and values by one product or three, normalised and rotated."""
        setting, width = self.setting, of.head_size
        sizes = (heads * width, kv_heads * width, kv_heads * width)
        q, k, v = (
            self._value(f"{name} {part}", cols)
            for part, cols in zip(("q", "k", "v"), sizes, strict=True)
        )
        if (of.joined or setting.stack.joined_products) and not cross:
            self._add(
                Linear(
                    f"{name} qkv", setting, x, sum(sizes), of.qkv_bias, to=(q, k, v), split="out"
                )
            )
        else:
            source = Value("encoded", x.rows, x.cols, x.dtype) if cross else x
            for part, y, read in (("q", q, x), ("k", k, source), ("v", v, source)):
                called = f"{name} {part} projection"
                self._add(Linear(called, setting, read, y.cols, of.qkv_bias, to=(y,), split="out"))
        if of.head_norm:
            q, k = self._head_norms(q, k, width, name)
        if of.rotary:
            q, k = self._add(Rotary(f"{name} rotary", setting, q, k))
        return (q,), (k,), (v,)

    def _head_norms(self, q: Value, k: Value, width: int, name: str) -> tuple[Value, Value]:
        """RMS norms of each head's queries and keys."""
        made = []
        for part, x in (("q", q), ("k", k)):
            rows = x.rows * (x.cols // width)
            by_head = Value(x.name, rows, width, x.dtype)
            norm = Norm(f"{name} {part} norm", self.setting, by_head, "rmsnorm")
            y = self._one(norm)
            made.append(Value(y.name, x.rows, x.cols, x.dtype))
        return made[0], made[1]

    def _latent(
        self, of: SelfAttention, by: Latent, x: Value, heads: int, name: str
    ) -> tuple[tuple[Value, ...], ...]:
        """Queries, keys and values through low ranks; positions on parts of their own."""
        setting = self.setting
        q_nope = self._value(f"{name} q nope", heads * by.nope)
        q_rope = self._value(f"{name} q rope", heads * by.rope)
        source = x
        if by.q_rank:
            source = self._one(Linear(f"{name} q down", setting, x, by.q_rank, of.qkv_bias))
            source = self._norm(f"{name} q norm", source)
        up = heads * (by.nope + by.rope)
        self._add(Linear(f"{name} q up", setting, source, up, to=(q_nope, q_rope), split="out"))
        latent = self._value(f"{name} latent", by.kv_rank)
        k_rope = self._value(f"{name} k rope", by.rope)
        down = by.kv_rank + by.rope
        self._add(Linear(f"{name} kv down", setting, x, down, of.qkv_bias, to=(latent, k_rope)))
        latent = self._norm(f"{name} kv norm", latent)
        k_nope = self._value(f"{name} k nope", heads * by.nope)
        v = self._value(f"{name} v", heads * by.value)
        up = heads * (by.nope + by.value)
        self._add(Linear(f"{name} kv up", setting, latent, up, to=(k_nope, v), split="out"))
        q_rope, k_rope = self._add(Rotary(f"{name} rotary", setting, q_rope, k_rope))
        spread = self._one(Repeat(f"{name} k rope of all heads", setting, k_rope, heads))
        return (q_nope, q_rope), (k_nope, spread), (v,)

    # -- inner layers --------------------------------------------------------------------------

    def _inner(self, of: Mlp, x: Value) -> Value:
        """Dense, or experts with a shared one beside them."""
        if not of.experts:
            return self._dense(of, x, of.inner, "mlp")
        made = self._experts(of, x)
        if of.shared_inner:
            beside = self._dense(of, x, of.shared_inner, "shared expert")
            if of.shared_gate:
                self._one(Linear("shared expert weight", self.setting, x, 1))
            add = Map(
                "shared expert sum", self.setting, (made, beside), (Pass("add", reads=2),), ()
            )
            made = self._one(add)
        return made

    def _dense(self, of: Mlp, x: Value, inner: int, name: str) -> Value:
        """Up, activation, down."""
        x = self._spread(x, name)
        mine = share("columns of the inner layer", inner, self.tensor, "tensor")
        active = self._up(of, x, mine, name)
        down = Linear(
            f"{name} down", self.setting, active, self.network.hidden, of.bias, split="in"
        )
        return self._joined(self._one(down), name)

    def _up(
        self, of: Mlp, x: Value, inner: int, name: str, more: Mapping[str, int] | None = None
    ) -> Value:
        """The products up, and the activation of what they make; `more` is said of experts."""
        setting, more = self.setting, more or {}
        up = Value(f"{name} up.out", x.rows, inner, x.dtype)
        if not of.gated:
            linear = Linear(f"{name} up", setting, x, inner, of.bias, to=(up,), split="out", **more)
            self._add(linear)
            return self._one(activation(f"{name} activation", setting, up, of.activation, None))
        gate = Value(f"{name} gate.out", x.rows, inner, x.dtype)
        if setting.stack.joined_products or more:
            both = (gate, up)
            self._add(
                Linear(f"{name} gate and up", setting, x, 2 * inner, of.bias, both, "out", **more)
            )
        else:
            for part, y in (("gate", gate), ("up", up)):
                self._add(Linear(f"{name} {part}", setting, x, inner, of.bias, (y,), "out", **more))
        return self._one(activation(f"{name} activation", setting, up, of.activation, gate))

    def _experts(self, of: Mlp, x: Value) -> Value:
        """Router, rows to their experts, products in groups, and back."""
        setting, shards = self.setting, self.setting.shards
        split = self.tensor if shards.expert_tensor else 1
        if shards.expert_tensor:
            x = self._spread(x, "experts")
        local = share("experts", of.experts, shards.expert, "expert")
        inner = share("columns of an expert", of.inner, split, "tensor")
        scores = self._one(
            Linear("router", setting, x, of.experts, of.router_bias, dtype=setting.data)
        )
        weights = self._one(Choice("choice", setting, scores))
        sent = x.rows * of.chosen * shards.expert
        met = touched(of.experts, of.chosen, x.rows * shards.expert)
        used = min(local, max(round(met * local / of.experts), 1))
        each = max(int(-(-sent * of.capacity // (of.experts if used == local else used))), 1)
        rows = self._one(Permute("permute", setting, x, used * each))
        rows = self._parallel(rows, "dispatch", "experts", "expert")
        more = {"groups": used, "owned": local, "chosen": of.chosen}
        active = self._up(of, rows, inner, "experts", more)
        down = Linear(
            "experts down", setting, active, self.network.hidden, of.bias, split="in", **more
        )
        made = self._parallel(self._one(down), "collect", "experts", "expert")
        combined = self._one(Combine("combine", setting, made, weights, x.rows))
        return self._joined(combined, "experts") if shards.expert_tensor else combined

    # -- heads ---------------------------------------------------------------------------------

    def _pooler(self, x: Value) -> None:
        """A dense layer over the first token of each sequence, and BERT's second head."""
        first = Value("first tokens", self.setting.batch, x.cols, x.dtype)
        pooled = self._one(Linear("pooler", self.setting, first, x.cols, bias=True))
        if self.network.head == "pretraining":
            self._add(Linear("next sentence", self.setting, pooled, 2, bias=True))

    def _logits(self, x: Value) -> Value:
        """Products with the embedding's table, or with the head's own."""
        network = self.network
        x = self._spread(x, "logits")
        vocabulary = -(-network.vocabulary // self.tensor)
        table = Weight(
            "head.weight", (network.hidden, vocabulary), "embedding", shared=network.tied
        )
        dtype = self.setting.data if self.setting.dtype == "fp8" else ""
        biased = network.head_bias or network.head == "pretraining"
        linear = Linear(
            "logits", self.setting, x, vocabulary, biased, split="out", weight=table,
            dtype=dtype,
        )  # fmt: skip
        return self._one(linear)
