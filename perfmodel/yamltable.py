"""Shipped YAML tables, read from their compiled form.

Parsing YAML takes longer than a prediction. So each shipped document is also a Python module under
`perfmodel/compiled`, written by `python -m perfmodel.compiled`. The module has the document and a
hash of the YAML text. A file with any other text (a user's, or one edited since) is parsed, so the
result always matches the file.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import source_hash
from pathlib import Path
from typing import Any

PACKAGE = "perfmodel.compiled"
"""Package of the compiled modules."""


def read(path: Path) -> Any:
    """The document of a YAML file. Raises `OSError`, or `ValueError` for invalid YAML."""
    text = path.read_text(encoding="utf-8")
    found = compiled(path, text)
    return parse(text) if found is None else found


def parse(text: str) -> Any:
    """The document of a YAML text. Raises `ValueError` for invalid YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def compiled(path: Path, text: str) -> Any:
    """The compiled document of a file with this name and exactly this text; None where there is
    none.

    Callers share it and must not change it.
    """
    try:
        module = import_module(f"{PACKAGE}.{module_name(path)}")
    except ModuleNotFoundError:
        return None
    return module.DOCUMENT if hash_of(text) == module.HASH else None


def module_name(path: Path) -> str:
    """Module name of a file: the names of its folder and of itself."""
    return re.sub("[^a-z0-9]", "_", f"{path.absolute().parent.name}_{path.stem}".lower())


def hash_of(text: str) -> str:
    """A 64-bit hash of a text."""
    return source_hash(text.encode()).hex()
