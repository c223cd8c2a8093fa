"""`perfmodel schema [NAME]`: the JSON Schemas of file formats."""

from __future__ import annotations

from typing import Annotated

from perfmodel import formats
from perfmodel.cli.build import command
from perfmodel.cli.output import Output, Shown, write
from perfmodel.fieldoption import FieldOption
from perfmodel.formats import FORMATS
from perfmodel.render import Report
from perfmodel.render.report import text


def schema(
    name: Annotated[
        str | None,
        FieldOption(
            metavar="NAME",
            help="A file format. Without it, all formats are listed.",
            argument=True,
            names=FORMATS.keys,
        ),
    ] = None,
    draft: Annotated[
        str, FieldOption(metavar="DRAFT", help="Draft of JSON Schema: 2020-12 or 7.")
    ] = "2020-12",
    output: Output = None,
) -> None:
    """Print the JSON Schema of a file format, with which editors complete and check files.

    \b
    perfmodel schema
    perfmodel schema graph --output graph.schema.json
    perfmodel schema hardware --draft 7
    """
    if name is None:
        rows = [
            {"name": name, "about": item.about, "files": " ".join(item.files)}
            for name, item in FORMATS.items()
        ]
        columns = [text(header, header) for header in ("name", "about", "files")]
        Shown(None, output).emit(Report("formats", rows, columns))
        return
    write(iter([formats.text(name, draft)]), output)


app = command(schema)
