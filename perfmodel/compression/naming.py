"""Names of schemes, as users type them.

fp16  w8a16  w4a16:g64  q4_k_m     a format of formats.yaml, optionally with a group size
squeeze:3  squeeze:3:0.45%         SqueezeLLM of 3 bits, optionally with sparse outliers
2:4  2:4:w4a16                     two of every four weights
csl:0.8  csr:95%                   a share of zeros
prune:0.25                         a share of heads and inner columns removed
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from perfmodel.compression import quantised
from perfmodel.compression.quantised import Format
from perfmodel.compression.scheme import PLAIN, Scheme
from perfmodel.compression.sparse import Csr, Pruned, Squeeze, TiledCsl, TwoOfFour
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.plaintext import quoted

KINDS = ("squeeze:3:0.45%", "2:4", "csl:0.8", "csr:0.95", "prune:0.25")
"""An example of each scheme that is not in the table of formats."""

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)(%?)")


def scheme(text: str) -> Scheme:
    """The scheme with this name. Raises `ProblemError` or `UnknownName`."""
    name = text.strip().lower()
    if name == "2:4" or name.startswith("2:4:"):
        return TwoOfFour(_dense(name[4:] or PLAIN))
    kind, *rest = name.split(":")
    maker = _MADE.get(kind)
    return _dense(name) if maker is None else maker(text, rest)


def _dense(text: str) -> Format:
    """A format of the table, optionally with another group size."""
    kind, *rest = text.split(":")
    try:
        format_ = quantised.load(kind)
    except UnknownName:
        raise UnknownName("weight format", text, (*quantised.names(), *KINDS)) from None
    if not rest:
        return format_
    if len(rest) > 1 or not re.fullmatch(r"g\d{1,6}", rest[0]):
        raise ProblemError(f"weight format {quoted(text)} is not NAME or NAME:gN; write w4a16:g64")
    return format_.in_groups_of(int(rest[0][1:]))


def _squeeze(text: str, rest: list[str]) -> Scheme:
    if not 1 <= len(rest) <= 2 or not re.fullmatch(r"\d", rest[0]):
        raise ProblemError(f"weight format {quoted(text)}: write squeeze:3 or squeeze:3:0.45%")
    return Squeeze(int(rest[0]), _share(text, rest[1]) if rest[1:] else 0.0)


def _share_reader(maker: Callable[[float], Scheme]) -> Callable[[str, list[str]], Scheme]:
    def read(text: str, rest: list[str]) -> Scheme:
        if len(rest) != 1:
            name = text.split(":")[0]
            raise ProblemError(f"weight format {quoted(text)}: write a share, such as {name}:0.8")
        return maker(_share(text, rest[0]))

    return read


_MADE: Mapping[str, Callable[[str, list[str]], Scheme]] = {
    "squeeze": _squeeze,
    "csl": _share_reader(TiledCsl),
    "csr": _share_reader(Csr),
    "prune": _share_reader(Pruned),
}


def _share(text: str, word: str) -> float:
    """A share, written as 0.8 or 80%."""
    match = _SHARE.fullmatch(word)
    if match is None:
        raise ProblemError(f"weight format {quoted(text)}: {quoted(word)} is no share; write 0.8")
    return float(match[1]) / (100.0 if match[2] else 1.0)
