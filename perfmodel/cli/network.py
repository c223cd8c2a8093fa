"""`perfmodel network list | show | import`: whole transformers by name, as files, from config.json.

Any other first word is the name of a network: `perfmodel network llama-3-8b ...` is the command
`predict` of this group, where it has one.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from perfmodel.cli import completing, known, networkpredict, ranges, spellings
from perfmodel.cli.arguments import NetworkName
from perfmodel.cli.build import Group
from perfmodel.cli.output import Format, Output, chosen_format, emit, say, write
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks import huggingface, library, reading
from perfmodel.render import networkparts

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
    emit(networkparts.listed(entries), format, output)


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
        emit(networkparts.report(net, tokens, kv_dtype), format, output)


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
