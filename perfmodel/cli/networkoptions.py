"""Options of commands on one network: its name, its formats of weights, its context."""

from __future__ import annotations

from typing import Annotated

from perfmodel.cli import completing, spellings
from perfmodel.compression import naming
from perfmodel.compression.scheme import Scheme
from perfmodel.fieldoption import FieldOption
from perfmodel.networks.network import Network

NETWORK = FieldOption(
    metavar="NETWORK",
    help="A network's name (perfmodel network list) or YAML file.",
    argument=True,
    read=spellings.network,
    complete=completing.networks,
)
NamedNetwork = Annotated[Network, NETWORK]
WeightFormat = Annotated[
    Scheme | None,
    FieldOption(metavar="NAME", single=True, read=naming.scheme, complete=completing.schemes),
]
Context = Annotated[int, FieldOption(None, "TOKENS", ("--seq", "--context"), single=True)]
