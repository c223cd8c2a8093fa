"""Notebooks are run here: `python tests/notebooks.py [FILE...]` (`make docs`) keeps their outputs.

A forge and the site show them without running them, so they carry what they print and draw.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
SECONDS = 120
"""The longest that a cell may take, on a machine with other work."""


def notebooks() -> list[Path]:
    """Every notebook."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook as it stands."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Any:
    """A notebook with the outputs that it has now, of this checkout. Its file is left alone."""
    book = read(path)
    with_us = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    client = NotebookClient(
        book, timeout=SECONDS, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    client.execute(cwd=FOLDER, env={**os.environ, "PYTHONPATH": with_us})
    return book


def printed(book: Any) -> list[str]:
    """What each cell of code prints or shows as text; of a picture only that it is there."""
    return ["".join(map(_text, cell.outputs)) for cell in book.cells if cell.cell_type == "code"]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if "image/png" in output.data or "image/svg+xml" in output.data:
        return "(picture)\n"
    return f"{output.data['text/plain']}\n"


def main(names: list[str]) -> None:
    """Run the named notebooks, or all, and write their outputs in place.

    Of all, only those are written whose text has changed: the bytes of a picture may differ where
    nothing that it shows does.
    """
    for path in map(Path, names) if names else notebooks():
        book = executed(path)
        if names or printed(book) != printed(read(path)):
            nbformat.write(book, path)
            print(f"updated {path.name}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
