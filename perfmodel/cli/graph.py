"""`perfmodel graph NAME`: operators joined by tensors, on one or several devices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from perfmodel.cli import completing, known, ranges
from perfmodel.cli.arguments import Devices, Harness
from perfmodel.cli.output import Format, Output, chosen_format, emit
from perfmodel.errors import ProblemError
from perfmodel.plaintext import quoted

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        "-s",
        metavar="NAME=SIZE",
        help="Sizes of the graph, with commas or repeated: batch=4,seq=2k.",
    ),
]


@app.command("graph")
def graph_(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A graph's name (perfmodel list graphs) or YAML file.",
            autocompletion=completing.graphs,
        ),
    ],
    device: Devices,
    size: Sizes = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type of the data: bf16, fp16, fp8, fp32 (perfmodel list types).",
            autocompletion=completing.types,
        ),
    ] = None,
    harness: Harness = "kernel",
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="One line for each node or operator.")
    ] = "node",
    format: Format = None,
    output: Output = None,
) -> None:
    """Predict a graph of operators: time by node or operator, gaps, host, live memory.

    \b
    perfmodel graph decoder-layer -d h100-sxm --size batch=4 --size seq=2k
    perfmodel graph decoder-layer -d a100 -d mi300x -s seq=1 -s past=8k -s batch=16 --by operator
    perfmodel graph mine.yaml -d h100-sxm --harness cuda_graph --format json
    """
    form = chosen_format(format, output)
    from perfmodel.graph import load, predict_graph
    from perfmodel.render import graphs

    known.named("line of a graph", by, graphs.BY)
    harness = known.harness(harness)
    declaration = load(graph)
    instance = declaration.at(sizes(size, declaration.sizes), dtype)
    devices = known.devices(device)
    answers = [predict_graph(instance, target, harness=harness) for target in devices]
    emit(graphs.data(answers) if form == "json" else graphs.report(answers, by), format, output)


def sizes(texts: Iterable[str] | None, names: Mapping[str, object]) -> dict[str, float]:
    """Sizes from texts such as batch=4 or batch=4,seq=8k."""
    values: dict[str, float] = {}
    for pair in (pair for text in texts or () for pair in known.names(text)):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not (name and equals and text):
            raise ProblemError(f"--size {quoted(pair)} is not NAME=SIZE; write batch=4")
        name = known.named("size of the graph", name.replace("-", "_"), names)
        if name in values:
            raise ProblemError(f"--size gives {name} twice; choose one")
        values[name] = _number(text, name)
    return values


def _number(text: str, name: str) -> float:
    """A size such as 8k, 0, or a share such as 0.25."""
    if "." not in text:
        values = ranges.read(text, name, least=0)
        if len(values) != 1:
            raise ProblemError(f"{name} takes one size here, not {len(values):,}")
        return int(values.array[0])
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise ProblemError(f"{name} {quoted(text)} is no number; write 4096, 8k or 0.25")
    return share
