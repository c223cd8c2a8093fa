"""File formats by name, and a check for a file of any of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from perfmodel import usercache
from perfmodel.entryschema import DRAFT
from perfmodel.errors import PerfmodelError, SpecError, UnknownName
from perfmodel.formats.draft07 import as_draft07
from perfmodel.replacing import replacing

_TOP = re.compile(r"^(\w+)[ \t]*:", re.MULTILINE)
PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package."""


@dataclass(frozen=True)
class FileFormat:
    """One format."""

    about: str
    """What a file of the format describes."""
    schema: str
    """`module:function` that derives its JSON Schema (draft 2020-12)."""
    files: tuple[str, ...] = ()
    """Patterns of file names that editors should take for this format."""
    keys: frozenset[str] = frozenset()
    """Top-level keys that identify the format; empty where its files are not checked here."""
    reader: str = ""
    """`module:function` that reads such a file; it raises or lists errors."""
    written: str = ""
    """The file of the package that shipped files name as their schema."""


FORMATS = {
    "hardware": FileFormat(
        "a device's spec",
        "perfmodel.formats.derived:hardware",
        ("hardware_specs/*.yaml", "*.hardware.yaml"),
        frozenset({"slug", "compute", "memory"}),
        "perfmodel.formats.readers:hardware",
        "hardware/hardware_spec.schema.json",
    ),
    "system": FileFormat(
        "devices joined by links",
        "perfmodel.formats.derived:system",
        ("hardware_specs/systems/*.yaml", "*.system.yaml"),
        frozenset({"slug", "levels"}),
        "perfmodel.hardware.systems:validate_file",
        "hardware/system_spec.schema.json",
    ),
    "network": FileFormat(
        "a network of blocks",
        "perfmodel.networks.schema:schema",
        ("*.network.yaml",),
        frozenset({"networks", "blocks"}),
        "perfmodel.networks.reading:read",
        "networks/network.schema.json",
    ),
    "engine": FileFormat(
        "an inference engine",
        "perfmodel.formats.derived:engine",
        ("*.engine.yaml",),
        frozenset({"engine", "stack"}),
        "perfmodel.serving.engine:read",
        "serving/engine.schema.json",
    ),
    "library": FileFormat(
        "what a library's kernels do",
        "perfmodel.timing.libraries.schema:schema",
        ("*.library.yaml",),
        frozenset({"kernels"}),
        "perfmodel.formats.readers:library",
        "timing/libraries/library.schema.json",
    ),
    "algorithm": FileFormat(
        "an algorithm of axes, tensors and steps",
        "perfmodel.algorithms.declarationform:schema",
        ("*.algorithm.yaml",),
        frozenset({"axes", "steps"}),
        "perfmodel.algorithms.declaration:read",
        "algorithms/declaration.schema.json",
    ),
    "graph": FileFormat(
        "operators joined by tensors",
        "perfmodel.graph.graphform:schema",
        ("*.graph.yaml",),
        frozenset({"nodes"}),
        "perfmodel.graph.declaration:read",
        "graph/graph.schema.json",
    ),
    "runs": FileFormat("rows of the measured-run table", "perfmodel.formats.derived:runs"),
    "prediction": FileFormat("what commands write as JSON", "perfmodel.formats.results:schema"),
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
    document = {"$schema": DRAFT, **_function(find(name).schema)()}
    return document if draft == "2020-12" else as_draft07(document)


def text(name: str, draft: str = "2020-12") -> str:
    """The JSON Schema of a format as a file has it. Raises as `schema`."""
    return json.dumps(schema(name, draft), indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the schemas where shipped files name them, for editors."""
    for name, item in FORMATS.items():
        if item.written:
            (PACKAGE / item.written).write_text(text(name), encoding="utf-8")


def cached(name: str) -> Path:
    """The schema of a format in the user's cache folder, for an editor. Raises `OSError`."""
    path = usercache.folder("schemas") / f"{name}.schema.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(text(name), encoding="utf-8")
    return path


def _function(place: str) -> Callable[..., Any]:
    """What stands for `module:function`."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


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
        faults = _function(FORMATS[name or format_of(path)].reader)(path)
    except PerfmodelError as error:
        return [str(error)]
    return faults if isinstance(faults, list) else []
