"""A user's file as a module on the meta device, and its inputs."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError, ProblemError, needs
from perfmodel.interrupts import import_whole
from perfmodel.plaintext import quoted, whole_number

_INPUT = re.compile(r"(?:(\w+)\s*:\s*)?(\w+)\s*\[([^\]]*)\]")
_TYPES = {
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64", "bool": "bool",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "bfloat16": "bfloat16", "float16": "float16", "float32": "float32", "float64": "float64",
}  # fmt: skip


class TraceError(PerfmodelError):
    """A module that cannot be loaded or traced."""


def load(place: str, dtype: str = "bf16") -> Any:
    """The module `file.py:Name`, built on the meta device with parameters of `dtype`.

    The name is a class that takes no arguments, a function that gives a module, or a module. The
    file is run. Raises `TraceError` with what went wrong in it, in one line.
    """
    needs("torch", "tracing")
    import_whole("torch")
    with redirect_stdout(sys.stderr):  # what it prints is no part of a result
        return _instance(place, torch_type(dtype))


def _instance(place: str, dtype: Any) -> Any:
    import torch

    target = _target(place)
    try:
        with torch.device("meta"):
            default = torch.get_default_dtype()
            torch.set_default_dtype(dtype)
            try:
                module = target() if callable(target) and not _is_module(target) else target
            finally:
                torch.set_default_dtype(default)
    except BaseException as error:  # whatever a user's file raises, sys.exit() included
        if isinstance(error, KeyboardInterrupt):
            raise
        raise TraceError(f"{place} cannot be made on the meta device: {said(error)}") from error
    if not _is_module(module):
        raise TraceError(f"{place} gives a {type(module).__name__}, not a torch.nn.Module")
    return module


def _target(place: str) -> Any:
    """What `file.py:Name` names."""
    text, _, name = place.rpartition(":")
    path = Path(text)
    if not text or not name.isidentifier():
        raise TraceError(f"{quoted(place)} is not FILE.py:NAME; write my_module.py:Model")
    if not path.is_file():
        raise TraceError(f"{path}: no such file; write my_module.py:Model")
    alias = f"{path.stem} of perfmodel trace"  # so that no file takes the place of a package
    spec = importlib.util.spec_from_file_location(alias, path)
    if spec is None or spec.loader is None:
        raise TraceError(f"{path}: not a Python file; write my_module.py:Model")
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        # Python warns of a number such as 4inf before it refuses the file.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            spec.loader.exec_module(module)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise TraceError(f"{path} cannot be imported: {said(error)}") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        names = [item for item in vars(module) if not item.startswith("_")]
        raise TraceError(f"{path} has no {name}; it has {', '.join(names[:20]) or 'nothing'}")
    return getattr(module, name)


def _is_module(candidate: Any) -> bool:
    import torch

    return isinstance(candidate, torch.nn.Module)


def inputs(texts: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Meta tensors by position and by name, from "int64[1,2048]" and "ids:int64[1,2048]".

    Raises `ProblemError` for what is no such text.
    """
    needs("torch", "tracing")
    torch = import_whole("torch")

    by_name: dict[str, Any] = {}
    positional: list[Any] = []
    for text in texts:
        match = _INPUT.fullmatch(text.strip())
        if match is None:
            raise ProblemError(
                f"--input {quoted(text)} is not NAME:TYPE[SIZES]; write ids:int64[1,2048]"
            )
        name, dtype, sizes = match.groups()
        shape = [_extent(text, size) for size in sizes.split(",") if size.strip()]
        tensor = torch.zeros(shape, dtype=torch_type(dtype), device="meta")
        if name is None:
            positional.append(tensor)
        elif name in by_name:
            raise ProblemError(f"--input gives {name} twice; choose one")
        else:
            by_name[name] = tensor
    return tuple(positional), by_name


def _extent(text: str, size: str) -> int:
    extent = whole_number(size.strip())
    if not extent:
        raise ProblemError(f"--input {quoted(text)}: {quoted(size)} is no whole number from 1")
    return extent


def torch_type(name: str) -> Any:
    """The torch type of that name; raises `UnknownName`."""
    import torch

    from perfmodel.errors import UnknownName

    if name not in _TYPES:
        raise UnknownName("type of torch", name, _TYPES)
    return getattr(torch, _TYPES[name])


def said(error: BaseException) -> str:
    """What an error says, in one line of 300 characters at most."""
    text = " ".join(str(error).split())
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return line if len(line) <= 300 else f"{line[:300]}..."
