"""Names in options: an unknown name is an error on the command line.

The model would time an unknown kernel as the usual one, which the user did not ask for. So it is an
error here, with the nearest names. (Measured tables keep such names, since their rows are real.)
"""

from __future__ import annotations

from collections.abc import Iterable
from os.path import exists

from perfmodel.cli.spellings import check_count
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device, load
from perfmodel.operators import Operator, owntile
from perfmodel.operators.owntile import NEEDED
from perfmodel.plaintext import quoted, whole_number
from perfmodel.timing.libraries import implementations, kernels
from perfmodel.timing.libraries.naming import asked_for, plain_names
from perfmodel.timing.runs import harnesses

_NAMES = {"rowwise": "row-wise operators"}


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


def placing(texts: Iterable[str] | None) -> dict[str, str]:
    """Operands and the memory levels that hold them, from kv=host or kv=host,weights=peer.

    Raises `ProblemError` for a text of another form, or an operand named twice.
    """
    places: dict[str, str] = {}
    for pair in (pair for text in texts or () for pair in names(text)):
        operand, equals, level = (part.strip() for part in pair.partition("="))
        if not (operand and equals and level):
            raise ProblemError(f"--place {quoted(pair)} is not OPERAND=LEVEL; write kv=host")
        if places.setdefault(operand, level) != level:
            raise ProblemError(
                f"--place puts {quoted(operand)} in {places[operand]} and in {level}; choose one"
            )
    return places


def mesh(texts: Iterable[str] | None) -> dict[str, tuple[int, str]]:
    """Axes with their numbers of devices and links, from k=2@nvlink; lists with commas too.

    Raises `ProblemError` for a text of another form, or an axis split twice.
    """
    axes: dict[str, tuple[int, str]] = {}
    for entry in (entry for text in texts or () for entry in names(text)):
        axis, _, rest = (part.strip() for part in entry.partition("="))
        count, _, link = (part.strip() for part in rest.partition("@"))
        ranks = _integer(count)
        if not axis or not link or "@" in axis + link or ranks is None:
            raise ProblemError(f"--mesh {quoted(entry)} is not AXIS=RANKS@LINK; write k=2@nvlink")
        if axes.setdefault(axis, (ranks, link)) != (ranks, link):
            raise ProblemError(f"--mesh splits {quoted(axis)} twice; choose one")
    return axes


def storing(texts: Iterable[str] | None) -> dict[str, str]:
    """Tensors and the axes that they are sharded along, from C=n, kv=x, C=whole; lists too.

    Raises `ProblemError` for a text of another form, or a tensor named twice.
    """
    shards: dict[str, str] = {}
    for pair in (pair for text in texts or () for pair in names(text)):
        tensor, equals, axis = (part.strip() for part in pair.partition("="))
        if not (tensor and equals and axis):
            raise ProblemError(f"--stored {quoted(pair)} is not TENSOR=AXIS; write C=n")
        if shards.setdefault(tensor, axis) != axis:
            raise ProblemError(
                f"--stored shards {quoted(tensor)} along {shards[tensor]} and along "
                f"{axis}; choose one"
            )
    return shards


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
    tile: dict[str, int] = {}
    for pair in names(text):
        dimension, _, number = (part.strip() for part in pair.partition("="))
        size = _integer(number)
        if not dimension or size is None:
            example = ",".join(f"{name}=128" for name in operator.own_tile[:NEEDED]) or "m=128"
            raise ProblemError(f"--tile {quoted(pair)} is not DIMENSION=SIZE; write {example}")
        if tile.setdefault(dimension, size) != size:
            raise ProblemError(f"--tile gives {quoted(dimension)} twice; choose one")
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
