"""The table of optimisers (`optimisers.yaml`), read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import PerfmodelError
from perfmodel.training.launching import Style
from perfmodel.training.parameter import KINDS
from perfmodel.training.update import Rule, Stage, State, listed

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
        for name, said in table["optimisers"].items():
            optimisers[name] = _entry(name, said, optimisers)
        return Document(
            {name: _style(name, said) for name, said in table["styles"].items()},
            {name: _rule({"work": [said]}) for name, said in table["clipping"].items()},
            optimisers,
        )
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{path}: no table of optimisers ({line}); reinstall perfmodel"
        ) from None


def _style(name: str, said: Mapping[str, Any]) -> Style:
    return Style(name=name, **{**said, "tensors": tuple(said.get("tensors", ()))})


def _entry(name: str, said: Mapping[str, Any], others: Mapping[str, Entry]) -> Entry:
    settings = said.get("settings", {}).items()
    rules = tuple(rule for each in said["rules"] for rule in _rules(each, others))
    last = rules[-1]
    if set(last.kinds) != set(KINDS) or last.fewest != "1":
        raise ValueError(f"the last rule of {name} does not take every tensor")
    return Entry(
        name,
        str(said["about"]),
        str(said["source"]),
        rules,
        tuple(Setting(name=key, **value) for key, value in settings),
    )


def _rules(said: Mapping[str, Any], others: Mapping[str, Entry]) -> Iterator[Rule]:
    """A rule, or the rules of another optimiser for the same kinds of tensors."""
    if "as" not in said:
        yield _rule(said)
        return
    for rule in others[said["as"]].rules:
        yield _rule_for(rule, said)


def _rule_for(rule: Rule, said: Mapping[str, Any]) -> Rule:
    kinds = tuple(kind for kind in rule.kinds if kind in said.get("kinds", KINDS))
    return Rule(rule.states, rule.work, kinds, rule.fewest, rule.cut, rule.types)


def _rule(said: Mapping[str, Any]) -> Rule:
    _known(said, _RULE)
    return Rule(
        states=tuple(
            State(name, str(state.get("elements", "p")), state.get("type"))
            for name, state in said.get("states", {}).items()
        ),
        work=tuple(_stage(stage) for stage in said["work"]),
        kinds=tuple(said.get("kinds", KINDS)),
        fewest=str(said.get("fewest", 1)),
        cut=said.get("cut"),
        types=dict(said.get("types", {})),
    )


def _stage(said: Mapping[str, Any]) -> Stage:
    _known(said, (*_STAGE, "source"))
    if ("steps" in said) == ("gemm" in said):
        raise ValueError("a stage has either steps or gemm, not both")
    axes = said.get("axes")
    return Stage(
        name=str(said.get("name", "")),
        steps=said.get("steps", {}),
        axes=None if axes is None else {name: str(text) for name, text in axes.items()},
        along=dict(said.get("along", {})),
        gemm=tuple(str(text) for text in said.get("gemm", ())),
        dtype=str(said.get("type", "")),
        sides=tuple(str(text) for text in listed(said.get("sides", ()))),
        repeat=str(said.get("repeat", 1)),
        every=str(said.get("every", 1)),
        fused=said.get("passes") == "fewest",
    )


def _known(said: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in said:
        if key not in keys:
            raise ValueError(f"unknown key {key!r}; known: {', '.join(keys)}")
