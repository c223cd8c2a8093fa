"""`perfmodel trace FILE.py:NAME`: a PyTorch module, traced without a GPU and predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import click

from perfmodel.cli.arguments import Devices, Harness, TypeName
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown, say
from perfmodel.fieldoption import FieldOption
from perfmodel.graph import predict_graph
from perfmodel.render import traces
from perfmodel.tracing import FUSIONS


@dataclass(frozen=True)
class Asked:
    """What `trace` is asked for."""

    module: Annotated[str, FieldOption(None, "FILE.py:NAME", argument=True)]
    """FILE.py:NAME of a module, a function that returns one, or a class without arguments."""
    device: Devices
    """Devices of the predictions."""
    input: Annotated[list[str] | None, FieldOption(None, "NAME:TYPE[SIZES]", ("--input", "-i"))] = (
        None
    )
    """Name, type and shape of an input: ids:int64[1,2048]; repeats."""
    dtype: TypeName = "bf16"
    """Type of parameters."""
    fuse: Annotated[str, FieldOption(None, "HOW", single=True, names=FUSIONS)] = "none"
    """Fusion of operations into kernels; pointwise is a compiler's, engine an inference
    engine's."""
    backward: bool = False
    """Add the backward pass, with gradients of all parameters."""
    by: Annotated[str, FieldOption(None, "WHAT", single=True, names=tuple(traces.BY))] = "module"
    """What has a line."""
    harness: Harness = "kernel"
    """Harness whose overhead is included."""
    strict: bool = False
    """Exit code 1 if an operator is unknown."""


def trace(asked: Asked, shown: Shown) -> None:
    """Trace a PyTorch module on the meta device and predict its kernels.

    Runs the code of FILE.py, so trace only files you trust. None of the module's arithmetic is run:
    needs torch, no GPU, no weights.

    \b
    perfmodel trace llama.py:Model --input "ids:int64[1,2048]" -d h100-sxm
    perfmodel trace llama.py:Model -i "int64[1,2048]" -d a100 -d b200 --fuse engine --by kind
    perfmodel trace llama.py:Model -i "int64[8,2048]" -d h100-sxm --backward -o step.csv
    """
    from perfmodel.tracing import module as modules
    from perfmodel.tracing import trace as traced

    args, kwargs = modules.inputs(asked.input or [])
    model = modules.load(asked.module, asked.dtype)
    name = asked.module.rpartition(":")[2]
    record = traced(model, args, kwargs, fuse=asked.fuse, backward=asked.backward, name=name)
    predicted = [predict_graph(record.graph, d, harness=asked.harness) for d in asked.device]
    shown.emit(traces.report(record, predicted, asked.by))
    if asked.strict and record.unknown:
        say(f"not known: {', '.join(record.unknown)}")
        raise click.exceptions.Exit(1)


app = command(trace)
