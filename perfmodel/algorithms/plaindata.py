"""Plain data of a declaration, in YAML or from Python: what is wrong is told with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from perfmodel.errors import ProblemError, SpecError
from perfmodel.plaintext import printable, quoted

Place = tuple[str | int, ...]
"""The keys that lead to a value."""
LONGEST = 60
"""Characters of a name."""


class PlainData:
    """A mapping, and how to report what is wrong in it; `fail` does not return."""

    def __init__(self, data: Mapping[str, Any], fail: Callable[[Place, str], NoReturn]) -> None:
        self.data, self.fail = data, fail

    @classmethod
    def given(cls, kind: str, data: Mapping[str, Any]) -> PlainData:
        """Data from Python; errors are `ProblemError`, "KIND NAME: key: message"."""

        def fail(place: Place, message: str) -> NoReturn:
            name = printable(str(data.get("name", "")))[:LONGEST]
            keys = printable(".".join(str(part) for part in place))
            raise ProblemError(f"{kind} {name}{': ' * bool(keys)}{keys}: {message}")

        return cls(data, fail)

    @classmethod
    def of_file(cls, path: str | Path) -> PlainData:
        """Data of a YAML file; errors are `SpecError`, "file:line: message"."""
        from perfmodel import yamlfile

        document = yamlfile.parse(yamlfile.read(Path(path)), str(path))

        def fail(place: Place, message: str) -> NoReturn:
            raise SpecError(document.error(place, message))

        return cls(document.data, fail)

    def top(self, kind: str, keys: Sequence[str], required: Sequence[str]) -> None:
        """Check the keys of the whole, and its name."""
        self.keys((), self.data, keys)
        for key in required:
            if not self.data.get(key):
                self.fail((), f"lacks {key}; a {kind} has {', '.join(keys)}")
        self.name(("name",), self.data["name"])

    def keys(self, place: Place, table: Mapping[str, Any], known: Sequence[str]) -> None:
        """Check that a mapping has known keys only."""
        for key in table:
            if key not in known:
                hint = _hint(str(key), known)
                self.fail((*place, key), f"unknown key {quoted(str(key))}; {hint}")

    def table(
        self, key: str, most: int, place: Place = (), data: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The mapping of names under a key; empty where there is none."""
        entry = (self.data if data is None else data).get(key) or {}
        if not isinstance(entry, Mapping):
            self.fail((*place, key), f"{key} is a mapping of names, not {as_text(entry)}")
        if len(entry) > most:
            count = f"{len(entry):,} {key} are more than {most:,}"
            self.fail((*place, key), f"{count}, the most there may be")
        for name in entry:
            self.name((*place, key, name), name)
        return dict(entry)

    def name(self, place: Place, name: Any) -> None:
        """Check a name; names appear in tables and formulas: short text on one line."""
        if not isinstance(name, str) or not name.isprintable() or len(name) > LONGEST:
            self.fail(
                place,
                f"{as_text(name)} is no name: write up to {LONGEST} printable characters, in "
                "quotes where YAML would read them as something else",
            )

    def names(self, place: Place, entry: Any) -> tuple[str, ...]:
        """A name or a list of names."""
        if isinstance(entry, str):
            return (entry,)
        if isinstance(entry, list | tuple) and all(isinstance(item, str) for item in entry):
            return tuple(entry)
        return self.fail(place, f"{as_text(entry)} is neither a name nor a list of names")

    def declared(self, place: Place, kind: str, name: str, options: Mapping[str, Any]) -> None:
        """Check that a name is declared."""
        if name not in options:
            hint = _hint(name, [*options])
            self.fail(place, f"names the {kind} {name!r}, which is not declared; {hint}")


def as_text(value: Any) -> str:
    """A value of the data in a message."""
    return quoted(value) if isinstance(value, str) else quoted(repr(value))[1:-1]


def _hint(name: str, known: Sequence[str]) -> str:
    matches = get_close_matches(name, known, n=1)
    return f"did you mean {matches[0]}?" if matches else f"known: {', '.join(known)}"
