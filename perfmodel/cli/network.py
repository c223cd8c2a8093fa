"""`perfmodel network list | show | import`: whole transformers by name, as files, from config.json.

Any other first word is the name of a network: `perfmodel network llama-3-8b ...` is the command
`predict` of this group, where it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from perfmodel.cli import completing, known, networkpredict, ranges, spellings
from perfmodel.cli.arguments import NetworkName
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
    return [one.network.family for one in library.entries()]


class Networks(TyperGroup):
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


app = typer.Typer(cls=Networks, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


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
    found = library.entries()
    if family is not None:
        families = dict.fromkeys(one.network.family for one in found)
        wanted = {known.named("family", name, families) for name in known.names(family)}
        found = [one for one in found if one.network.family in wanted]
    emit(Report("networks", [_listed(one) for one in found], _LISTED), format, output)


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
    found = spellings.network(name)
    tokens = _tokens(seq, found.positions)
    if yaml:
        write(iter([reading.text(found)]), output)
    else:
        emit(_shown(found, tokens, kv_dtype), format, output)


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
    found = huggingface.read(file, family, name)
    write(iter([reading.text(found.network)]), output)
    for note in found.notes:
        say(f"note: {note}")


def _tokens(said: str | None, positions: int) -> int:
    """Tokens of a sequence: as given, else the learned positions, at most 4k."""
    if said is None:
        return min(positions or _SEQ, _SEQ)
    values = ranges.read(said, "--seq")
    if len(values) != 1:
        raise ProblemError(f"--seq takes one size here, not {len(values):,}")
    if 0 < positions < int(values.array[0]):
        raise ProblemError(f"--seq {said}: there are {positions:,} learned positions; give fewer")
    return int(values.array[0])


def _listed(entry: Entry) -> Row:
    """A network as a row."""
    found = entry.network
    attention = found.blocks[-1].attention
    return {
        "name": found.name,
        "family": found.family,
        "layers": found.layers,
        "hidden": found.hidden,
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "vocabulary": found.vocabulary,
        "parameters": parameter_count(found),
        "active": active_count(found),
        "aliases": list(entry.aliases),
    }


def _shown(found: Network, tokens: int, kv_dtype: str) -> Report:
    """Parameters by part as rows; values of the whole network in `head` and the notes."""
    total = parameter_count(found)
    rows = [
        {
            "part": part.name,
            "parameters": part.parameters,
            "share": part.parameters / total,
            "active": part.active,
        }
        for part in parts(found)
    ]
    head = {
        "network": reading.plain(found),
        "layers": found.layers,
        "parameters": total,
        "active": active_count(found),
        "active_without_input_embedding": active_count(found, input_embedding=False),
        "kv_dtype": kv_dtype,
        "kv_bytes_per_token": cache_bytes_per_token(found, kv_dtype),
        "seq": tokens,
        "kv_bytes": cache_bytes(found, tokens, kv_dtype),
        "training_flops_per_token": {
            convention: flops_per_token(found, tokens, convention) for convention in CONVENTIONS
        },
    }
    title = f"{found.name}: {found.about}" if found.about else found.name
    return Report("parts", rows, _PARTS, title, head, list(_notes(found, head)))


def _notes(found: Network, head: Row) -> Iterator[str]:
    """Facts about the whole network, one line each."""
    yield f"width {found.hidden:,}, vocabulary {found.vocabulary:,}{_extras(found)}"
    for stack, blocks in (("encoder ", found.encoder), ("", found.blocks)):
        yield from _layers(stack, blocks)
    published = found.sizes.get("parameters")
    yield f"parameters: {head['parameters']:,}" + _published(published)
    if head["active"] != head["parameters"] or "active" in found.sizes:
        without = head["active_without_input_embedding"]
        yield (
            f"active: {head['active']:,} with the input embedding, {without:,} without"
            + _published(found.sizes.get("active"))
        )
    if head["kv_bytes"]:
        each, whole = head["kv_bytes_per_token"], head["kv_bytes"]
        yield (
            f"cache: {binary(each)} a token in {head['kv_dtype']}, {binary(whole)} of "
            f"{head['seq']:,} tokens"
        )
    flops = head["training_flops_per_token"]
    said = ", ".join(
        f"{si(flops[name], 'FLOP')} ({name})" for name in ("megatron", "causal", "palm")
    )
    yield f"training, a token of {head['seq']:,}: {said}"
    if found.source:
        yield f"source: {found.source}"


def _published(said: int | None) -> str:
    return f" (published: {said:,})" if said is not None else ""


def _extras(found: Network) -> str:
    """Additional tables and heads."""
    return "".join(
        said
        for said, has in (
            (f", {found.positions:,} learned positions", found.positions),
            (", head tied to the embedding", found.tied),
            (f", head: {found.head}", found.head != "language"),
        )
        if has
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


def _attention(of: SelfAttention) -> str:
    kv = f", {of.kv_heads} of keys and values" if of.kv_heads != of.heads else ""
    said = f"{of.heads} heads of {of.head_size}{kv}"
    if of.latent is not None:
        said = (
            f"{of.heads} heads, scores {of.score_width} and values {of.value_width} wide, keys and "
            f"values from a latent of {of.latent.kv_rank}"
        )
    nearest = of.window or of.chunk
    near = f", {'window' if of.window else 'chunks'} of {nearest:,}" if nearest else ""
    return f"{said}{near}{'' if of.causal else ', both ways'}"


def _mlp(of: Mlp) -> str:
    kind = f"{'gated ' if of.gated else ''}{of.activation}"
    if not of.experts:
        return f"inner {of.inner:,}, {kind}"
    beside = f", a shared one of {of.shared_inner:,}" if of.shared_inner else ""
    return f"{of.chosen} of {of.experts} experts of {of.inner:,}{beside}, {kind}"


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
