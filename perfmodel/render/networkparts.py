"""Tables of networks themselves: a line for each network, and the parts of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from perfmodel.columns import row_of
from perfmodel.networks import reading
from perfmodel.networks.expand import active_count, parameter_count
from perfmodel.networks.flops import CONVENTIONS, flops_per_token
from perfmodel.networks.network import Mlp, Network, SelfAttention
from perfmodel.networks.reading import Entry
from perfmodel.networks.summary import cache_bytes, cache_bytes_per_token, parts
from perfmodel.render.report import Column, Report, Row, text
from perfmodel.units import binary, si

_LISTED = (
    text("network", "name"),
    text("family", "family", rank=1),
    Column("layers", "layers", rank=2),
    Column("hidden", "hidden", rank=3),
    Column("heads", "heads", of=lambda net: net.blocks[-1].attention.heads, rank=4),
    Column("kv heads", "kv_heads", of=lambda net: net.blocks[-1].attention.kv_heads, rank=5),
    Column("vocabulary", "vocabulary", rank=6),
    Column("parameters", "parameters", "count", of=parameter_count),
    Column("active", "active", "count", of=active_count, rank=1),
)
_ALIASES = Column(
    "aliases", lambda row: ", ".join(row["aliases"]), number=False, fold=16, rank=7
)  # fmt: skip
_PARTS = (
    text("part", "part"),
    Column("parameters", "parameters", "{:,}"),
    Column("share", "share"),
    Column("active", "active", "{:,}"),
)


def listed(entries: Iterable[Entry]) -> Report:
    """One line for each network."""
    rows = [{**row_of(entry.network, _LISTED), "aliases": list(entry.aliases)} for entry in entries]
    return Report("networks", rows, (*_LISTED, _ALIASES))


def report(net: Network, tokens: int, kv_dtype: str) -> Report:
    """One line for each part; values of the whole network in `head` and the notes."""
    total = parameter_count(net)
    rows = [
        {"part": part.name, "parameters": part.parameters, "share": part.parameters / total,
         "active": part.active}
        for part in parts(net)
    ]  # fmt: skip
    head = {
        "network": reading.plain(net),
        "layers": net.layers,
        "parameters": total,
        "active": active_count(net),
        "active_without_input_embedding": active_count(net, input_embedding=False),
        "kv_dtype": kv_dtype,
        "kv_bytes_per_token": cache_bytes_per_token(net, kv_dtype),
        "seq": tokens,
        "kv_bytes": cache_bytes(net, tokens, kv_dtype),
        "training_flops_per_token": {
            convention: flops_per_token(net, tokens, convention) for convention in CONVENTIONS
        },
    }
    title = f"{net.name}: {net.about}" if net.about else net.name
    return Report("parts", rows, _PARTS, title, head, list(_notes(net, head)))


def _notes(net: Network, head: Row) -> Iterator[str]:
    """Facts about the whole network, one line each."""
    positions = f", {net.positions:,} learned positions" if net.positions else ""
    tied = ", head tied to the embedding" if net.tied else ""
    kind = f", head: {net.head}" if net.head != "language" else ""
    yield f"width {net.hidden:,}, vocabulary {net.vocabulary:,}{positions}{tied}{kind}"
    for stack, blocks in (("encoder ", net.encoder), ("", net.blocks)):
        layers: Counter[tuple[SelfAttention, Mlp]] = Counter()
        for block in blocks:
            layers[block.attention, block.mlp] += block.repeat
        for (attention, mlp), number in layers.items():
            noun = "layer" if number == 1 else "layers"
            yield f"{number} {stack}{noun}: {_attention(attention)}; {_mlp(mlp)}"
    yield f"parameters: {head['parameters']:,}{_published(net, 'parameters')}"
    if head["active"] != head["parameters"] or "active" in net.sizes:
        core = head["active_without_input_embedding"]
        yield (
            f"active: {head['active']:,} with the input embedding, {core:,} without"
            f"{_published(net, 'active')}"
        )
    if net.tower is not None:
        yield (
            f"encoder of images ({net.tower.family}): {net.tower.layers} layers of width "
            f"{net.tower.hidden:,}, {parameter_count(net.tower):,} parameters"
        )
    if head["kv_bytes"]:
        yield (
            f"cache: {binary(head['kv_bytes_per_token'])} a token in {head['kv_dtype']}, "
            f"{binary(head['kv_bytes'])} of {head['seq']:,} tokens"
        )
    flops = head["training_flops_per_token"]
    rates = (f"{si(flops[name], 'FLOP')} ({name})" for name in ("megatron", "causal", "palm"))
    yield f"training, a token of {head['seq']:,}: {', '.join(rates)}"
    if net.source:
        yield f"source: {net.source}"


def _published(net: Network, size: str) -> str:
    number = net.sizes.get(size)
    return f" (published: {number:,})" if number is not None else ""


def _attention(kind: SelfAttention) -> str:
    kv = f", {kind.kv_heads} of keys and values" if kind.kv_heads != kind.heads else ""
    heads = f"{kind.heads} heads of {kind.head_size}{kv}"
    if kind.latent is not None:
        heads = (
            f"{kind.heads} heads, scores {kind.score_width} and values {kind.value_width} wide, "
            f"keys and values from a latent of {kind.latent.kv_rank}"
        )
    if kind.state is not None:
        return f"{heads}, a state of {kind.state.key_size} x {kind.head_size} each"
    span = f", {'window' if kind.window else 'chunks'} of {kind.span:,}" if kind.span else ""
    if kind.indexer is not None:
        span += f", of which {kind.indexer.chosen:,} keys are chosen"
    return f"{heads}{span}{'' if kind.causal else ', both ways'}"


def _mlp(mlp: Mlp) -> str:
    kind = f"{'gated ' if mlp.gated else ''}{mlp.activation}"
    if not mlp.experts:
        return f"inner {mlp.inner:,}, {kind}"
    shared = f", a shared one of {mlp.shared_inner:,}" if mlp.shared_inner else ""
    return f"{mlp.chosen} of {mlp.experts} experts of {mlp.inner:,}{shared}, {kind}"
