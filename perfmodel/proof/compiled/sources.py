"""Where a kernel function is defined, and a hash of all source that it is compiled from.

Both work on a function that Triton compiles and on one that it interprets.
"""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from perfmodel.proof.kernel import KernelError


def whereabouts(function: Any) -> dict[str, str]:
    """Module, name and file of a kernel function, so that another process can import it."""
    base = _python_function(function)
    return {
        "module": base.__module__,
        "name": base.__name__,
        "file": inspect.getsourcefile(base) or "",
    }


def fingerprint(function: Any) -> str:
    """A hash of the function's source and of every function and constant of its modules that it
    uses.

    Raises `KernelError` for a function without source.
    """
    sources: dict[str, str] = {}
    _collect(_python_function(function), sources)
    text = "\n".join(f"{name}\n{source}" for name, source in sorted(sources.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def _python_function(function: Any) -> FunctionType:
    """The Python function under Triton's wrappers."""
    while not isinstance(function, FunctionType):
        if not hasattr(function, "fn"):
            raise KernelError(f"{function!r} is no Triton function")
        function = function.fn
    return function


def _collect(function: FunctionType, sources: dict[str, str]) -> None:
    name = f"{function.__module__}.{function.__qualname__}"
    if name in sources:
        return
    try:
        sources[name] = _source(function)
    except OSError:
        raise KernelError(f"the source of {name} is not there, so it cannot be compiled") from None
    for symbol in sorted(_names(function.__code__)):
        value = function.__globals__.get(symbol)
        if isinstance(value, ModuleType) or getattr(value, "__module__", "").startswith("triton."):
            inner = getattr(value, "fn", None)
            if not isinstance(inner, FunctionType) or inner.__module__.startswith("triton."):
                continue  # Triton's own: its version is part of the key
        if hasattr(value, "fn"):
            _collect(_python_function(value), sources)
        elif value is not None and not callable(value):
            sources[f"{function.__module__}.{symbol}"] = repr(getattr(value, "value", value))


@cache
def _source(function: FunctionType) -> str:
    """Its source text, cached: finding its end takes a millisecond, and every config needs it."""
    return inspect.getsource(function)


def _names(code: CodeType) -> set[str]:
    """Names that code looks up, nested functions included."""
    nested = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*(_names(part) for part in nested))
