"""File formats by name, and a check for a file of any of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError, SpecError, UnknownName
from perfmodel.formats.draft07 import as_draft07

_TOP = re.compile(r"^(\w+)[ \t]*:", re.MULTILINE)
PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package."""


@dataclass(frozen=True)
class FileFormat:
    """One format."""

    about: str
    """What a file of the format describes."""
    schema: str
    """Its JSON Schema (draft 2020-12), a file of the package."""
    files: tuple[str, ...] = ()
    """Patterns of file names that editors should take for this format."""
    keys: frozenset[str] = frozenset()
    """Top-level keys that identify the format; empty where its files are not checked here."""
    reader: str = ""
    """`module:function` that reads such a file; it raises or lists errors."""


FORMATS = {
    "hardware": FileFormat(
        "a device's spec",
        "hardware/hardware_spec.schema.json",
        ("hardware_specs/*.yaml", "*.hardware.yaml"),
        frozenset({"slug", "compute", "memory"}),
        "perfmodel.formats.readers:hardware",
    ),
    "system": FileFormat(
        "devices joined by links",
        "hardware/system_spec.schema.json",
        ("hardware_specs/systems/*.yaml", "*.system.yaml"),
        frozenset({"slug", "levels"}),
        "perfmodel.hardware.systems:validate_file",
    ),
    "network": FileFormat(
        "a network of blocks",
        "networks/network.schema.json",
        ("*.network.yaml",),
        frozenset({"networks", "blocks"}),
        "perfmodel.networks.reading:read",
    ),
    "engine": FileFormat(
        "an inference engine",
        "serving/engine.schema.json",
        ("*.engine.yaml",),
        frozenset({"engine", "stack"}),
        "perfmodel.serving.engine:read",
    ),
    "library": FileFormat(
        "what a library's kernels do",
        "timing/libraries/library.schema.json",
        ("*.library.yaml",),
        frozenset({"kernels"}),
        "perfmodel.formats.readers:library",
    ),
    "algorithm": FileFormat(
        "an algorithm of axes, tensors and steps",
        "algorithms/declaration.schema.json",
        ("*.algorithm.yaml",),
        frozenset({"axes", "steps"}),
        "perfmodel.algorithms.declaration:read",
    ),
    "graph": FileFormat(
        "operators joined by tensors",
        "graph/graph.schema.json",
        ("*.graph.yaml",),
        frozenset({"nodes"}),
        "perfmodel.graph.declaration:read",
    ),
    "runs": FileFormat("rows of the measured-run table", "table/runs.schema.json"),
    "prediction": FileFormat("what commands write as JSON", "render/prediction.schema.json"),
}
"""The formats. A format that can be checked has `keys` and a `reader`."""


def find(name: str) -> FileFormat:
    """The format with this name. Raises `UnknownName`."""
    if name not in FORMATS:
        raise UnknownName("format of files", name, FORMATS)
    return FORMATS[name]


def schema(name: str, draft: str = "2020-12") -> dict[str, Any]:
    """The JSON Schema of a format, in draft "2020-12" or "7". Raises `UnknownName`."""
    if draft not in ("2020-12", "7"):
        raise UnknownName("draft of JSON Schema", draft, ("2020-12", "7"))
    path = PACKAGE / find(name).schema
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document if draft == "2020-12" else as_draft07(document)


def format_of(path: Path) -> str:
    """The name of a YAML file's format, by its top-level keys.

    Raises `SpecError` for a file that cannot be read, or whose keys match no format.
    """
    from perfmodel import yamlfile

    known = {name: item.keys for name, item in FORMATS.items() if item.keys}
    top = set(_TOP.findall(yamlfile.read(path)))
    # Take the format with the best match of keys: a damaged file still has its format.
    share = {name: len(keys & top) / len(keys) for name, keys in known.items()}
    best = max(share, key=lambda name: share[name])
    if not share[best]:
        formats = "; ".join(f"{name}: {', '.join(sorted(keys))}" for name, keys in known.items())
        raise SpecError(f"{path}: its keys match no known format ({formats})")
    return best


def check(path: Path, name: str | None = None) -> list[str]:
    """Errors in a file, one line each; by default for the format that its keys match.

    Raises `UnknownName` for an unknown format, or one without a reader.
    """
    checked = {key: item for key, item in FORMATS.items() if item.reader}
    if name is not None and name not in checked:
        raise UnknownName("format that can be checked", name, checked)
    try:
        module, _, function = FORMATS[name or format_of(path)].reader.partition(":")
        faults = getattr(import_module(module), function)(path)
    except PerfmodelError as error:
        return [str(error)]
    return faults if isinstance(faults, list) else []
