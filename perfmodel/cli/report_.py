"""`perfmodel report RESULTS...`: one self-contained HTML page of results."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from perfmodel.cli.build import command
from perfmodel.cli.output import write
from perfmodel.errors import OutputError, ProblemError
from perfmodel.fieldoption import FieldOption

if TYPE_CHECKING:
    from perfmodel.render.html.results import Results


_NAMED = 3  # limit on files named in a title
_MOST_ASKED = 400  # limit on predictions that are repeated for the sliders: a few seconds


@dataclass(frozen=True)
class Page:
    """What `report` writes."""

    results: Annotated[list[str] | None, FieldOption(None, "RESULTS...", argument=True)] = None
    """JSON or CSV files of commands that predict or compare: predict, network, train, infer,
    collective, profile, compare --output and others."""
    output: Annotated[str, FieldOption(None, "FILE", ("--output", "-o"))] = "report.html"
    """Page to write (.html)."""
    title: Annotated[str | None, FieldOption(None, "TEXT")] = None
    """Title of the page [default: what was predicted]."""
    explorer: bool = False
    """Add all GPUs over a grid of sizes, with sliders."""
    network: Annotated[
        list[str] | None,
        FieldOption(None, "NAME", ("--network",), names="perfmodel.networks.library:names"),
    ] = None
    """Add a network as served to the explorer: prompts, batches, devices and formats; repeatable
    (half a minute to three minutes each)."""
    no_sliders: bool = False
    """Leave out what-ifs of predictions; --explorer has its own sliders."""


def report(asked: Page) -> None:
    """Write results as one HTML page that works offline: charts, terms, tables, what-ifs.

    \b
    perfmodel predict attention -d h100-sxm -d a100 --seq 1k:16k:x2 -o predictions.json
    perfmodel report predictions.json -o report.html
    perfmodel network llama-3-8b -d h100-sxm --pass train -o network.json
    perfmodel report network.json -o network.html
    perfmodel report --explorer -o explorer.html
    perfmodel report --network llama-3-8b --network gpt-oss-120b -o explorer.html
    """
    files = asked.results or []
    networks = asked.network or []
    explorer = asked.explorer or bool(networks)
    if not files and not explorer:
        raise ProblemError("nothing to show: name files of results, or add --explorer")
    if asked.output != "-" and not asked.output.lower().endswith((".html", ".htm")):
        raise OutputError(f"{asked.output}: a page is written as .html; change the name")
    from perfmodel.render.html import page, readers
    from perfmodel.render.html.results import Results
    from perfmodel.render.html.summary import headline

    contents = Results()
    for path in files:
        readers.read(path, contents)
    if not asked.no_sliders:
        _ask_again(contents)
    grid = None
    if explorer:
        from perfmodel.analysis.explorer import explored

        grid = explored(networks=networks)
    heading = asked.title or headline(contents) or _title(files)
    html = page.render(contents, title=heading, command=_command(files, asked), explorer=grid)
    write(iter([html]), asked.output)


def _title(files: list[str]) -> str:
    """A title made of the names of the files."""
    if not files:
        return "Explorer of GPUs"
    names = [Path(path).name for path in files]
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Results: {', '.join(names[:_NAMED])}{rest}"


def _ask_again(page: Results) -> None:
    """Add what-ifs to predictions that have none."""
    from perfmodel.analysis.sensitivities import sensitivities

    effects = page.effects
    cases = [case for case in page.cases if case["key"] not in effects]
    page.asked = [row for _, row in sensitivities(cases[:_MOST_ASKED])]


def _command(files: list[str], asked: Page) -> str:
    """The command that generates this page."""
    flags = ["--title", asked.title] if asked.title else []
    flags += ["--explorer"] if asked.explorer else []
    flags += [word for name in asked.network or [] for word in ("--network", name)]
    return shlex.join(["perfmodel", "report", *files, *flags, "-o", asked.output])


app = command(report)
