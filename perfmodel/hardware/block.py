"""Values made of named fields: the base of every part of a spec.

A class of blocks declares its fields like a dataclass, by annotations and defaults. Blocks of
shipped specs are made without checks once their file was checked, so that a prediction loads
neither generated classes nor pydantic. All other blocks are checked by `checking`, with pydantic.
Methods have the names of pydantic's models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field
from inspect import get_annotations
from typing import Any, ClassVar, NoReturn, Self

BLOCKS: dict[str, type[Block]] = {}
"""The classes of blocks by name, each after the blocks that it contains."""

_WORD = re.compile(r"\w+")


class Block:
    """Base of every part of a spec: immutable, and an unknown key is an error."""

    fields: ClassVar[dict[str, str]] = {}
    """Field names in order, with their annotations as text."""
    defaults: ClassVar[dict[str, Any]] = {}
    """Defaults of optional fields; a `dataclasses.field` gives a factory."""

    def __init_subclass__(cls) -> None:
        fields = {
            name: str(kind)
            for name, kind in get_annotations(cls).items()
            if not str(kind).startswith("ClassVar")
        }
        cls.fields = {**cls.fields, **fields}
        cls.defaults = cls.defaults | {n: cls.__dict__[n] for n in fields if n in cls.__dict__}
        BLOCKS[cls.__name__] = cls

    def __init__(self, **data: Any) -> None:
        """The block that `data` describes, checked; raises pydantic's error, a `ValueError`."""
        self.__dict__.update(self.model_validate(data).__dict__)

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The block that `data` describes, checked; raises pydantic's error, a `ValueError`."""
        from perfmodel.hardware.checking import checked

        return checked(cls, data)

    @classmethod
    def trusted(cls, data: Mapping[str, Any]) -> Self:
        """The block that `data` describes, unchecked: data of a file that was checked."""
        return cls.of({name: cls._field_value(name, value) for name, value in data.items()})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The block with these values and the defaults, unchecked."""
        block = cls.__new__(cls)
        attributes = block.__dict__
        for name in cls.fields:
            if name in values:
                attributes[name] = values[name]
            else:
                default = cls.defaults[name]
                factory = default.default_factory if isinstance(default, Field) else None
                attributes[name] = factory() if callable(factory) else default
        return block

    @classmethod
    def _field_value(cls, name: str, value: Any) -> Any:
        """A value of a file in the form of its field: tuples for lists, blocks for mappings."""
        if not isinstance(value, dict | list):
            return value
        kind = cls.fields[name]
        part = next((BLOCKS[word] for word in _WORD.findall(kind) if word in BLOCKS), None)
        if isinstance(value, list):
            return tuple(value) if part is None else tuple(map(part.trusted, value))
        if part is None:
            return dict(value)
        if not kind.startswith("dict"):
            return part.trusted(value)
        return {key: part.trusted(item) for key, item in value.items()}

    def agree(self) -> None:
        """Raise `ValueError` where two fields contradict each other."""

    def model_copy(self, update: Mapping[str, Any]) -> Self:
        """A copy with some fields changed, unchecked."""
        return self.of({**self._values(), **update})

    def model_dump(self, exclude_none: bool = False) -> dict[str, Any]:
        """The fields as plain data, blocks as mappings."""
        return {
            name: _plain_value(value, exclude_none)
            for name, value in self._values().items()
            if not (exclude_none and value is None)
        }

    def model_dump_json(self) -> str:
        """The fields as JSON, without spaces."""
        import json

        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))

    def _values(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.fields}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block) or type(self) is not type(other):
            return NotImplemented
        return self is other or self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().values()))

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({text})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} stays as it is; use model_copy")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} stays as it is; use model_copy")


def _plain_value(value: Any, exclude_none: bool) -> Any:
    if isinstance(value, Block):
        return value.model_dump(exclude_none)
    if isinstance(value, dict):
        return {key: _plain_value(item, exclude_none) for key, item in value.items()}
    if isinstance(value, tuple) and any(isinstance(item, Block) for item in value):
        return [_plain_value(item, exclude_none) for item in value]
    return value
