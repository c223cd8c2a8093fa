"""`perfmodel explain ALGORITHM`: the derivation of a schedule's cost, formulas first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import click

from perfmodel.cli import declared
from perfmodel.cli.arguments import OneDevice
from perfmodel.cli.build import PASS_ON, command
from perfmodel.cli.output import PANEL, Shown, to_stdout, write
from perfmodel.errors import needs
from perfmodel.fieldoption import FieldOption

FORMATS = ("text", "markdown", "latex", "json")


def _axes(text: str) -> list[str]:
    """Axes with commas, outermost first; "" is none."""
    return [axis.strip() for axis in text.split(",") if axis.strip()]


def _kernels(text: str) -> list[list[str]]:
    """Kernels as "scores+softmax,values": steps joined by +, kernels by commas."""
    return [[step.strip() for step in kernel.split("+")] for kernel in text.split(",")]


def _format(name: str) -> str:
    return "text" if name == "table" else name


def _formats() -> Sequence[str]:
    return FORMATS


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


@dataclass(frozen=True)
class Derivation(Shown):
    """How a derivation is written."""

    format: Annotated[
        str | None, FieldOption(PANEL, "FORMAT", ("--format", "-f"), read=_format, names=_formats)
    ] = None
    """Output format: text (or table), markdown, latex or json."""
    output: Annotated[str | None, FieldOption(PANEL, "FILE", ("--output", "-o"))] = None
    """Write to FILE; its suffix sets the format: .txt, .md, .tex or .json."""
    forms = FORMATS
    suffixes = MappingProxyType(
        {".txt": "text", ".md": "markdown", ".tex": "latex", ".json": "json"}
    )


def explain(context: click.Context, asked: Asked, shown: Derivation) -> None:
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
    write(renderers[shown.form](answer), shown.output)


app = command(explain, settings=PASS_ON)
