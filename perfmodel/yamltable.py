"""Tables that come with the package as YAML, read from their compiled form.

Parsing YAML takes longer than a prediction. So each shipped document is also a Python module under
`perfmodel/compiled`, written by `python -m perfmodel.compiled`: the document, and a hash of the
text that it was made from. A file with any other text, a user's or one that was edited since, is
parsed as ever: what is read is always what the file says.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import source_hash
from pathlib import Path
from typing import Any

PACKAGE = "perfmodel.compiled"
"""Where the modules are."""


def read(path: Path) -> Any:
    """The document of a YAML file; raises `OSError`, or `ValueError` where it is no YAML text."""
    text = path.read_text(encoding="utf-8")
    found = compiled(path, text)
    return parse(text) if found is None else found


def parse(text: str) -> Any:
    """The document that a text says; raises `ValueError` where it is no YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def compiled(path: Path, text: str) -> Any:
    """What was compiled from a file of this name with this very text; None where nothing was.

    Callers share it: do not change it.
    """
    try:
        module = import_module(f"{PACKAGE}.{module_name(path)}")
    except ModuleNotFoundError:
        return None
    return module.DOCUMENT if hash_of(text) == module.HASH else None


def module_name(path: Path) -> str:
    """The module of a file: the names of its folder and of itself."""
    return re.sub("[^a-z0-9]", "_", f"{path.absolute().parent.name}_{path.stem}".lower())


def hash_of(text: str) -> str:
    """64 bits that tell one text from another."""
    return source_hash(text.encode()).hex()
