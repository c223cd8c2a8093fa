"""`dataclass` for classes that are many: the standard one compiles six functions for each class.

Here the methods of all classes are the same functions, and `__init__` is compiled when the first
object is made: most classes that a command imports make none. Equality, hash, text and frozen
attributes are those of `dataclasses`, and `fields` and `replace` work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, *, frozen: bool = False, kw_only: bool = False) -> Any:
        """The class, or with settings alone a decorator of one."""

        def decorated(kind: type) -> Any:
            return _decorated(kind, frozen=frozen, kw_only=kw_only)

        return decorated if cls is None else decorated(cls)


def _decorated(kind: Any, *, frozen: bool, kw_only: bool) -> Any:
    # `dataclasses` refuses a class that is not frozen below one that is, and freezes it itself.
    inherits = any(base.__dataclass_params__.frozen for base in kind.__mro__[1:]
                   if "__dataclass_params__" in base.__dict__)  # fmt: skip
    own: dict[str, Any] = {"__repr__": _text, "__eq__": _equal}
    own["__hash__"] = _hash if frozen else None
    if frozen and not inherits:
        own |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in own.items():
        if name not in kind.__dict__:
            setattr(kind, name, method)
    dataclasses.dataclass(init=False, repr=False, eq=False, frozen=inherits, kw_only=kw_only)(kind)
    kind.__dataclass_params__.frozen = frozen

    def first(self: Any, *args: Any, **values: Any) -> None:
        kind.__init__ = _init(kind)
        kind.__init__(self, *args, **values)

    if "__init__" not in kind.__dict__:
        kind.__init__ = first
    return kind


def _init(kind: Any) -> Callable[..., None]:
    """`__init__` of the fields of a class."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    positional: list[str] = []
    named: list[str] = []
    lines = ["_state = self.__dict__"]
    for item in dataclasses.fields(kind):
        name, default = item.name, ""
        if item.default_factory is not MISSING:
            scope[f"_{name}"] = item.default_factory
            lines.append(f"_state['{name}'] = _{name}() if {name} is MISSING else {name}")
            default = " = MISSING"
        else:
            lines.append(f"_state['{name}'] = {name}")
            if item.default is not MISSING:
                scope[f"_{name}"], default = item.default, f" = _{name}"
        (named if item.kw_only else positional).append(f"{name}{default}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self", *positional, *(["*", *named] if named else [])]
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    return init


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    names = [item.name for item in dataclasses.fields(kind) if item.compare]
    return attrgetter(*names) if names else lambda _: ()


@cache
def _hashed(kind: Any) -> Callable[[Any], Any]:
    items = [item for item in dataclasses.fields(kind) if item.compare and item.hash is not False]
    return attrgetter(*(item.name for item in items)) if items else lambda _: ()


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    kind: Any = type(self)
    values = _compared(kind)
    return bool(values(self) == values(other))


def _hash(self: object) -> int:
    kind: Any = type(self)
    return hash(_hashed(kind)(self))


def _text(self: Any) -> str:
    parts = (f"{i.name}={getattr(self, i.name)!r}" for i in dataclasses.fields(self) if i.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: Any, name: str, *_value: Any) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")
