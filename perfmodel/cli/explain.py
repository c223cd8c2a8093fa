"""`perfmodel explain ALGORITHM`: the derivation of a schedule's cost, formulas first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel.cli import completing, declared, known, spellings
from perfmodel.cli.output import to_stdout, write
from perfmodel.errors import OutputError, UnknownName, needs

FORMATS = ("text", "markdown", "latex", "json")
_SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".json": "json"}

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(context_settings=declared.PASS_ON)
def explain(
    context: typer.Context,
    algorithm: declared.Algorithm = None,
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help="Schedule: auto, tiled, tiled-1 or standard.",
            autocompletion=completing.explained,
        ),
    ] = "tiled",
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "--gpu",
            "-d",
            metavar="NAME",
            help="Add the numbers of this device (perfmodel hardware list).",
            autocompletion=completing.devices,
        ),
    ] = None,
    dtype: declared.Dtype = "bf16",
    fuse: Annotated[
        str | None,
        typer.Option(
            "--fuse",
            metavar="STEPS",
            help="Fusion of steps into kernels: + joins steps, commas separate kernels: "
            "scores+softmax,values.",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid", metavar="AXES", help="Axes that are split over thread blocks, with commas."
        ),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            "--stream",
            metavar="AXES",
            help="Axes that each block streams over, with commas, outermost first.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="Output format: text (or table), markdown, latex or json.",
            autocompletion=completing.of_list(lambda: FORMATS),
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to FILE; its suffix sets the format: .txt, .md, .tex or .json.",
        ),
    ] = None,
) -> None:
    """Derive traffic, memory, best tiles and bounds of an algorithm from its axes.

    The algorithm's own parameters are options too; run explain without an algorithm to list them.

    \b
    perfmodel explain attention --schedule tiled --device h100-sxm --seq 8192 --head-dim 128
    perfmodel explain mlp --fuse up+activate,down --format latex --output mlp.tex
    perfmodel explain mine.yaml --grid i --stream j
    """
    if algorithm is None:
        to_stdout(iter([declared.listing()]))
        return
    form = _format(format, output)
    needs("sympy", "explain")
    from perfmodel.algorithms import library
    from perfmodel.hardware import load
    from perfmodel.napkin import explain as derivation

    declaration = library.load(spellings.operator(algorithm, library.names()))
    case = declared.case(declaration, context.args, dtype)
    answer = derivation.explain(
        case,
        schedule=schedule,
        device=load(known.one("--device", device)) if device else None,
        about=declaration.about,
        source=declaration.source,
        extents=declaration.extents,
        fuse=declared.groups(fuse),
        grid=declared.axes(grid),
        stream=declared.axes(stream),
    )
    write(_renderer(form)(answer), output)


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
