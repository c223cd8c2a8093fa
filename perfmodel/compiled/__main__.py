"""Generate the compiled YAML documents: `python -m perfmodel.compiled`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from perfmodel import yamltable
from perfmodel.hardware import catalogue, sources, systems, yamlfile
from perfmodel.yamltable import Kind

PACKAGE = Path(__file__).parents[1]
TABLES = (
    "timing", "collectives", "training", "serving", "networks/stacks", "networks/hosts",
    "hardware/sources",
)  # fmt: skip
"""Folders of the package whose tables are compiled, and single tables."""


def documents(kind: Kind) -> Iterator[Path]:
    """Every file of a kind that is compiled, in the order of their names."""
    places = {
        "devices": [catalogue.shipped()],
        "systems": [catalogue.shipped() / systems.FOLDER],
        "networks": [PACKAGE / "networks" / "presets"],
    }
    for folder in places.get(kind, ()):
        yield from sorted(folder.glob("*.yaml"))
    for name in TABLES if kind == "tables" else ():
        found = PACKAGE / name
        yield from sorted(found.rglob("*.yaml")) if found.is_dir() else [found.with_suffix(".yaml")]


def parse(kind: Kind, text: str) -> Any:
    """The document of a text as its reader parses it; readers of other kinds than tables are
    stricter."""
    if kind == "tables":
        return yamltable.parse(text)
    data = yamlfile.parse(text, kind).data
    return data if kind == "networks" else sources.completed(data)


def texts() -> Mapping[str, str]:
    """The text of every compiled file by its name."""
    return {f"{kind}.jsonl": "".join(_lines(kind)) for kind in get_args(Kind)}


def _lines(kind: Kind) -> Iterator[str]:
    for path in documents(kind):
        text = path.read_text(encoding="utf-8")
        name = f"{path.parent.name}/{path.name}"
        yield yamltable.line(text, name, parse(kind, text)) + "\n"


def main() -> None:
    """Write every compiled file."""
    for name, text in texts().items():
        (yamltable.FOLDER / name).write_text(text, encoding="utf-8")
        print(f"compiled {text.count(chr(10))} documents into {name}")


if __name__ == "__main__":
    main()
