"""Checks of file formats that take more than reading the file."""

from __future__ import annotations

from pathlib import Path

from perfmodel import yamlfile
from perfmodel.errors import SpecError
from perfmodel.hardware import load, validate_file
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.libraries import files


def hardware(path: Path) -> list[str]:
    """Every error in a device's spec, and in the facts by which it differs from its
    architecture."""
    return validate_file(path) or _own_facts(path)


def _own_facts(path: Path) -> list[str]:
    """Errors in the facts by which a device differs from its architecture."""
    try:
        architecture_of(load(path.absolute()))
    except SpecError as error:
        document = yamlfile.parse(yamlfile.read(path), str(path))
        return [f"{path}:{document.line(('architecture_facts',))}: {error}"]
    return []


def library(path: Path) -> None:
    """Read a library's facts together with the shipped ones, like a package's file."""
    known = [item for item in files.load().values() if item.name != path.stem]
    files.facts_of([files.document(path, path.stem)], files.entries(known))
