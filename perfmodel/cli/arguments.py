"""Arguments and options that several commands share, each under one name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perfmodel.cli import completing

NetworkName = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="A network's name (perfmodel network list) or YAML file.",
        autocompletion=completing.networks,
    ),
]


PLAN = "Plan"
"""Heading of the options that split a network over devices."""


def _parallel(name: str, short: str, meaning: str) -> Any:
    """A number of devices; `name` is the option, `short` its other spelling."""
    return Annotated[
        str,
        typer.Option(
            f"--{name}",
            f"--{short}",
            metavar="N",
            help=f"{name.capitalize()} parallelism: {meaning}.",
            rich_help_panel=PLAN,
        ),
    ]


Tensor = _parallel("tensor", "tp", "devices that split each layer")
Pipeline = _parallel("pipeline", "pp", "stages that the layers are split into")
Context = _parallel("context", "cp", "devices that split each sequence")
Expert = _parallel("expert", "ep", "devices that split the experts")
Data = _parallel("data", "dp", "copies of the network")
