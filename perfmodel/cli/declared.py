"""Shared by `explain` and `map`: an algorithm by name or file, with its parameters as options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from perfmodel.algorithms import library
from perfmodel.algorithms.declaration import Case, Declaration
from perfmodel.cli import ranges, spellings
from perfmodel.cli.arguments import TypeName
from perfmodel.cli.build import Declared, further
from perfmodel.fieldoption import FieldOption


def _load(name: str) -> Declaration:
    """The algorithm of that name, spelling or file. Raises `UnknownName`."""
    return library.load(spellings.operator(name, library.names()))


@dataclass(frozen=True)
class Asked:
    """An algorithm that `explain` and `map` are asked for; its parameters are options too."""

    algorithm: Annotated[
        Declaration | None,
        FieldOption(
            None,
            "ALGORITHM",
            argument=True,
            read=_load,
            names="perfmodel.algorithms.library:names",
        ),
    ] = None
    """An algorithm's name or YAML declaration. Without it, all algorithms are listed."""
    dtype: TypeName = "bf16"
    """Type of the data: bf16, fp16, fp8, fp32 (perfmodel list types)."""


def case(declaration: Declaration, words: Sequence[str], dtype: str) -> Case:
    """The algorithm at sizes given as `--seq 8192 --head-dim=128`; flags take no value."""
    options = [
        Declared(name, bool if isinstance(value, bool) else str, None, FieldOption(None, "SIZE"))
        for name, value in declaration.parameters.items()
    ]
    values = {
        name: text if text is True else ranges.number(text, f"--{name.replace('_', '-')}")
        for name, text in further(options, words).items()
    }
    return declaration.at(dtype, **values)


def listing() -> str:
    """Every algorithm, with its description and its options and their defaults."""
    lines = []
    for name in library.names():
        each = library.load(name)
        options = (f"--{n.replace('_', '-')} [{v}]" for n, v in each.parameters.items())
        lines.append(f"{name}: {each.about}\n    {' '.join(options)}\n")
    return "".join(lines)
