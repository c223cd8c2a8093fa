"""Reads libyaml's events, for `yamlfile`.

It records the line of each key for error messages. It refuses features that no spec needs:
duplicate keys, tags, anchors and aliases, several documents, deep nesting, and implicit types other
than text, number, true/false and null.
"""

from __future__ import annotations

from typing import Any

import yaml

from perfmodel.errors import SpecError
from perfmodel.plaintext import quoted
from perfmodel.yamlfile import Document, KeyPath

MAX_DEPTH = 16
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


class Reader:
    """One pass over the events of one file."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._lines: dict[KeyPath, int] = {}
        self._last = max(len(text.splitlines()), 1)
        self._loader = self._guard(lambda: _Loader(text))

    def document(self, stop_after: frozenset[str] | None = None) -> Document:
        """The whole document, or the part up to the keys of `stop_after`. Raises `SpecError`."""
        self._next()  # stream start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise self._error("the file is empty; a spec is a mapping", event)
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            raise self._error("a spec is a mapping (name: ..., compute: ...)", event)
        data = self._mapping((), event, stop_after)
        if stop_after is None:
            self._next()  # document end
            event = self._next()
            if not isinstance(event, yaml.StreamEndEvent):
                raise self._error("a second document; a spec file describes one device", event)
        return Document(self._where, data, self._lines)

    def _mapping(
        self, path: KeyPath, start: Any, stop_after: frozenset[str] | None = None
    ) -> dict[str, Any]:
        self._check(path, start)
        data: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if isinstance(event, yaml.CollectionStartEvent):  # else the depth has no end
                raise self._error("a key is a mapping or a list; keys are text", event)
            key = self._value(path, event)
            if not isinstance(key, str):
                raise self._error(f"key {str(key)[:80]} is not text", event)
            if key in data:
                raise self._error(f"key {quoted(key)} appears twice", event)
            key_path = (*path, key)
            self._lines[key_path] = event.start_mark.line + 1
            data[key] = self._value(key_path, self._next())
            if stop_after is not None and stop_after <= data.keys():
                break
        return data

    def _value(self, path: KeyPath, event: Any) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, event)
        if isinstance(event, yaml.SequenceStartEvent):
            self._check(path, event)
            items: list[Any] = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                item_path = (*path, len(items))
                self._lines[item_path] = item.start_mark.line + 1
                items.append(self._value(item_path, item))
            return items
        raise self._error("anchors and aliases are not used in specs", event)

    def _scalar(self, event: Any) -> Any:
        self._check((), event)
        text = event.value
        tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit).removeprefix(_TAG)
        if tag == "str":
            return text
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() in ("true", "yes", "on")
        try:
            if tag == "int":
                return int(text.replace("_", ""), 10)
            if tag == "float":
                return float(text.replace("_", ""))
        except ValueError:
            raise self._error(f"{quoted(text)} is not a decimal number", event) from None
        quote = quoted(text)
        raise self._error(f'{quote} is read as a {tag}; put it in quotes: "{quote[1:-1]}"', event)

    def _check(self, path: KeyPath, event: Any) -> None:
        if event.anchor is not None:
            raise self._error("anchors and aliases are not used in specs", event)
        if event.tag is not None and event.tag != "!":
            raise self._error(f"the tag {event.tag!r} is not allowed; specs are plain data", event)
        if len(path) > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", event)

    def _next(self) -> Any:
        return self._guard(lambda: self._loader.get_event())

    def _guard(self, step: Any) -> Any:
        """`step()`, with YAML's own errors (a file cut short, a tab) as one line."""
        try:
            return step()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = min(mark.line + 1, self._last) if mark else 1
            reason = error.problem or error.context or "unreadable"
            deep = "nesting depth" in reason  # the parser of some libyaml stops first
            text = f"nested deeper than {MAX_DEPTH} levels" if deep else f"not valid YAML: {reason}"
            message = f"{self._where}:{line}: {text}"
            raise SpecError(message) from None
        except yaml.YAMLError as error:
            reason = " ".join(str(error).split())
            raise SpecError(f"{self._where}:1: not valid YAML: {reason}") from None

    def _error(self, message: str, event: Any) -> SpecError:
        line = min(event.start_mark.line + 1, self._last)
        return SpecError(f"{self._where}:{line}: {message}")
