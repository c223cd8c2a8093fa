"""The table of optimisers (`optimisers.yaml`), read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError
from perfmodel.training.parameter import KINDS
from perfmodel.training.update import Rule, Stage, State, Style, listed

VERSION = 1
_RULE = ("kinds", "as", "fewest", "cut", "states", "types", "work")
_STAGE = ("name", "steps", "axes", "along", "gemm", "type", "sides", "repeat", "every", "passes")


@dataclass(frozen=True)
class Setting:
    """A whole number that an optimiser's expressions use by name."""

    name: str
    """Name in a plan."""
    value: int
    """Default value."""
    meaning: str
    """Meaning, in one line."""
    source: str
    """Source."""
    least: int = 1
    """Smallest allowed value."""


@dataclass(frozen=True)
class Entry:
    """The declaration of an optimiser."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    source: str
    """Paper and code."""
    rules: tuple[Rule, ...]
    """Updates. Each tensor takes the first rule that applies to it; the last rule applies to
    any."""
    settings: tuple[Setting, ...] = ()
    """Whole numbers that a user may change."""


@dataclass(frozen=True)
class Document:
    """The whole table."""

    styles: Mapping[str, Style]
    """Implementations, by name."""
    clipping: Mapping[str, Rule]
    """Ways of clipping by the global norm, by name."""
    optimisers: Mapping[str, Entry]
    """Optimisers by name, in file order."""


@lru_cache(maxsize=1)
def document() -> Document:
    """The table that comes with the package."""
    return read(Path(__file__).with_name("optimisers.yaml"))


def read(path: Path) -> Document:
    """The table of a file, checked. Raises `PerfmodelError` with the fault."""
    try:
        table = yamltable.read(path)
        if table["version"] != VERSION:
            raise PerfmodelError(
                f"{path}: optimisers of another version; this code reads {VERSION}"
            )
        optimisers: dict[str, Entry] = {}
        for name, entry in table["optimisers"].items():
            optimisers[name] = _entry(name, entry, optimisers)
        return Document(
            {name: _style(name, entry) for name, entry in table["styles"].items()},
            {name: _rule({"work": [entry]}) for name, entry in table["clipping"].items()},
            optimisers,
        )
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{path}: no table of optimisers ({line}); reinstall perfmodel"
        ) from None


def _style(name: str, entry: Mapping[str, Any]) -> Style:
    return Style(name=name, **{**entry, "tensors": tuple(entry.get("tensors", ()))})


def _entry(name: str, entry: Mapping[str, Any], optimisers: Mapping[str, Entry]) -> Entry:
    settings = entry.get("settings", {}).items()
    rules = tuple(rule for each in entry["rules"] for rule in _rules(each, optimisers))
    last = rules[-1]
    if set(last.kinds) != set(KINDS) or last.fewest != "1":
        raise ValueError(f"the last rule of {name} does not take every tensor")
    return Entry(
        name,
        str(entry["about"]),
        str(entry["source"]),
        rules,
        tuple(Setting(name=key, **value) for key, value in settings),
    )


def _rules(entry: Mapping[str, Any], optimisers: Mapping[str, Entry]) -> Iterator[Rule]:
    """A rule, or the rules of another optimiser for the same kinds of tensors."""
    if "as" not in entry:
        yield _rule(entry)
        return
    for rule in optimisers[entry["as"]].rules:
        yield _rule_for(rule, entry)


def _rule_for(rule: Rule, entry: Mapping[str, Any]) -> Rule:
    kinds = tuple(kind for kind in rule.kinds if kind in entry.get("kinds", KINDS))
    return Rule(rule.states, rule.work, kinds, rule.fewest, rule.cut, rule.types)


def _rule(entry: Mapping[str, Any]) -> Rule:
    _check_keys(entry, _RULE)
    return Rule(
        states=tuple(
            State(name, str(state.get("elements", "p")), state.get("type"))
            for name, state in entry.get("states", {}).items()
        ),
        work=tuple(_stage(stage) for stage in entry["work"]),
        kinds=tuple(entry.get("kinds", KINDS)),
        fewest=str(entry.get("fewest", 1)),
        cut=entry.get("cut"),
        types=dict(entry.get("types", {})),
    )


def _stage(entry: Mapping[str, Any]) -> Stage:
    _check_keys(entry, (*_STAGE, "source"))
    if ("steps" in entry) == ("gemm" in entry):
        raise ValueError("a stage has either steps or gemm, not both")
    axes = entry.get("axes")
    return Stage(
        name=str(entry.get("name", "")),
        steps=entry.get("steps", {}),
        axes=None if axes is None else {name: str(text) for name, text in axes.items()},
        along=dict(entry.get("along", {})),
        gemm=tuple(str(text) for text in entry.get("gemm", ())),
        dtype=str(entry.get("type", "")),
        sides=tuple(str(text) for text in listed(entry.get("sides", ()))),
        repeat=str(entry.get("repeat", 1)),
        every=str(entry.get("every", 1)),
        fused=entry.get("passes") == "fewest",
    )


def _check_keys(entry: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in entry:
        if key not in keys:
            raise ValueError(f"unknown key {key!r}; known: {', '.join(keys)}")
