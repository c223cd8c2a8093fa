"""Names in options: an unknown name is an error on the command line.

The model would time an unknown kernel as the usual one, which the user did not ask for. So it is an
error here, with the nearest names. (Measured tables keep such names, since their rows are real.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os.path import exists

from perfmodel.cli.spellings import check_count, named, names, pairs
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator, owntile
from perfmodel.operators.owntile import NEEDED
from perfmodel.plaintext import quoted, whole_number
from perfmodel.timing.libraries import implementations, kernels
from perfmodel.timing.libraries.naming import asked_for, plain_names
from perfmodel.timing.runs import harnesses


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


def harness(name: str) -> str:
    """The harness. Raises `UnknownName` for one without known overhead."""
    return named("harness", name, harnesses())


def mesh(texts: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Axes with their numbers of devices and links, from k=2@nvlink. Raises `ProblemError`."""
    axes = {}
    for axis, text in texts.items():
        count, _, link = (part.strip() for part in text.partition("@"))
        ranks = _integer(count)
        if not link or "@" in axis + link or ranks is None:
            pair = quoted(f"{axis}={text}")
            raise ProblemError(f"--mesh {pair} is not AXIS=RANKS@LINK; write k=2@nvlink")
        axes[axis] = ranks, link
    return axes


def tile(operator: Operator, text: str) -> dict[str, int]:
    """The user's tile, from m=128,n=256,k=64.

    Raises `ProblemError` for a text of another form, `UnknownName` for an unknown dimension.
    """
    form = "DIMENSION=SIZE"
    example = ",".join(f"{name}=128" for name in operator.own_tile[:NEEDED]) or "m=128"
    sizes = {}
    for dimension, number in pairs("--tile", [text], form, example).items():
        size = _integer(number)
        if size is None:
            pair = quoted(f"{dimension}={number}")
            raise ProblemError(f"--tile {pair} is not {form}; write {example}")
        sizes[dimension] = size
    owntile.read(operator, sizes)
    return sizes


def _integer(text: str) -> int | None:
    """A whole number, which may be below zero; None for any other text."""
    number = whole_number(text.removeprefix("-"))
    return -number if number is not None and text.startswith("-") else number


def implementation(operator: Operator, name: str) -> str:
    """A kernel class of the operator, or a library's name for one.

    Raises `UnknownName` for another name, and `ProblemError` for a kernel of another operator.
    """
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
        computes = "row-wise operators" if facts.operator == "rowwise" else facts.operator
        raise ProblemError(
            f"{name} computes {computes}, not {operator.name}, which runs as {', '.join(choices)}"
        )
    hint = f"(perfmodel list implementations --operator {operator.name})"
    kind = f"implementation of {operator.name}"
    raise UnknownName(kind, name, plain_names(operator.library), hint)
