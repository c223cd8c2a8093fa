"""Shared by `explain` and `map`: an algorithm by name or file, with its parameters as options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from perfmodel.algorithms.declaration import Case, Declaration
from perfmodel.cli import completing, ranges, spellings
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.fieldoption import FieldOption
from perfmodel.plaintext import quoted


@dataclass(frozen=True)
class Asked:
    """An algorithm that `explain` and `map` are asked for; its parameters are options too."""

    algorithm: Annotated[
        str | None, FieldOption(None, "ALGORITHM", argument=True, complete=completing.algorithms)
    ] = None
    """An algorithm's name or YAML declaration. Without it, all algorithms are listed."""
    dtype: Annotated[str, FieldOption(None, "TYPE", complete=completing.types)] = "bf16"
    """Type of the data: bf16, fp16, fp8, fp32 (perfmodel list types)."""

    def declaration(self) -> Declaration:
        """The algorithm. Raises `UnknownName`."""
        from perfmodel.algorithms import library

        return library.load(spellings.operator(str(self.algorithm), library.names()))


def case(declaration: Declaration, arguments: Sequence[str], dtype: str) -> Case:
    """The algorithm at sizes given as `--seq 8192 --head-dim=128`; flags take no value."""
    values: dict[str, Any] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            raise ProblemError(f"{quoted(word)} is no option; write --{word[:40]} with a size")
        flag, equals, text = word.partition("=")
        name = _parameter(declaration, flag)
        if isinstance(declaration.parameters[name], bool):
            values[name] = True
            continue
        if not equals:
            if not words:
                raise ProblemError(f"{flag} needs a size, such as {flag} 4096")
            text = words.pop(0)
        values[name] = ranges.number(text, flag)
    return declaration.at(dtype, **values)


def _parameter(declaration: Declaration, flag: str) -> str:
    name = flag.lstrip("-").replace("-", "_")
    if name not in declaration.parameters:
        names = [parameter.replace("_", "-") for parameter in declaration.parameters]
        raise UnknownName(f"option of {declaration.name}", name.replace("_", "-"), names)
    return name


def options(declaration: Declaration) -> str:
    """The parameters and their defaults, in one line."""
    texts = (f"--{n.replace('_', '-')} [{v}]" for n, v in declaration.parameters.items())
    return " ".join(texts)


def listing() -> str:
    """Every algorithm, with its description and its options."""
    from perfmodel.algorithms import library

    lines = []
    for name in library.names():
        declaration = library.load(name)
        lines.append(f"{name}: {declaration.about}\n    {options(declaration)}\n")
    return "".join(lines)


def groups(text: str | None) -> list[list[str]] | None:
    """Kernels as "scores+softmax,values": steps joined by +, kernels by commas."""
    if text is None:
        return None
    return [[step.strip() for step in kernel.split("+")] for kernel in text.split(",")]


def axes(text: str | None) -> list[str] | None:
    """Axes with commas, outermost first; "" is none."""
    if text is None:
        return None
    return [axis.strip() for axis in text.split(",") if axis.strip()]
