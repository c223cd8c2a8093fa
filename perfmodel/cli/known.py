"""Names in options: an unknown name is an error on the command line.

The model would time an unknown kernel as the usual one, which the user did not ask for. So it is an
error here, with the nearest names. (Measured tables keep such names, since their rows are real.)
"""

from __future__ import annotations

from collections.abc import Iterable
from os.path import exists

from perfmodel.cli.spellings import check_count
from perfmodel.cli.spellings import names as names
from perfmodel.cli.spellings import one as one
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator, owntile
from perfmodel.operators.owntile import NEEDED
from perfmodel.plaintext import quoted, whole_number
from perfmodel.timing.libraries import implementations, kernels
from perfmodel.timing.libraries.naming import asked_for, plain_names
from perfmodel.timing.runs import harnesses

_NAMES = {"rowwise": "row-wise operators"}


def devices(texts: Iterable[str], *, repeats: bool = False) -> list[Device]:
    """The devices in `texts`: names, spec files, or lists of them with commas; a name that is given
    twice counts once, unless `repeats`.

    Raises `ProblemError` for an empty list, and what `perfmodel.hardware.load` raises.
    """
    entries = [name for text in texts for name in ((text,) if exists(text) else names(text))]
    unique = dict.fromkeys(entries)
    for name in unique:
        check_count(name)
    return [load(name) for name in (entries if repeats else unique)]


def schedules(operator: Operator, text: str) -> tuple[str, ...]:
    """The listed schedules. Raises `UnknownName` for one that the operator does not have."""
    kind = f"schedule of {operator.name}"
    return tuple(named(kind, name, operator.schedules) for name in names(text))


def pairs(option: str, texts: Iterable[str] | None, form: str, example: str) -> dict[str, str]:
    """Values by name, from NAME=VALUE, with commas or repeated.

    Raises `ProblemError` for a text of another `form`, or a name given twice.
    """
    values: dict[str, str] = {}
    for pair in (pair for text in texts or () for pair in names(text)):
        name, _, value = (part.strip() for part in pair.rpartition("="))
        if not (name and value):
            raise ProblemError(f"{option} {quoted(pair)} is not {form}; write {example}")
        if values.setdefault(name, value) != value:
            raise ProblemError(
                f"{option} gives {quoted(name)} as {values[name]} and as {value}; choose one"
            )
    return values


def placing(texts: Iterable[str] | None) -> dict[str, str]:
    """Operands and the memory levels that hold them, from kv=host. Raises as `pairs`."""
    return pairs("--place", texts, "OPERAND=LEVEL", "kv=host")


def storing(texts: Iterable[str] | None) -> dict[str, str]:
    """Tensors and the axes that they are sharded along, from C=n, kv=x, C=whole. Raises as
    `pairs`."""
    return pairs("--stored", texts, "TENSOR=AXIS", "C=n")


def mesh(texts: Iterable[str] | None) -> dict[str, tuple[int, str]]:
    """Axes with their numbers of devices and links, from k=2@nvlink. Raises as `pairs`."""
    form, example = "AXIS=RANKS@LINK", "k=2@nvlink"
    axes = {}
    for axis, text in pairs("--mesh", texts, form, example).items():
        count, _, link = (part.strip() for part in text.partition("@"))
        ranks = _integer(count)
        if not link or "@" in axis + link or ranks is None:
            raise ProblemError(f"--mesh {quoted(f'{axis}={text}')} is not {form}; write {example}")
        axes[axis] = ranks, link
    return axes


def _integer(text: str) -> int | None:
    """A whole number, which may be below zero; None for any other text."""
    number = whole_number(text.removeprefix("-"))
    return -number if number is not None and text.startswith("-") else number


def tiles(operator: Operator, texts: Iterable[str] | None) -> list[dict[str, int]]:
    """The user's tiles, from m=128,n=256,k=64; empty where the option was not given.

    Raises `ProblemError` for a text of another form, `UnknownName` for an unknown dimension.
    """
    return [_tile(operator, text) for text in texts or ()]


def _tile(operator: Operator, text: str) -> dict[str, int]:
    form = "DIMENSION=SIZE"
    example = ",".join(f"{name}=128" for name in operator.own_tile[:NEEDED]) or "m=128"
    tile = {}
    for dimension, number in pairs("--tile", [text], form, example).items():
        size = _integer(number)
        if size is None:
            pair = quoted(f"{dimension}={number}")
            raise ProblemError(f"--tile {pair} is not {form}; write {example}")
        tile[dimension] = size
    owntile.read(operator, tile)
    return tile


def harness(text: str) -> str:
    """The harness. Raises `UnknownName` for one without known overhead."""
    return named("harness", one("--harness", text), harnesses())


def implementation(operator: Operator, text: str | None) -> str | None:
    """Like `named_implementations`, for an option that takes one name."""
    return None if text is None else _implementation(operator, one("--implementation", text))


def named_implementations(operator: Operator, text: str | None) -> tuple[str | None, ...]:
    """Kernel classes of the operator, or a library's names for them; (None,) where none is named.

    Raises `UnknownName` for another name, and `ProblemError` for a kernel of another operator.
    """
    if text is None:
        return (None,)
    return tuple(_implementation(operator, name) for name in names(text))


def _implementation(operator: Operator, name: str) -> str:
    kernel = asked_for(operator.library, name) if operator.library else None
    if kernel is not None:
        return kernel
    choices = implementations(operator.library) if operator.library else {}
    if not choices:
        raise ProblemError(
            f"no library's kernel of {operator.name} is known, so there is none to name; drop "
            "--implementation: the fastest schedule found is timed"
        )
    facts = kernels().get(name)
    if facts is not None:
        computes = _NAMES.get(facts.operator, facts.operator)
        raise ProblemError(
            f"{name} computes {computes}, not {operator.name}, which runs as {', '.join(choices)}"
        )
    kind = f"implementation of {operator.name}"
    raise UnknownName(kind, name, plain_names(operator.library), _hint(operator.name))


def _hint(operator: str) -> str:
    return f"(perfmodel list implementations --operator {operator})"


def named(kind: str, name: str, known: Iterable[str]) -> str:
    """The name, if known. Raises `UnknownName` with the nearest names."""
    choices = tuple(known)
    if name not in choices:
        raise UnknownName(kind, name, choices)
    return name
