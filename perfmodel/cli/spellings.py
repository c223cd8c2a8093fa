"""Other spellings of names on the command line: torch.bfloat16, meta-llama/Llama-3.1-8B, sdpa.

Types and operators are spelt as cells of tables are (`table/columns.yaml`). Where more
than the spelling changes, a note on standard error says what was taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from os.path import exists
from typing import TYPE_CHECKING

from perfmodel.elements import ELEMENTS
from perfmodel.errors import ProblemError, UnknownName, say
from perfmodel.plaintext import quoted

if TYPE_CHECKING:
    from perfmodel.networks.network import Network

_REPOSITORY = re.compile(r"(?!\.\.?/)[\w.-]+/([\w.-]+)")
_TUNED = re.compile(r"[-_.](?:instruct|chat|hf|it|base|v\d+(?:\.\d+)*|\d{4})$", re.IGNORECASE)
_COUNTED = re.compile(r"(?P<name>.+):(?P<count>\d+)|(?P<many>\d+) ?[xX] ?(?P<of>\D.*)")


def names(text: str | None) -> tuple[str, ...]:
    """A comma-separated list of names; empty where the option was not given."""
    if text is None:
        return ()
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise ProblemError("an empty list of names; write one name, or several with commas")
    return parts


def one(option: str, text: str) -> str:
    """The name in `text`. Raises `ProblemError` for a list where `option` takes one name."""
    if "," in text:
        raise ProblemError(
            f"{option} takes one name, not the list {quoted(text)}; run the command for each"
        )
    return text.strip()


def named(kind: str, name: str, known: Iterable[str]) -> str:
    """The name, if known. Raises `UnknownName` with the nearest names."""
    choices = tuple(known)
    if name not in choices:
        raise UnknownName(kind, name, choices)
    return name


def chosen(flag: str, name: str, choices: Sequence[str]) -> str:
    """The choice of that name. Of two choices an error names both, of more the nearest."""
    if len(choices) == 2 and name not in choices:
        raise ProblemError(f"no choice for {flag} named {name!r}; known: {', '.join(choices)}")
    return named(f"choice for {flag}", name, choices)


def pairs(option: str, texts: Iterable[str], form: str, example: str) -> dict[str, str]:
    """Values by name, from NAME=VALUE, with commas or repeated.

    Raises `ProblemError` for a text of another `form`, or a name given twice.
    """
    values: dict[str, str] = {}
    for pair in (pair for text in texts for pair in names(text)):
        name, _, value = (part.strip() for part in pair.rpartition("="))
        if not (name and value):
            raise ProblemError(f"{option} {quoted(pair)} is not {form}; write {example}")
        if values.setdefault(name, value) != value:
            raise ProblemError(
                f"{option} gives {quoted(name)} as {values[name]} and as {value}; choose one"
            )
    return values


def types(text: str) -> str:
    """A list of types with commas in our own spelling: fp16 for float16, torch.float16 and half."""
    parts = [part.strip() for part in text.split(",")]
    return ",".join(part if part in ELEMENTS else _value("dtype", part) for part in parts)


def operator(name: str, known: Collection[str]) -> str:
    """An operator or algorithm in our own spelling, if that is one of `known`: attention for
    FlashAttention and sdpa. Otherwise the name itself."""
    if name in known:
        return name
    spelling = _value("op", name)
    return spelling if spelling in known else name


def level(name: str) -> str:
    """A memory level in our own spelling."""
    if name.lower() != "l1":
        return name
    say("perfmodel: l1 is read as shared, the memory on chip of one unit")
    return "shared"


def _value(column: str, name: str) -> str:
    from perfmodel.table.vocabulary import vocabulary

    return vocabulary().value(column, name)


def network(name: str) -> Network:
    """The network of that name or file. A repository's name is taken without its owner, and any
    name without endings such as -Instruct; a note says so.

    Raises what `perfmodel.networks.library.load` raises.
    """
    from perfmodel.networks import library

    repository = None if exists(name) else _REPOSITORY.fullmatch(name)
    if name.lower().endswith((".yaml", ".yml", ".json")) or ("/" in name and repository is None):
        return library.load(name)
    stem = candidate = repository[1] if repository else name
    while True:
        try:
            net = library.load(candidate)
        except UnknownName:
            shorter = _TUNED.sub("", candidate).removeprefix("Meta-")
            if shorter == candidate:
                return library.load(stem)
            candidate = shorter
            continue
        if candidate != name:
            say(f"perfmodel: {name} is predicted as {net.name}, the network of its size and kind")
        return net


def check_count(device: str) -> None:
    """Raise `ProblemError` for a number of devices in a device's name: h100:4, 8xh100."""
    match = None if exists(device) else _COUNTED.fullmatch(device.strip())
    if match is None:
        return
    name, count = match["name"] or match["of"], match["count"] or match["many"]
    raise ProblemError(
        f"-d {device} counts devices; write -d {name} with --tensor {count} (infer) or "
        f"--gpus {count} (train)"
    )
