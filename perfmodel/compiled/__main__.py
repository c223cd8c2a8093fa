"""Compile the shipped YAML documents anew: `python -m perfmodel.compiled`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.hardware import catalogue, yamlfile

HERE = Path(__file__).parent
PACKAGE = HERE.parent
TABLES = ("timing", "collectives", "training", "serving", "networks/stacks", "networks/hosts")
"""Folders of the package whose tables are compiled, and single tables."""
PRESETS = PACKAGE / "networks" / "presets"
_WIDTH = 90
_TEXT = '''"""Compiled from {path} by `python -m perfmodel.compiled`."""

HASH = "{hash}"
DOCUMENT = {document}
'''


def documents() -> Iterator[tuple[Path, Callable[[str], Any]]]:
    """Every file that is compiled, with what reads its text.

    Specs and networks have a stricter reader.
    """
    for name in TABLES:
        found = PACKAGE / name
        paths = sorted(found.rglob("*.yaml")) if found.is_dir() else [found.with_suffix(".yaml")]
        for path in paths:
            yield path, yamltable.parse
    for folder in (catalogue.shipped(), PRESETS):
        for path in sorted(folder.rglob("*.yaml")):
            yield path, lambda text: yamlfile.parse(text, "spec").data


def modules() -> dict[str, str]:
    """The text of every module by its file's name; raises `ValueError` where two have one name."""
    found: dict[str, str] = {}
    for path, parse in documents():
        text = path.read_text(encoding="utf-8")
        name = f"{yamltable.module_name(path)}.py"
        if name in found:
            raise ValueError(f"{path}: another file is compiled as {name} already; rename one")
        found[name] = _TEXT.format(
            path=f"{path.parent.name}/{path.name}",
            hash=yamltable.hash_of(text),
            document=literal(parse(text)),
        )
    return found


def literal(value: Any, indent: int = 0) -> str:
    """Plain data as Python reads it: on one line where that fits, else an item a line."""
    flat = repr(value)
    if len(flat) + indent <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + 1
    if isinstance(value, dict):
        items = [f"{key!r}: {literal(item, inner)}" for key, item in value.items()]
    else:
        items = [literal(item, inner) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, *(f"{' ' * inner}{item}," for item in items), " " * indent + last])


def main() -> None:
    """Write all modules and remove those whose file is gone."""
    texts = modules()
    for old in HERE.glob("*.py"):
        if old.name not in texts and not old.name.startswith("__"):
            old.unlink()
    for name, text in texts.items():
        (HERE / name).write_text(text, encoding="utf-8")
    print(f"compiled {len(texts)} documents into {HERE}")


if __name__ == "__main__":
    main()
