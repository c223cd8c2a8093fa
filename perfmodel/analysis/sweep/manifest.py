"""Reads and checks the manifest of a sweep's folder, and the columns of its parts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perfmodel.analysis.sweep.plan import SCHEMA_VERSION
from perfmodel.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
# Columns that every part has, beside those of its grid.
_NUMBERS = ("case", "time_us", "low_us", "high_us")
_TEXTS = ("schedule", "implementation", "limiter", "reason")


class _Block(BaseModel):
    """A part of the manifest: plain JSON of the given types; further keys are ignored."""

    model_config = ConfigDict(strict=True, defer_build=True)


class _Span(_Block):
    """A long range of sizes as start, stop (included) and step."""

    start: int
    stop: int
    step: int = Field(ge=1)


class _Grid(_Block):
    """The grid; see `perfmodel.analysis.sweep.Grid`."""

    schedules: list[str] = Field(min_length=1)
    kinds: dict[str, list[str | bool | None]]
    sizes: dict[str, list[int] | _Span]
    follows: dict[str, str]


class _Device(_Block):
    """A device by name, and a digest of its spec."""

    slug: str
    hash: str


class _Manifest(_Block):
    """The whole file, as `Sweep.manifest` makes it."""

    schema_version: Literal[1]
    operator: str
    grid: _Grid
    devices: list[_Device] = Field(min_length=1)
    chunk: int = Field(ge=1)
    points: int = Field(ge=1)
    parts: int = Field(ge=1)


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a sweep's folder; raises `TableError` if it is missing or invalid."""
    path = Path(folder) / MANIFEST
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TableError(f"{folder} holds no sweep: there is no {MANIFEST}") from None
    except RecursionError:
        raise _error(path, "nested too deeply") from None
    except (OSError, ValueError) as error:
        raise _error(path, str(error)) from None
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        raise TableError(f"{path}: a manifest of another version; this code reads {SCHEMA_VERSION}")
    try:
        manifest = _Manifest.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _error(path, f"{place}: {first['msg'].lower()}") from None
    slugs = [device.slug for device in manifest.devices]
    points, rest = divmod(manifest.points, len(slugs))
    if rest or manifest.parts != len(slugs) * math.ceil(points / manifest.chunk):
        raise _error(path, "points, chunk and parts do not belong together")
    if len(set(slugs)) < len(slugs):
        raise _error(path, "a device stands there twice")
    return document


def _error(path: Path, fault: str) -> TableError:
    return TableError(f"{path}: not a sound manifest ({' '.join(fault.split())}); sweep again")


def check_columns(schema: pa.Schema, manifest: dict[str, Any], path: Path) -> None:
    """Raise `TableError` unless a part's columns are those that the manifest's sweep has."""
    grid = manifest["grid"]
    kinds = {name: _kind(values) for name, values in grid["kinds"].items()}
    columns = dict.fromkeys((*grid["sizes"], *grid["follows"], *_NUMBERS), "number")
    columns |= dict.fromkeys(_TEXTS, "text") | kinds
    actual = stored_kinds(schema)
    for name, kind in columns.items():
        if actual.get(name) != kind:
            state = f"is {actual[name]}" if actual.get(name) else "is missing"
            raise TableError(
                f"{path}: not a part of this sweep: column {name!r} {state}; delete it and run the "
                "same sweep again"
            )


def _kind(values: list[Any]) -> str:
    return "truth" if all(isinstance(value, bool) for value in values) else "text"


def stored_kinds(schema: pa.Schema) -> dict[str, str]:
    """The kind of every column of a part: "number", "text" or "truth"; "" for any other."""
    import pyarrow as pa

    def kind(dtype: pa.DataType) -> str:
        if pa.types.is_dictionary(dtype):
            return "text" if pa.types.is_string(dtype.value_type) else ""
        if pa.types.is_boolean(dtype):
            return "truth"
        return "number" if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) else ""

    return {field.name: kind(field.type) for field in schema}
