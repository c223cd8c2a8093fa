"""From the text of a spec to its block; each problem is one line, `file:line: message`."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from perfmodel import yamlfile, yamltable
from perfmodel.entries import Keys, Misfit, made
from perfmodel.errors import SpecError
from perfmodel.hardware import sources
from perfmodel.hardware.device import Device
from perfmodel.hardware.system import System

_B = TypeVar("_B", bound=Device | System)


def loads(text: str, where: str = "<text>") -> Device:
    """The device that `text` describes; raises `SpecError` for the first problem."""
    return _sound_block(Device, yamlfile.parse(text, where))


def _sound_block(kind: type[_B], document: yamlfile.Document) -> _B:
    """The block that a document describes. Raises `SpecError` for the first problem."""
    block, problems = _examination(kind, document)
    if block is None or problems:
        suffix = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SpecError(problems[0] + suffix)
    return block


def read(kind: type[_B], path: Path) -> _B:
    """The block that the file at `path` describes; raises `SpecError` for the first problem."""

    def block() -> _B:
        return _sound_block(kind, yamlfile.parse(yamlfile.read(path), str(path)))

    return yamltable.kept(path, kind.__name__, block)


def validate_file(path: str | Path) -> list[str]:
    """Every problem of a spec file, one line each; empty means valid."""
    return problems_of(Device, Path(path))


def problems_of(kind: type[_B], path: Path) -> list[str]:
    """Every problem of a file that describes a block with a slug, one line each."""
    try:
        document = yamlfile.parse(yamlfile.read(path), str(path))
        block, problems = _examination(kind, document)
    except SpecError as error:
        return [str(error)]
    slug = None if block is None else getattr(block, "slug", None)
    if slug is not None and slug != path.stem:
        message = f"slug {slug!r} is not the file's name {path.stem!r}"
        problems.append(document.error(("slug",), message))
    return problems


def _examination(kind: type[_B], document: yamlfile.Document) -> tuple[_B | None, list[str]]:
    """The block of a document (None if invalid), and its problems."""
    from perfmodel.hardware import physics, systemphysics  # only needed for what is not kept

    try:
        block: _B = made(kind, sources.completed(document.data))
    except Misfit as misfit:
        return None, [document.error(path, _line(path, fault)) for path, fault in misfit.faults]
    findings = physics.check(block) if isinstance(block, Device) else systemphysics.check(block)
    return block, [document.error(f.where, f.message) for f in findings if f.level == "error"]


def _line(path: Keys, fault: str) -> str:
    """A fault with its key."""
    if path and "spars" in str(path[-1]).lower():
        fault += "; sparse figures are refused, peaks are dense"
    return f"{'.'.join(map(str, path))}: {fault}" if path else fault
