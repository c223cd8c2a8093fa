"""Arguments that several commands share, each under one name."""

from __future__ import annotations

from typing import Annotated

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
