"""`perfmodel trace FILE.py:NAME`: a PyTorch module, traced without a GPU and predicted."""

from __future__ import annotations

from typing import Annotated

import typer

from perfmodel.cli import completing, known
from perfmodel.cli.arguments import Devices, Harness
from perfmodel.cli.output import Format, Output, chosen_format, emit, say

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def trace(
    module: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:NAME",
            help="FILE.py:NAME of a module, a function that returns one, or a class without "
            "arguments.",
        ),
    ],
    device: Devices,
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME:TYPE[SIZES]",
            help="Name, type and shape of an input: ids:int64[1,2048]; repeats.",
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Type of parameters.",
            autocompletion=completing.types,
        ),
    ] = "bf16",
    fuse: Annotated[
        str,
        typer.Option(
            "--fuse",
            metavar="HOW",
            help="Fusion of operations into kernels: none (eager), pointwise (as a compiler "
            "does), engine (as an inference engine does).",
        ),
    ] = "none",
    backward: Annotated[
        bool,
        typer.Option("--backward", help="Add the backward pass, with gradients of all parameters."),
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="WHAT", help="One line for each module, kind, operator or node."
        ),
    ] = "module",
    harness: Harness = "kernel",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 if an operator is unknown.")
    ] = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """Trace a PyTorch module on the meta device and predict its kernels.

    Runs the code of FILE.py, so trace only files you trust. None of the module's arithmetic is run:
    needs torch, no GPU, no weights.

    \b
    perfmodel trace llama.py:Model --input "ids:int64[1,2048]" -d h100-sxm
    perfmodel trace llama.py:Model -i "int64[1,2048]" -d a100 -d b200 --fuse engine --by kind
    perfmodel trace llama.py:Model -i "int64[8,2048]" -d h100-sxm --backward -o step.csv
    """
    chosen_format(format, output)
    from perfmodel.graph import predict_graph
    from perfmodel.render import traces
    from perfmodel.tracing import FUSIONS
    from perfmodel.tracing import module as modules
    from perfmodel.tracing import trace as traced

    known.named("line of a trace", by, traces.BY)
    known.named("fusion", fuse, FUSIONS)
    harness = known.harness(harness)
    devices = known.devices(device)
    args, kwargs = modules.inputs(input or [])
    model = modules.load(module, dtype)
    name = module.rpartition(":")[2]
    record = traced(model, args, kwargs, fuse=fuse, backward=backward, name=name)
    predicted = [predict_graph(record.graph, each, harness=harness) for each in devices]
    emit(traces.report(record, predicted, by), format, output)
    if strict and record.unknown:
        say(f"not known: {', '.join(record.unknown)}")
        raise typer.Exit(1)
