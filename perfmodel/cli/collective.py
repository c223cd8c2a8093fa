"""`perfmodel collective OP`: an exchange among devices; `collective wall`: roofs of links."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from perfmodel.algorithms.sizes import check_cases
from perfmodel.cli import completing, known, ranges
from perfmodel.cli.leftout import possible
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.collectives import OPS, Collective, predict_collective
from perfmodel.collectives.collectivetime import libraries
from perfmodel.collectives.wall import Layer, wall
from perfmodel.errors import ProblemError
from perfmodel.hardware import System, systems
from perfmodel.plaintext import quoted
from perfmodel.render import collectives as render

# Limit on cases: what is printed in a few seconds.
MOST = 50_000

Systems = Annotated[
    list[str],
    typer.Option(
        "--system",
        "-s",
        metavar="NAME",
        help="Systems, with commas or repeated: slugs, aliases, spec files, or devices "
        "(perfmodel list systems).",
        autocompletion=completing.systems,
    ),
]
Bytes = Annotated[
    str,
    typer.Option(
        "--bytes",
        "-b",
        metavar="BYTES",
        help="Bytes of the full tensor; for an all-to-all, of one rank's buffer: a size, "
        "list (1k,1M) or range (1k:1G:x4).",
    ),
]
Ranks = Annotated[
    str,
    typer.Option(
        "--ranks",
        "-n",
        metavar="RANKS",
        help="Number of devices: a size, list (8,64) or range (8:64:x2).",
    ),
]
PerNode = Annotated[
    str | None,
    typer.Option(
        "--ranks-per-node", metavar="RANKS", help="Devices in one node [default: full nodes]."
    ),
]
Library = Annotated[
    str,
    typer.Option(
        "--library",
        metavar="NAME",
        help=f"Library: {', '.join(libraries())}.",
        autocompletion=completing.of_list(libraries),
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="Type of the elements.",
        autocompletion=completing.types,
    ),
]
Terms = Annotated[bool, typer.Option("--terms", help="Show every term (JSON and CSV always do).")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def collective() -> None:
    """Predict exchanges among devices, with the library's choice of algorithm and protocol.

    \b
    perfmodel collective all-reduce --system dgx-h100 --bytes 1k:1G:x4 --ranks 8,64
    perfmodel collective all-to-all -s dgx-h100,dgx-b200 -b 64M -n 64 --terms
    perfmodel collective wall --system dgx-h100 --hidden 8k
    """


def _command(op: str) -> Callable[..., None]:
    def command(
        system: Systems,
        bytes_: Bytes = "1k:1G:x16",
        ranks: Ranks = "2" if op == "send-receive" else "8",
        ranks_per_node: PerNode = None,
        library: Library = "nccl",
        dtype: Dtype = "bf16",
        terms: Terms = False,
        format: Format = None,
        output: Output = None,
    ) -> None:
        chosen_format(format, output)
        library = known.named("library of collectives", library, libraries())
        sizes = ranges.read(bytes_, "--bytes")
        counts = ranges.read(ranks, "--ranks")
        node_size = None if ranks_per_node is None else _size(ranks_per_node, "--ranks-per-node")
        machines = _systems(system)
        check_cases(len(machines) * len(sizes) * len(counts), MOST, "narrow a range")

        def rows_of(machine: System, count: int) -> list[dict[str, Any]]:
            problem = Collective(op, sizes.array, count, node_size, dtype)
            answers = predict_collective(problem, machine, library=library)
            return [answers.one(i).as_dict() for i in range(len(answers))]

        parts = possible(
            (f"{machine.slug}, {count:,} ranks", partial(rows_of, machine, count))
            for machine in machines
            for count in counts.array.tolist()
        )
        rows = [row for part in parts for row in part]
        emit(render.report(rows, terms=terms), format, output)

    ranks = "2" if op == "send-receive" else "8:64:x2"
    command.__doc__ = (
        f"Predict {op} over sizes and numbers of ranks.\n\n\b\n"
        f"perfmodel collective {op} -s dgx-h100 --bytes 1k:1G:x4 --ranks {ranks}\n"
        f"perfmodel collective {op} -s dgx-h100,dgx-b200 -b 64M -n {ranks} --terms"
    )
    return command


def _size(text: str, option: str) -> int:
    """The single value of an option. Raises `ProblemError` for a list."""
    values = ranges.read(text, option)
    if len(values) != 1:
        raise ProblemError(f"{option} takes one number, not {quoted(text)}; choose one")
    return int(values.array[0])


def _systems(texts: list[str]) -> list[System]:
    """The systems of all names; each text may be a list."""
    return [systems.load(name) for text in texts for name in known.names(text)]


for _op in OPS:
    app.command(_op)(_command(_op))


@app.command("wall")
def wall_(
    system: Systems,
    hidden: Annotated[
        str, typer.Option("--hidden", metavar="SIZE", help="Hidden size of the network.")
    ] = "8k",
    heads: Annotated[str, typer.Option("--heads", metavar="HEADS", help="Query heads.")] = "64",
    kv_heads: Annotated[
        str, typer.Option("--kv-heads", metavar="HEADS", help="Key-value heads.")
    ] = "8",
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type of products, activations and weights.",
            autocompletion=completing.types,
        ),
    ] = "bf16",
    gradient_dtype: Annotated[
        str,
        typer.Option(
            "--gradient-dtype",
            metavar="TYPE",
            help="Type of gradients.",
            autocompletion=completing.types,
        ),
    ] = "bf16",
    dispatch_dtype: Annotated[
        str,
        typer.Option(
            "--dispatch-dtype",
            metavar="TYPE",
            help="Type in which tokens are sent to experts.",
            autocompletion=completing.types,
        ),
    ] = "bf16",
    format: Format = None,
    output: Output = None,
) -> None:
    """Show how far each parallelism scales before communication takes longer than computing.

    \b
    perfmodel collective wall --system dgx-h100 --hidden 8k
    perfmodel collective wall -s dgx-h100 --hidden 16k --heads 128 --dtype fp8
    """
    chosen_format(format, output)
    layer = Layer(
        _size(hidden, "--hidden"),
        _size(heads, "--heads"),
        _size(kv_heads, "--kv-heads"),
        dtype,
        gradient_dtype,
        dispatch_dtype,
    )
    rows = [
        {"system": machine.slug, **ridge.as_dict()}
        for machine in _systems(system)
        for ridge in wall(machine, layer)
    ]
    emit(
        render.wall(rows, f"hidden {layer.hidden}, {layer.dtype}, documented rates"), format, output
    )
