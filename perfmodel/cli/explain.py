"""`perfmodel explain ALGORITHM`: the derivation of a schedule's cost, formulas first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from perfmodel.cli import completing, declared, known
from perfmodel.cli.arguments import OneDevice
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.output import to_stdout, write
from perfmodel.errors import OutputError, UnknownName, needs
from perfmodel.fieldoption import FieldOption

FORMATS = ("text", "markdown", "latex", "json")
_SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".json": "json"}


@dataclass(frozen=True)
class Asked(declared.Asked):
    """What `explain` is asked for."""

    schedule: Annotated[str, FieldOption(None, "NAME", complete=completing.explained)] = "tiled"
    """Schedule: auto, tiled, tiled-1 or standard."""
    device: OneDevice | None = None
    """Add the numbers of this device (perfmodel hardware list)."""
    fuse: Annotated[str | None, FieldOption(None, "STEPS")] = None
    """Fusion of steps into kernels: + joins steps, commas separate kernels:
    scores+softmax,values."""
    grid: Annotated[str | None, FieldOption(None, "AXES")] = None
    """Axes that are split over thread blocks, with commas."""
    stream: Annotated[str | None, FieldOption(None, "AXES")] = None
    """Axes that each block streams over, with commas, outermost first."""
    format: Annotated[
        str | None,
        FieldOption(
            None,
            "FORMAT",
            ("--format", "-f"),
            complete=completing.of_list("perfmodel.cli.explain:FORMATS"),
        ),
    ] = None
    """Output format: text (or table), markdown, latex or json."""
    output: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o"))] = None
    """Write to FILE; its suffix sets the format: .txt, .md, .tex or .json."""


def explain(context: click.Context, asked: Asked) -> None:
    """Derive traffic, memory, best tiles and bounds of an algorithm from its axes.

    The algorithm's own parameters are options too; run explain without an algorithm to list them.

    \b
    perfmodel explain attention --schedule tiled --device h100-sxm --seq 8192 --head-dim 128
    perfmodel explain mlp --fuse up+activate,down --format latex --output mlp.tex
    perfmodel explain mine.yaml --grid i --stream j
    """
    if asked.algorithm is None:
        to_stdout(iter([declared.listing()]))
        return
    form = _format(asked.format, asked.output)
    needs("sympy", "explain")
    from perfmodel.hardware import load
    from perfmodel.napkin import explain as derivation

    declaration = asked.declaration()
    answer = derivation.explain(
        declared.case(declaration, context.args, asked.dtype),
        schedule=asked.schedule,
        device=load(known.one("--device", asked.device)) if asked.device else None,
        about=declaration.about,
        source=declaration.source,
        extents=declaration.extents,
        fuse=declared.groups(asked.fuse),
        grid=declared.axes(asked.grid),
        stream=declared.axes(asked.stream),
    )
    write(_renderer(form)(answer), asked.output)


def _format(name: str | None, output: str | None) -> str:
    if name is not None:
        name = "text" if name == "table" else name
        if name not in FORMATS:
            raise UnknownName("format", name, FORMATS)
        return name
    if output in (None, "-"):
        return "text"
    suffix = Path(str(output)).suffix
    if suffix not in _SUFFIXES:
        raise OutputError(
            f"{output}: unknown suffix {suffix!r}; use {', '.join(_SUFFIXES)}, or add --format"
        )
    return _SUFFIXES[suffix]


def _renderer(name: str) -> Callable[[Any], Iterator[str]]:
    from perfmodel.render import explain_latex, explain_text

    return {
        "text": explain_text.text,
        "markdown": explain_text.markdown,
        "latex": explain_latex.render,
        "json": explain_text.json_text,
    }[name]


app = command(explain, settings=PASS_ON)
