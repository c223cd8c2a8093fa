"""Options of commands on one network: its name, its formats of weights, its context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from perfmodel.cli import spellings
from perfmodel.compression import naming
from perfmodel.compression.scheme import Scheme
from perfmodel.fieldoption import PLAN, FieldOption
from perfmodel.hardware import System, systems
from perfmodel.networks.network import Network

NETWORK = FieldOption(
    metavar="NETWORK",
    help="A network's name (perfmodel network list) or YAML file.",
    argument=True,
    read=spellings.network,
    names="perfmodel.networks.library:names",
)
NamedNetwork = Annotated[Network, NETWORK]
WeightFormat = Annotated[
    Scheme | None,
    FieldOption(
        metavar="NAME",
        single=True,
        read=naming.scheme,
        names="perfmodel.compression.quantised:names",
    ),
]
Context = Annotated[int, FieldOption(None, "TOKENS", ("--seq", "--context"), single=True)]


def _systems(texts: Sequence[str]) -> list[System]:
    """The systems of all names; each text may be a list."""
    return [systems.load(name) for text in texts for name in spellings.names(text)]


SYSTEM = FieldOption(
    metavar="NAMES",
    spellings=("--system", "-s"),
    read=_systems,
    repeats=True,
    names="perfmodel.hardware.systems:names",
)
SomeSystems = Annotated[Sequence[System], SYSTEM]
"""Systems, or none; the docstring of its field says of what."""
OneSystem = Annotated[
    System | None,
    FieldOption(PLAN, "NAME", single=True, read=systems.load, names=SYSTEM.names),
]
"""A system, or none; the docstring of its field says what it joins."""
Zip = Annotated[
    bool,
    FieldOption(
        PLAN,
        spellings=("--zip",),
        help="Pair the lists element by element (-d h100,b200 --tensor 4,2), not each with each; "
        "a list of one value repeats.",
    ),
]
