"""Kernels by name: the bundled ones, and those of the entry-point group `perfmodel.kernels`.

The bundled kernels are in the modules that `perfmodel_kernels` names; in a checkout that is not
installed it is loaded from the folder `kernels/` beside the package. An entry point of a user's
package names one `BundledKernel` or a tuple of them. A module or an entry point that cannot be
loaded is skipped and reported by `failures`; the others remain usable.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from perfmodel.errors import UnknownName
from perfmodel.interrupts import import_whole
from perfmodel.proof.kernel import BundledKernel, KernelError

GROUP = "perfmodel.kernels"
PACKAGE = "perfmodel_kernels"
_FILE = re.compile(r"(.+\.py)(?::(\w*))?")  # file.py, file.py:KERNEL


def kernels() -> Mapping[str, BundledKernel]:
    """All kernels by name; raises `KernelError` where Triton itself is missing."""
    return _load()[0]


def failures() -> tuple[str, ...]:
    """One line for each entry point that was skipped, with the reason."""
    return _load()[1]


def kernel(name: str) -> BundledKernel:
    """The kernel called `name`, or one from a file: `double.py:KERNEL`.

    Raises `UnknownName` with the nearest names, and `KernelError` for a file that has none.
    """
    table, notes = _load()
    if path := _FILE.fullmatch(name):
        return _file_kernel(path[1], path[2] or "")
    if name not in table:
        raise UnknownName("kernel", name, table, hint="; ".join(notes))
    return table[name]


def refresh() -> None:
    """Clear the cache, so that entry points are looked up again."""
    _load.cache_clear()


@cache
def _load() -> tuple[dict[str, BundledKernel], tuple[str, ...]]:
    if importlib.util.find_spec("triton") is None or importlib.util.find_spec("torch") is None:
        raise KernelError("kernels need torch and triton: pip install 'perfmodel[gpu]'")
    _import_torch()
    table: dict[str, BundledKernel] = {}
    notes: list[str] = []
    for source, load in _sources():
        try:
            for item in _kernel_tuple(load()):
                if item.name in table:
                    notes.append(f"{source}: a kernel named {item.name!r} is already there")
                else:
                    table[item.name] = item
        except Exception as error:  # an error in a user's module must not stop the others
            reason = " ".join(str(error).split()) or "no reason given"
            notes.append(f"{source}: not loaded: {type(error).__name__}: {reason}")
    return table, tuple(notes)


def _import_torch() -> None:
    """Import what kernels import, if it is there, so that Ctrl-C does not abort the process."""
    for name in ("torch", "triton"):
        with suppress(ImportError):  # the kernels' own import says what is missing
            import_whole(name)


def _sources() -> Iterator[tuple[str, Callable[[], Any]]]:
    """(where it comes from, how to load it), the bundled ones first."""
    yield from _bundled_sources()
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name):
        if not point.value.startswith(f"{PACKAGE}."):  # as installations of 0.1 announce them
            yield f"entry point {point.name} ({point.value})", point.load


def _bundled_sources() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The bundled kernels; those of a checkout are loaded under their package's name."""
    folder = Path(__file__).resolve().parents[2] / "kernels"
    if importlib.util.find_spec(PACKAGE) is None:
        spec = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None or not folder.is_dir():
            return
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    for name in import_module(PACKAGE).MODULES:
        yield f"kernels/{name}.py", partial(_module_kernels, name)


def _module_kernels(name: str) -> Any:
    return import_module(f"{PACKAGE}.{name}").KERNELS


@cache
def _file_kernel(path: str, attribute: str) -> BundledKernel:
    """The kernel of a file by its variable's or its own name; without a name, the file's only
    one."""
    by_name: dict[str, BundledKernel] = {}
    for variable, value in vars(_file_module(path)).items():
        values = value if isinstance(value, tuple) else (value,)
        kernels = [item for item in values if isinstance(item, BundledKernel)]
        by_name |= {item.name: item for item in kernels}
        by_name |= {variable: kernels[0]} if len(kernels) == 1 else {}
    unique = {item.name: item for item in by_name.values()}
    if not attribute and len(unique) == 1:
        return next(iter(unique.values()))
    if attribute not in by_name:
        contents = f"it has {', '.join(unique)}" if unique else "it has none"
        example = next(iter(unique), "KERNEL")
        raise KernelError(f"{path}: name a kernel of the file, as {path}:{example}; {contents}")
    return by_name[attribute]


def _file_module(path: str) -> ModuleType:
    """A file as a module, under a name that no package has."""
    name = f"perfmodel_file_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, Path(path).resolve())
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise KernelError(f"{path}: no such file; write the path of a Python file and a name in it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _import_torch()
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file raises
        reason = " ".join(str(error).split()) or "no reason given"
        raise KernelError(f"{path}: not loaded: {type(error).__name__}: {reason}") from error
    return module


def _kernel_tuple(loaded: Any) -> Iterable[BundledKernel]:
    items = (loaded,) if isinstance(loaded, BundledKernel) else tuple(loaded)
    for item in items:
        if not isinstance(item, BundledKernel):
            raise TypeError(f"{type(item).__name__} is not a BundledKernel")
    return items
