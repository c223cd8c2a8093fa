"""From the text of a spec to a device, with every problem as one line: `file:line: message`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import SpecError
from perfmodel.hardware import physics, yamlfile
from perfmodel.hardware.device import Device


def loads(text: str, where: str = "<text>") -> Device:
    """The device that `text` describes; raises `SpecError` for the first problem."""
    device, problems = _examine(text, where)
    if device is None or problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SpecError(problems[0] + more)
    return device


def read(path: Path) -> Device:
    """The device described by the file at `path`; raises `SpecError`."""
    text = yamlfile.read(path)
    known = yamltable.compiled(path, text)
    return loads(text, str(path)) if known is None else Device.trusted(known)


def validate_file(path: str | Path) -> list[str]:
    """Every problem of a spec file, one line each; empty means valid."""
    path = Path(path)
    try:
        text = yamlfile.read(path)
        device, problems = _examine(text, str(path))
    except SpecError as error:
        return [str(error)]
    if device is not None and device.slug != path.stem:
        line = yamlfile.parse(text, str(path)).line(("slug",))
        problems.append(f"{path}:{line}: slug {device.slug!r} is not the file's name {path.stem!r}")
    return problems


def _examine(text: str, where: str) -> tuple[Device | None, list[str]]:
    from pydantic import ValidationError

    document = yamlfile.parse(text, where)
    try:
        device = Device.model_validate(document.data)
    except ValidationError as error:
        # By line, but a misspelt key before the right one, which is missing because of it.
        found = sorted(
            error.errors(), key=lambda e: (e["type"] == "missing", document.line(e["loc"]))
        )
        return None, list(dict.fromkeys(_one_line(document, problem) for problem in found))
    findings = physics.check(device)
    return device, [document.error(f.where, f.message) for f in findings if f.level == "error"]


def _one_line(document: yamlfile.Document, problem: Any) -> str:
    """A pydantic error in our words, at its line."""
    path = tuple(key for key in problem["loc"] if key != "[key]")
    name = ".".join(str(key) for key in path)
    kind, message = problem["type"], problem["msg"]
    if kind == "value_error":
        said = f"{name}: {problem['ctx']['error']}" if name else str(problem["ctx"]["error"])
    elif kind == "extra_forbidden":
        said = f"unknown key {path[-1]!r} in {'.'.join(map(str, path[:-1])) or 'the spec'}"
        if "spars" in str(path[-1]).lower():
            said += "; sparse figures are refused, peaks are dense"
    elif kind == "missing":
        said = f"{'.'.join(map(str, path[:-1])) or 'the spec'} needs {path[-1]!r}"
    elif kind in ("model_type", "dict_type", "model_attributes_type"):
        said = f"{name} must be a mapping, not {_short(problem['input'])}"
    elif kind == "tuple_type":
        said = f"{name} must be a list, not {_short(problem['input'])}"
    else:
        said = f"{name}: {message[0].lower()}{message[1:]}, not {_short(problem['input'])}"
    return document.error(path, said)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
