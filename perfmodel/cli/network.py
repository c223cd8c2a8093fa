"""`perfmodel network list | show | import`: whole transformers by name, as files, from config.json.

Any other first word is the name of a network: `perfmodel network llama-3-8b ...` is the command
`predict` of this group, where it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

import typer

from perfmodel.cli import completing, known, networkpredict, ranges, spellings
from perfmodel.cli.arguments import NetworkName
from perfmodel.cli.build import Group
from perfmodel.cli.output import Format, Output, chosen_format, emit, say, write
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks import huggingface, library, reading
from perfmodel.networks.expand import active_count, parameter_count
from perfmodel.networks.flops import CONVENTIONS, flops_per_token
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.reading import Entry
from perfmodel.networks.summary import cache_bytes, cache_bytes_per_token, parts
from perfmodel.render import Column, Report
from perfmodel.render.report import Row, integer, percent, text
from perfmodel.units import binary, si

PREDICT = "predict"
"""The command that runs when a network is named first."""
_SEQ = 4096


def _families() -> list[str]:
    return [entry.network.family for entry in library.entries()]


class Networks(Group):
    """A group that takes a network's name in place of a command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """`perfmodel network NAME ...` runs `perfmodel network predict NAME ...`."""
        if args and args[0] not in self.commands:
            if PREDICT not in self.commands:
                raise UnknownName(
                    "command", args[0], self.commands, f"(see '{ctx.command_path} --help')"
                )
            args = [PREDICT, *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=cast(Any, Networks), no_args_is_help=True, rich_markup_mode=None, add_completion=False
)


@app.callback()
def network() -> None:
    """List, show and import transformers: published ones by name, yours as YAML or config.json.

    A network's name and a device predict a pass over it (perfmodel network predict --help).

    \b
        perfmodel network llama-3-8b -d h100-sxm --batch 8 --seq 4k --pass train --by class
        perfmodel network list --family llama
        perfmodel network show llama-3-8b
        perfmodel network import config.json -o my.yaml
    """


app.command(PREDICT)(networkpredict.predict)


@app.command("list")
def list_(
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="NAMES",
            help="Only networks of these families, with commas: llama,qwen3.",
            autocompletion=completing.of_list(_families),
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """List the networks with a name.

    \b
        perfmodel network list --family llama,mixtral
        perfmodel network list --format csv --output networks.csv
    """
    chosen_format(format, output)
    entries = library.entries()
    if family is not None:
        families = dict.fromkeys(entry.network.family for entry in entries)
        choices = {known.named("family", name, families) for name in known.names(family)}
        entries = [entry for entry in entries if entry.network.family in choices]
    emit(Report("networks", [_row(entry) for entry in entries], _LISTED), format, output)


@app.command()
def show(
    name: NetworkName,
    seq: Annotated[
        str | None,
        typer.Option(
            "--seq",
            metavar="TOKENS",
            help="Tokens of a sequence [default: 4k, or the network's learned positions if fewer].",
        ),
    ] = None,
    kv_dtype: Annotated[
        str,
        typer.Option(
            "--kv-dtype",
            metavar="TYPE",
            help="Type of cached keys and values: bf16, fp16, fp8, fp32 (perfmodel list types).",
            autocompletion=completing.types,
        ),
    ] = "bf16",
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Write the network as a YAML file to start from.")
    ] = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """Show a network: its layers, parameters by part, bytes of a cached token, FLOPs of training.

    \b
        perfmodel network show llama-3-8b
        perfmodel network show deepseek-v3 --seq 8k --kv-dtype fp8
        perfmodel network show mixtral-8x7b --yaml -o my.yaml
    """
    if not yaml:
        chosen_format(format, output)
    elif format is not None:
        raise ProblemError("--yaml is a format of its own; drop --format")
    net = spellings.network(name)
    tokens = _tokens(seq, net.positions)
    if yaml:
        write(iter([reading.text(net)]), output)
    else:
        emit(_report(net, tokens, kv_dtype), format, output)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A config.json of Hugging Face.")],
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Family whose code it follows: llama, qwen3, ... [default: by its model_type].",
            autocompletion=completing.of_list(_families),
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="Name of the network [default: by the file]."),
    ] = "",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="YAML file to write.")
    ] = None,
) -> None:
    """Write the network of a config.json as YAML; notes list assumptions and what was left out.

    \b
        perfmodel network import config.json > my.yaml
        perfmodel network import config.json --family llama --name mine -o my.yaml
    """
    config = huggingface.read(file, family, name)
    write(iter([reading.text(config.network)]), output)
    for note in config.notes:
        say(f"note: {note}")


def _tokens(seq: str | None, positions: int) -> int:
    """Tokens of a sequence: as given, else the learned positions, at most 4k."""
    if seq is None:
        return min(positions or _SEQ, _SEQ)
    values = ranges.read(seq, "--seq")
    if len(values) != 1:
        raise ProblemError(f"--seq takes one size here, not {len(values):,}")
    if 0 < positions < int(values.array[0]):
        raise ProblemError(f"--seq {seq}: there are {positions:,} learned positions; give fewer")
    return int(values.array[0])


def _row(entry: Entry) -> Row:
    """A network as a row."""
    net = entry.network
    attention = net.blocks[-1].attention
    return {
        "name": net.name,
        "family": net.family,
        "layers": net.layers,
        "hidden": net.hidden,
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "vocabulary": net.vocabulary,
        "parameters": parameter_count(net),
        "active": active_count(net),
        "aliases": list(entry.aliases),
    }


def _report(net: Network, tokens: int, kv_dtype: str) -> Report:
    """Parameters by part as rows; values of the whole network in `head` and the notes."""
    total = parameter_count(net)
    rows = [
        {
            "part": part.name,
            "parameters": part.parameters,
            "share": part.parameters / total,
            "active": part.active,
        }
        for part in parts(net)
    ]
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
    yield f"width {net.hidden:,}, vocabulary {net.vocabulary:,}{_extras(net)}"
    for stack, blocks in (("encoder ", net.encoder), ("", net.blocks)):
        yield from _layers(stack, blocks)
    published = net.sizes.get("parameters")
    yield f"parameters: {head['parameters']:,}" + _published(published)
    if head["active"] != head["parameters"] or "active" in net.sizes:
        core = head["active_without_input_embedding"]
        yield (
            f"active: {head['active']:,} with the input embedding, {core:,} without"
            + _published(net.sizes.get("active"))
        )
    if head["kv_bytes"]:
        per_token, total = head["kv_bytes_per_token"], head["kv_bytes"]
        yield (
            f"cache: {binary(per_token)} a token in {head['kv_dtype']}, {binary(total)} of "
            f"{head['seq']:,} tokens"
        )
    flops = head["training_flops_per_token"]
    rates = ", ".join(
        f"{si(flops[name], 'FLOP')} ({name})" for name in ("megatron", "causal", "palm")
    )
    yield f"training, a token of {head['seq']:,}: {rates}"
    if net.source:
        yield f"source: {net.source}"


def _published(count: int | None) -> str:
    return f" (published: {count:,})" if count is not None else ""


def _extras(net: Network) -> str:
    """Additional tables and heads."""
    return "".join(
        phrase
        for phrase, holds in (
            (f", {net.positions:,} learned positions", net.positions),
            (", head tied to the embedding", net.tied),
            (f", head: {net.head}", net.head != "language"),
        )
        if holds
    )


def _layers(stack: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Each kind of layer once, with its number of layers."""
    counts: dict[tuple[SelfAttention, Mlp], int] = {}
    for block in blocks:
        kind = (block.attention, block.mlp)
        counts[kind] = counts.get(kind, 0) + block.repeat
    for (attention, mlp), count in counts.items():
        noun = "layer" if count == 1 else "layers"
        yield f"{count} {stack}{noun}: {_attention(attention)}; {_mlp(mlp)}"


def _attention(kind: SelfAttention) -> str:
    kv = f", {kind.kv_heads} of keys and values" if kind.kv_heads != kind.heads else ""
    heads = f"{kind.heads} heads of {kind.head_size}{kv}"
    if kind.latent is not None:
        heads = (
            f"{kind.heads} heads, scores {kind.score_width} and values {kind.value_width} wide, "
            f"keys and values from a latent of {kind.latent.kv_rank}"
        )
    reach = kind.window or kind.chunk
    span = f", {'window' if kind.window else 'chunks'} of {reach:,}" if reach else ""
    return f"{heads}{span}{'' if kind.causal else ', both ways'}"


def _mlp(mlp: Mlp) -> str:
    kind = f"{'gated ' if mlp.gated else ''}{mlp.activation}"
    if not mlp.experts:
        return f"inner {mlp.inner:,}, {kind}"
    shared = f", a shared one of {mlp.shared_inner:,}" if mlp.shared_inner else ""
    return f"{mlp.chosen} of {mlp.experts} experts of {mlp.inner:,}{shared}, {kind}"


def _count(header: str, key: str, rank: int) -> Column:
    return Column(header, lambda row: row[key], lambda value: si(value, "").rstrip(), rank=rank)


_LISTED = (
    text("network", "name"),
    text("family", "family", rank=1),
    integer("layers", "layers", rank=2),
    integer("hidden", "hidden", rank=3),
    integer("heads", "heads", rank=4),
    integer("kv heads", "kv_heads", rank=5),
    integer("vocabulary", "vocabulary", rank=6),
    _count("parameters", "parameters", 0),
    _count("active", "active", 1),
    Column("aliases", lambda row: ", ".join(row["aliases"]), number=False, fold=16, rank=7),
)
_PARTS = (
    text("part", "part"),
    Column("parameters", lambda row: row["parameters"], lambda value: f"{value:,}"),
    percent("share", "share"),
    Column("active", lambda row: row["active"], lambda value: f"{value:,}"),
)
