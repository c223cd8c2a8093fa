"""`perfmodel explain ALGORITHM`: the derivation of a schedule's cost, formulas first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from perfmodel.cli import declared, spellings
from perfmodel.cli.arguments import OneDevice
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.output import to_stdout, write
from perfmodel.errors import OutputError, needs
from perfmodel.fieldoption import FieldOption

FORMATS = ("text", "markdown", "latex", "json")
_SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".json": "json"}


def _axes(text: str) -> list[str]:
    """Axes with commas, outermost first; "" is none."""
    return [axis.strip() for axis in text.split(",") if axis.strip()]


def _kernels(text: str) -> list[list[str]]:
    """Kernels as "scores+softmax,values": steps joined by +, kernels by commas."""
    return [[step.strip() for step in kernel.split("+")] for kernel in text.split(",")]


def _format(name: str) -> str:
    return spellings.named("format", "text" if name == "table" else name, FORMATS)


@dataclass(frozen=True)
class Asked(declared.Asked):
    """What `explain` is asked for."""

    schedule: Annotated[
        str, FieldOption(None, "NAME", names="perfmodel.napkin.explain:SCHEDULES")
    ] = "tiled"
    """Schedule: auto, tiled, tiled-1 or standard."""
    device: OneDevice | None = None
    """Add the numbers of this device (perfmodel hardware list)."""
    fuse: Annotated[Sequence[list[str]] | None, FieldOption(None, "STEPS", read=_kernels)] = None
    """Fusion of steps into kernels: + joins steps, commas separate kernels:
    scores+softmax,values."""
    grid: Annotated[Sequence[str] | None, FieldOption(None, "AXES", read=_axes)] = None
    """Axes that are split over thread blocks, with commas."""
    stream: Annotated[Sequence[str] | None, FieldOption(None, "AXES", read=_axes)] = None
    """Axes that each block streams over, with commas, outermost first."""
    format: Annotated[
        str | None,
        FieldOption(
            None, "FORMAT", ("--format", "-f"), read=_format, names="perfmodel.cli.explain:FORMATS"
        ),
    ] = None
    """Output format: text (or table), markdown, latex or json."""
    output: Annotated[str | None, FieldOption(None, "FILE", ("--output", "-o"))] = None
    """Write to FILE; its suffix sets the format: .txt, .md, .tex or .json."""

    @property
    def form(self) -> str:
        """The named format, else the one of the file's suffix, else text."""
        suffix = Path(self.output or "-").suffix
        if self.format is not None or self.output in (None, "-"):
            return self.format or "text"
        if suffix not in _SUFFIXES:
            names = ", ".join(_SUFFIXES)
            raise OutputError(
                f"{self.output}: unknown suffix {suffix!r}; use {names}, or add --format"
            )
        return _SUFFIXES[suffix]


def explain(context: click.Context, asked: Asked) -> None:
    """Derive traffic, memory, best tiles and bounds of an algorithm from its axes.

    The algorithm's own parameters are options too; run explain without an algorithm to list them.

    \b
    perfmodel explain attention --schedule tiled --device h100-sxm --seq 8192 --head-dim 128
    perfmodel explain mlp --fuse up+activate,down --format latex --output mlp.tex
    perfmodel explain mine.yaml --grid i --stream j
    """
    declaration = asked.algorithm
    if declaration is None:
        to_stdout(iter([declared.listing()]))
        return
    form = asked.form
    needs("sympy", "explain")
    from perfmodel.napkin import explain as derivation
    from perfmodel.render import explanation

    answer = derivation.explain(
        declared.case(declaration, context.args, asked.dtype),
        schedule=asked.schedule,
        device=asked.device,
        about=declaration.about,
        source=declaration.source,
        extents=declaration.extents,
        fuse=asked.fuse,
        grid=asked.grid,
        stream=asked.stream,
    )
    renderers = {
        "text": explanation.as_text,
        "markdown": explanation.as_markdown,
        "latex": explanation.as_latex,
        "json": explanation.as_json,
    }
    write(renderers[form](answer), asked.output)


app = command(explain, settings=PASS_ON)
