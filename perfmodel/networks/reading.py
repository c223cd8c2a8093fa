"""Networks in YAML: read a file, and write a network as one.

    name: mixtral-8x7b
    source: "Mixtral (2401.04088); config.json"
    hidden: 4096
    vocabulary: 32000
    blocks:
    - repeat: 32
      attention: {heads: 32, kv_heads: 8, head_size: 128}
      mlp: {inner: 14336, experts: 8, chosen: 2}

Keys are the fields of `network.Network` and its parts; a missing key takes the field's default.
Layers that alternate are written as `{repeat: 12, blocks: [one, other]}`. A file of several
networks has them under `networks`, each under its name and with `aliases`. `schema.py` has the JSON
Schema of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel import yamlfile, yamltable
from perfmodel.entries import Misfit, made, written
from perfmodel.errors import SpecError, nearest
from perfmodel.networks.network import Block, Network
from perfmodel.plaintext import quoted

SEVERAL = "networks"
"""The key of a file that holds several networks."""
TOTALS = ("parameters", "active")
"""Keys allowed under `sizes`."""
MOST_BLOCKS = 10_000
"""Limit on the blocks of a network, repeated ones included."""
_LONGEST = 64  # longest repeating sequence of blocks that is searched when a network is written
_MAPPING = "tag:yaml.org,2002:map"
_TOWER = "tower"
_STACKS = ("encoder", "blocks")
_LINES = ("name", "about", "source", "family", "weights")  # one line of printable text each
_FIRST = ("name", "about", "source", "family", "sizes")  # in the order of a written file


@dataclass(frozen=True)
class Entry:
    """A network in a file, with its aliases."""

    network: Network
    """The network."""
    aliases: tuple[str, ...] = ()
    """Its other names."""


def read(path: str | Path) -> tuple[Entry, ...]:
    """The networks of a YAML file. Raises `SpecError`: one line, "file:line: message"."""
    file = Path(path)
    return yamltable.kept(file, "networks", lambda: parse(yamlfile.read(file), str(path)))


def parse(text: str, where: str = "<text>") -> tuple[Entry, ...]:
    """The networks in a text. Raises `SpecError` as `read` does."""
    document = yamlfile.parse(text, where)
    try:
        return _networks(document.data)
    except _Wrong as error:
        raise SpecError(document.error(error.path, error.message)) from None


def made_of(data: Mapping[str, Any]) -> Network:
    """The network in plain data, with keys as in YAML. Raises `SpecError`."""
    try:
        return _entry((), data).network
    except _Wrong as error:
        raise SpecError(f"network {quoted(str(data.get('name', '')))}: {error.message}") from None


def text(network: Network) -> str:
    """The text of a file of one network; `parse` reads back an equal one."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Parts of a block stand on one line."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            return super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(
        _Flow, lambda dumper, data: dumper.represent_mapping(_MAPPING, data, flow_style=True)
    )
    return str(yaml.dump(plain(network), Dumper=Dumper, sort_keys=False, width=100,
                         allow_unicode=True, default_flow_style=False))  # fmt: skip


def plain(network: Network) -> dict[str, Any]:
    """A network as the plain data of a file; defaults are left out."""
    entry = written(network, without=(*_STACKS, _TOWER))
    first = {key: entry.pop(key) for key in _FIRST if key in entry}
    if "sizes" in first:
        first["sizes"] = _Flow(first["sizes"])
    stacks = {key: _entries(getattr(network, key)) for key in _STACKS if getattr(network, key)}
    tower = {} if network.tower is None else {_TOWER: plain(network.tower)}
    return {**first, **entry, **stacks, **tower}


class _Wrong(Exception):
    """A fault in a document, and its place."""

    def __init__(self, path: Sequence[str | int], message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = tuple(path), message


class _Flow(dict[str, Any]):
    """A mapping that is written on one line."""


def _networks(data: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Every network of a document."""
    if SEVERAL not in data:
        return (_entry((), data),)
    for key in data:
        if key != SEVERAL:
            raise _Wrong((key,), f"{key}: a file of several networks has them all below {SEVERAL}")
    table = data[SEVERAL]
    if not isinstance(table, Mapping) or not table:
        raise _Wrong((SEVERAL,), f"{SEVERAL} is a mapping, such as {{name: {{hidden: ...}}}}")
    return tuple(_entry((SEVERAL, name), entry, name) for name, entry in table.items())


def _entry(path: tuple[str, ...], entry: Any, name: str | None = None) -> Entry:
    """The network at a place of a document; its name may be the key above it."""
    try:
        if not isinstance(entry, Mapping):
            raise Misfit("", f"{quoted(str(entry))} is no mapping; write hidden: 4096 and so on")
        aliases = () if name is None else _aliases(entry.get("aliases", []))
        stacks = {key: _blocks(key, entry[key]) for key in _STACKS if key in entry}
        parts: dict[str, Any] = dict(stacks)
        if _TOWER in entry:
            parts[_TOWER] = _entry((*path, _TOWER), entry[_TOWER]).network
        reserved = {*parts, *(("aliases",) if name is not None else ())}
        rest = {key: value for key, value in entry.items() if key not in reserved}
        parts |= {} if name is None else {"name": name}
        return Entry(_valid_network(made(Network, rest, parts)), aliases)
    except Misfit as misfit:
        prefix = f"{name}: " if name is not None else ""
        raise _Wrong((*path, *misfit.faults[0][0]), f"{prefix}{misfit}") from None


def _valid_network(network: Network) -> Network:
    """The network, if its texts are single lines and its totals known keys."""
    for key in _LINES:
        if not getattr(network, key).isprintable():
            raise Misfit(key, "is one line of printable text; drop line ends and the like")
    for key in network.sizes:
        if key not in TOTALS:
            raise Misfit(("sizes", key), f"there is no such total; {nearest(key, TOTALS)}")
    return network


def _aliases(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise Misfit("aliases", "is a list of further names, such as [llama3]")
    return tuple(names)


def _blocks(key: str, entries: Any) -> tuple[Block, ...]:
    """The blocks of a list, with `{repeat: 12, blocks: [...]}` expanded."""
    if not isinstance(entries, list) or not entries:
        raise Misfit(key, "is a list of blocks; write - {attention: {...}, mlp: {...}}")
    blocks: list[Block] = []
    for place, item in enumerate(entries):
        try:
            blocks += (
                _repeated_blocks(item)
                if isinstance(item, Mapping) and "blocks" in item
                else [made(Block, item)]
            )
        except Misfit as misfit:
            raise misfit.under(place).under(key) from None
        if len(blocks) > MOST_BLOCKS:
            raise Misfit(key, f"more than {MOST_BLOCKS:,} blocks; join equal ones by repeat")
    return tuple(blocks)


def _repeated_blocks(entry: Mapping[str, Any]) -> list[Block]:
    for key in entry:
        if key not in ("repeat", "blocks"):
            raise Misfit(key, "blocks that alternate are {repeat: 12, blocks: [one, other]}")
    times = entry.get("repeat")
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= MOST_BLOCKS:
        raise Misfit("repeat", f"{times!r} is no whole number from 1 to {MOST_BLOCKS:,}")
    inner = _blocks("blocks", entry["blocks"])
    if len(inner) * times > MOST_BLOCKS:
        raise Misfit("repeat", f"{times:,} times {len(inner):,} blocks are too many")
    return [*inner] * times


def _entries(blocks: tuple[Block, ...]) -> list[Any]:
    """Blocks as entries; a repeating sequence is written once."""
    entries: list[Any] = []
    place = 0
    while place < len(blocks):
        length, times = _period(blocks, place)
        inner = [_block(block) for block in blocks[place : place + length]]
        entries += inner if times == 1 else [{"repeat": times, "blocks": inner}]
        place += length * times
    return entries


def _period(blocks: tuple[Block, ...], place: int) -> tuple[int, int]:
    """Length and count of the repeating sequence at `place` that covers most blocks; the shortest
    wins."""
    best = (1, 1)
    for length in range(1, min((len(blocks) - place) // 2, _LONGEST) + 1):
        sequence, times = blocks[place : place + length], 1
        while blocks[place + length * times :][:length] == sequence:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def _block(block: Block) -> dict[str, Any]:
    """A block as an entry: `repeat` first, each part on one line."""
    entry = written(block)
    times = {"repeat": entry.pop("repeat")} if "repeat" in entry else {}
    return times | {key: _flow(value) for key, value in entry.items()}


def _flow(value: Any) -> Any:
    return _Flow({k: _flow(v) for k, v in value.items()}) if isinstance(value, dict) else value
