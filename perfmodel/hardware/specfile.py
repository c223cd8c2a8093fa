"""From the text of a spec to its block; each problem is one line, `file:line: message`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from perfmodel import yamltable
from perfmodel.errors import SpecError
from perfmodel.hardware import physics, sources, yamlfile
from perfmodel.hardware.block import Block
from perfmodel.hardware.device import Device
from perfmodel.hardware.physics import Finding

_B = TypeVar("_B", bound=Block)


def loads(text: str, where: str = "<text>") -> Device:
    """The device that `text` describes; raises `SpecError` for the first problem."""
    return _sound_block(Device, yamlfile.parse(text, where), physics.check)


def _sound_block(
    kind: type[_B], document: yamlfile.Document, check: Callable[[_B], list[Finding]]
) -> _B:
    """The block that a document describes. Raises `SpecError` for the first problem."""
    block, problems = _examination(kind, document, check)
    if block is None or problems:
        suffix = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SpecError(problems[0] + suffix)
    return block


def read(kind: type[_B], path: Path, check: Callable[[_B], list[Finding]]) -> _B:
    """The block that the file at `path` describes; raises `SpecError` for the first problem.

    A shipped file is checked before it is kept, then no more.
    """
    text = yamlfile.read(path)
    if not yamltable.is_shipped(path):
        return _sound_block(kind, yamlfile.parse(text, str(path)), check)

    def decoded() -> dict[str, Any]:
        document = yamlfile.parse(text, str(path))
        _sound_block(kind, document, check)
        return sources.completed(document.data)

    return kind.trusted(yamltable.kept(path, text + sources.text(), decoded))


def validate_file(path: str | Path) -> list[str]:
    """Every problem of a spec file, one line each; empty means valid."""
    return problems_of(Device, Path(path), physics.check)


def problems_of(kind: type[_B], path: Path, check: Callable[[_B], list[Finding]]) -> list[str]:
    """Every problem of a file that describes a block with a slug, one line each."""
    try:
        document = yamlfile.parse(yamlfile.read(path), str(path))
        block, problems = _examination(kind, document, check)
    except SpecError as error:
        return [str(error)]
    slug = None if block is None else getattr(block, "slug", None)
    if slug is not None and slug != path.stem:
        message = f"slug {slug!r} is not the file's name {path.stem!r}"
        problems.append(document.error(("slug",), message))
    return problems


def _examination(
    kind: type[_B], document: yamlfile.Document, check: Callable[[_B], list[Finding]]
) -> tuple[_B | None, list[str]]:
    """The block of a document (None if invalid), and its problems."""
    from pydantic import ValidationError

    try:
        block = kind.model_validate(sources.completed(document.data))
    except ValidationError as error:
        # By line, but a misspelt key comes before the missing key that it was meant to be.
        errors = sorted(
            error.errors(), key=lambda e: (e["type"] == "missing", document.line(e["loc"]))
        )
        return None, list(dict.fromkeys(_one_line(document, problem) for problem in errors))
    findings = check(block)
    return block, [document.error(f.where, f.message) for f in findings if f.level == "error"]


def _one_line(document: yamlfile.Document, problem: Any) -> str:
    """A pydantic error in our words, with file and line."""
    path = tuple(key for key in problem["loc"] if key != "[key]")
    name = ".".join(str(key) for key in path)
    kind, message = problem["type"], problem["msg"]
    if kind == "value_error":
        text = f"{name}: {problem['ctx']['error']}" if name else str(problem["ctx"]["error"])
    elif kind == "extra_forbidden":
        text = f"unknown key {path[-1]!r} in {'.'.join(map(str, path[:-1])) or 'the spec'}"
        if "spars" in str(path[-1]).lower():
            text += "; sparse figures are refused, peaks are dense"
    elif kind == "missing":
        text = f"{'.'.join(map(str, path[:-1])) or 'the spec'} needs {path[-1]!r}"
    elif kind in ("model_type", "dict_type", "model_attributes_type"):
        text = f"{name} must be a mapping, not {_excerpt(problem['input'])}"
    elif kind == "tuple_type":
        text = f"{name} must be a list, not {_excerpt(problem['input'])}"
    else:
        text = f"{name}: {message[0].lower()}{message[1:]}, not {_excerpt(problem['input'])}"
    return document.error(path, text)


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
