"""Shipped YAML files: decoded once, then kept as finished objects in the user's cache folder.

Decoding takes longer than a prediction. What is kept belongs to the package as it is: a change of
any of its files makes all of it anew. A cached file that is damaged is ignored and written again.
Where the folder cannot be written, nothing is kept.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from perfmodel import usercache

_T = TypeVar("_T")
_PLAIN = {("builtins", "set"), ("builtins", "frozenset"), ("datetime", "date")}
_PACKAGE = Path(__file__).parent
_SHIPPED = tuple(f"{place}{os.sep}" for place in (_PACKAGE, _PACKAGE.parent / "hardware_specs"))


def read(path: Path) -> Any:
    """The document of a YAML file. Raises `OSError`, or `ValueError` for invalid YAML."""
    return kept(path, "document", lambda: parse(path.read_text(encoding="utf-8")))


def parse(text: str) -> Any:
    """The document of a YAML text. Raises `ValueError` for invalid YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def is_shipped(path: Path) -> bool:
    """Whether a file comes with perfmodel: it is in the package, or in the checkout's specs."""
    return f"{path}{os.sep}".startswith(_SHIPPED)


def kept(path: Path, form: str, make: Callable[[], _T]) -> _T:
    """What `make` makes of the file at `path`; of a shipped file it is kept.

    `form` tells apart what several callers make of one file. Raises what `make` raises.
    """
    if not is_shipped(path):
        return make()
    file = None
    with suppress(Exception):  # no cache, or a damaged one: anything may go wrong in a pickle
        own = f"{path}\n{form}\n{path.stat().st_mtime_ns}"
        file = _folder() / f"{path.stem}-{form}-{_digest(own.encode())}"
        check, _, payload = file.read_bytes().partition(b"\n")
        if check.decode() == _digest(payload):
            value: _T = _Unpickler(BytesIO(payload)).load()
            return value
    value = make()
    if file is not None:
        _keep(file, value)
    return value


class _Unpickler(pickle.Unpickler):
    """Makes plain data and our dataclasses, and runs nothing else: a cached file is data."""

    def find_class(self, module: str, name: str) -> Any:
        """A dataclass of the package. Raises `UnpicklingError` for anything else."""
        if module.startswith("perfmodel."):
            kind = super().find_class(module, name)
            if isinstance(kind, type) and is_dataclass(kind):
                return kind
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not kept")


def _keep(file: Path, value: Any) -> None:
    """Write a cached file, whole or not at all; what was kept of another state goes."""
    import shutil
    from tempfile import mkstemp

    with suppress(OSError, pickle.PicklingError, TypeError, AttributeError):
        payload = pickle.dumps(value)
        if not file.parent.is_dir():
            package, _, _ = file.parent.name.partition("-")
            for folder in file.parent.parent.glob(f"{package}-*"):
                shutil.rmtree(folder, ignore_errors=True)
            file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, partial = mkstemp(dir=file.parent)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(_digest(payload).encode() + b"\n" + payload)
            os.replace(partial, file)
        finally:
            Path(partial).unlink(missing_ok=True)


def _folder() -> Path:
    """The folder for objects of this state of this package. Raises `OSError`."""
    return usercache.folder("shipped") / f"{_digest(str(_PACKAGE).encode())}-{_state()}"


@lru_cache(maxsize=1)
def _state() -> str:
    """A digest of all files of the package by their names, sizes and times."""
    files = sorted(entry for place in _SHIPPED for entry in _files(place))
    return _digest(repr(files).encode())


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path) if entry.name != "__pycache__" else ()
            elif entry.name.endswith((".py", ".yaml")):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _digest(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}"
