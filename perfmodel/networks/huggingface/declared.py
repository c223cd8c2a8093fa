"""A family as it is declared: the fields of a network as expressions of a config.json's keys.

    network = declared("qwen3", Config(keys))

declared.yaml has the families and says what a declaration may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, replace
from functools import lru_cache
from keyword import iskeyword
from pathlib import Path
from types import CodeType
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import ProblemError
from perfmodel.networks.huggingface.config import KEYS, Config, known
from perfmodel.networks.images import Patches, Projector
from perfmodel.networks.network import (
    Block,
    Indexer,
    Latent,
    Mlp,
    Network,
    SelfAttention,
    State,
)
from perfmodel.networks.sound import Frames

Section = Mapping[str, Any]
_DOCUMENT: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("declared.yaml"))
FAMILIES = tuple(_DOCUMENT["families"])
"""Names of the declared families."""
TOWERS = tuple(_DOCUMENT["towers"])
"""Names of the declared encoders of images."""
WRAPPERS: Mapping[str, Section] = _DOCUMENT["wrappers"]
"""What wrappers of an encoder change, by `model_type`."""
_KINDS = {word: kind for kind, words in _DOCUMENT["kinds"].items() for word in words}
_PARTS: Mapping[str, type] = {
    "latent": Latent, "indexer": Indexer, "state": State, "patches": Patches,
    "projectors": Projector, "frames": Frames,
}  # fmt: skip
_INNER = ("mlp", "moe")
"""Layers that are an inner layer alone, where a layer is one part."""
_TYPES = {"int": "a whole number", "bool": "true or false", "float": "a number"}


def declared(name: str, config: Config) -> Network:
    """The network of a file, read as a family. Raises `ProblemError` and `UnknownName`."""
    return _Reading(_family(name), config).network()


def tower(name: str, config: Config, wrapper: str, file: Config, width: int) -> Network:
    """The encoder of images of a file, below its `vision_config`; `width` is that of the text that
    reads its output. Raises as `declared`."""
    family = _merged(_family(name, "towers"), WRAPPERS.get(wrapper, {}))
    config.idle(*_family("encoder", "towers")["idle"])
    reading = _Reading(family, config)
    reading.names.update(width=width, file=_Below(reading.names, file))
    return replace(reading.network(), name="vision", family=name)


@lru_cache(maxsize=128)
def _family(name: str, table: str = "families") -> Section:
    """A declaration with all that it differs from."""
    entry = {**_DOCUMENT["bases"], **_DOCUMENT[table]}[name]
    like = entry.get("like", ())
    base: Section = {}
    for parent in (like,) if isinstance(like, str) else like:
        base = _merged(base, _family(parent, table))
    return _merged(base, {key: value for key, value in entry.items() if key != "like"})


def _merged(base: Section, more: Section) -> Section:
    """Mappings merged at every depth; other values are replaced."""
    merged = dict(base)
    for key, value in more.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merged(below, value)
        merged[key] = value
    return merged


class _Names(dict[str, Any]):
    """What the names of an expression are: values, `names` of the family, or keys of the file."""

    def __init__(self, config: Config, names: Section, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.config, self.names = config, names
        self.keys_read: list[tuple[Config, str, Any]] = []

    def __missing__(self, name: str) -> Any:
        if name in self.names:
            return self.value(self.names[name])
        return self.key(self.config, *KEYS.get(name, (name,)))

    def key(self, config: Config, *keys: str) -> Any:
        """A key's value, of whatever type; None where there is none."""
        key, value = config.plain(*keys)
        self.keys_read.append((config, key, value))
        return value

    def value(self, expression: Any) -> Any:
        """The value of an expression. Raises `ProblemError` where types do not go together."""
        if not isinstance(expression, str):
            return expression
        try:
            return eval(_compiled(expression), {"__builtins__": {}}, self)
        except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
            for config, key, value in self.keys_read:
                if isinstance(value, str | float) or value is None:
                    if value is None:
                        raise config.lacks(key) from None
                    raise config.wrong(key, value, "a whole number") from None
            raise ProblemError(f"{expression} has no value: {error}; correct the file") from None


class _Below:
    """A nested mapping of the file, whose keys are attributes in expressions."""

    def __init__(self, names: _Names, config: Config) -> None:
        self._names, self._config = names, config

    def __getattr__(self, key: str) -> Any:
        return self._names.key(self._config, key)


@lru_cache(maxsize=2048)
def _compiled(expression: str) -> CodeType:
    return compile(expression, "declared.yaml", "eval")


def _share(width: int, parts: int) -> int:
    """A whole number of parts."""
    if not parts or width % parts:
        fits = [n for n in range(1, min(width, 4 * parts) + 1) if width % n == 0]
        raise ProblemError(
            f"width {width:,} does not divide by {parts} heads; give head_dim, or "
            f"heads of {', '.join(map(str, fits[-6:]))}"
        )
    return width // parts


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "act": known,
    "share": _share,
    "bool": bool,
    "len": len,
    "round": round,
    "side_of": lambda value: value[0] if isinstance(value, list | tuple) else value,
    "is_number": lambda value: isinstance(value, int),
    "step_of": lambda layers, sparse: max(layers // sparse, 1) if sparse else 0,
}
"""Functions of expressions; `step_of`: every how many layers one of `sparse` has experts;
`side_of`: the side of a square that may be written as two."""


class _Reading:
    """One file under one declaration."""

    def __init__(self, family: Section, config: Config) -> None:
        self.family, self.config = family, config
        self.names = _Names(config, family.get("names", {}), _FUNCTIONS)
        for key in family.get("nested", ()):
            self.names[key] = _Below(self.names, config.nested(key))
        config.idle(*family.get("idle", ()), *_keys(family))

    def network(self) -> Network:
        """The network, its blocks and what is to be known of the file."""
        family = self.family
        parts = {name: family[name] for name in ("patches", "projectors") if name in family}
        values = self._values(Network, {**family["network"], **parts})
        blocks = self._blocks()
        for expression, text in family.get("refused", {}).items():
            if self.names.value(expression):
                raise ProblemError(text)
        for expression, text in family.get("left_out", {}).items():
            if self.names.value(expression):
                is_key = expression.isidentifier() and not iskeyword(expression)
                self.config.notes.append(f"{expression}: {text}" if is_key else text)
        encoder: tuple[Block, ...] = ()
        if "encoder" in family:
            other = {key: part for key, part in family.items() if key not in ("cross", "encoder")}
            encoder = _Reading(_merged(other, family["encoder"]), self.config)._blocks()
        return Network(name="imported", blocks=blocks, encoder=encoder, **values)

    def _blocks(self) -> tuple[Block, ...]:
        """Layers in order, equal neighbours as one block with how often it comes."""
        blocks: list[Block] = []
        kinds = self._kinds()
        for i, kind in enumerate(kinds):
            self.names.update(i=i, kind=kind)
            if self.family.get("single") and kind in _INNER:
                if not blocks or blocks[-1].mlp.inner:
                    raise ProblemError(
                        f"layer {i} is an inner layer without a mixer before it, which is not "
                        "described"
                    )
                blocks[-1] = replace(blocks[-1], mlp=self._mlp())
            else:
                blocks.append(self._block())
        return _grouped(blocks)

    def _kinds(self) -> list[str]:
        """What the file calls each layer; empty where it says nothing."""
        count = self._typed("int", self.family["layers"])
        if count is None:
            raise self._lacks(self.family["layers"])
        key = self.family.get("layer_kinds", "layer_types")
        words = self.names.value(key)
        if words is None:
            return [""] * count
        if not isinstance(words, str | list) or not all(isinstance(w, str | int) for w in words):
            raise self.config.wrong(key, words, "a list of texts")
        if key == "layer_types" and not all(isinstance(word, str) for word in words):
            raise self.config.wrong(key, words, "a list of texts")
        if len(words) != count:
            raise ProblemError(f"layer_types has {len(words)} entries for {count} layers")
        kinds = self.family.get("kinds", ("sliding", "full"))
        for word in words:
            if _KINDS.get(word) not in kinds:
                names = [name for name, kind in _KINDS.items() if kind in kinds]
                raise ProblemError(
                    f"layers of kind {word} are none of those that are known ({', '.join(names)})"
                )
        return [_KINDS[word] for word in words]

    def _block(self) -> Block:
        family = self.family
        linear = "linear" in family and self._holds(family["linear"])
        mixer = family["linear" if linear else "attention"]
        attention = SelfAttention(**self._values(SelfAttention, mixer))
        cross = None
        if "cross" in family:
            cross = SelfAttention(
                **self._values(SelfAttention, _merged(family["attention"], family["cross"]))
            )
        mlp = Mlp(0) if family.get("single") else self._mlp()
        return Block(attention, mlp, cross=cross, **self._values(Block, family.get("block", {})))

    def _mlp(self) -> Mlp:
        """A dense inner layer, or one of experts."""
        dense, experts = self.family["mlp"], self.family.get("experts")
        if experts is None or not self._holds(experts):
            return Mlp(**self._values(Mlp, dense))
        values = self._values(Mlp, {**dense, **experts})
        for name in ("experts", "chosen"):
            if name not in values:
                raise self._lacks(experts[name])
        return Mlp(**values)

    def _holds(self, section: Section) -> bool:
        return bool(self.names.value(section.get("when", True)))

    def _values(self, noun: type, section: Section) -> dict[str, Any]:
        """The fields of a noun that a section says."""
        known_fields: dict[str, Field[Any]] = {each.name: each for each in fields(noun)}
        values = {}
        for name, expression in section.items():
            if name == "when":
                continue
            if isinstance(expression, Mapping):
                part = _PARTS[name]
                values[name] = part(**self._values(part, expression))
                continue
            if isinstance(expression, list):
                values[name] = tuple(
                    _PARTS[name](**self._values(_PARTS[name], each))
                    if isinstance(each, Mapping)
                    else self._typed("int", each)
                    for each in expression
                )
                continue
            member = known_fields[name]
            value = self._typed(str(member.type), expression)
            if value is not None:
                values[name] = value
            elif member.default is MISSING:
                raise self._lacks(expression)
        return values

    def _typed(self, kind: str, expression: Any) -> Any:
        """The value of an expression, checked to be of a field's type."""
        if not isinstance(expression, str):
            return expression
        config, plain = self.config, expression.isidentifier()
        plain = plain and expression not in self.names and expression not in self.names.names
        keys = KEYS.get(expression, (expression,))
        if plain and kind == "int":
            return config.maybe(*keys)
        if plain and kind == "bool":
            return config.flag(expression)
        if plain and kind == "float":
            return config.share(*keys)
        if plain and kind not in _TYPES:
            return expression  # a word of ours
        self.names.keys_read.clear()
        value = self.names.value(expression)
        if kind == "bool":
            value = bool(value)
        if value is None or kind not in _TYPES:
            return value
        right = (
            isinstance(value, bool)
            if kind == "bool"
            else (isinstance(value, int) and not isinstance(value, bool))
        )
        if not right:
            for source, key, raw in self.names.keys_read:
                if raw is value or raw == value:
                    raise source.wrong(key, raw, _TYPES[kind])
            raise ProblemError(f"{expression} is {value}; it is {_TYPES[kind]}")
        return value

    def _lacks(self, expression: str) -> ProblemError:
        """The error of a size that a file leaves out."""
        names = _compiled(expression).co_names
        return self.config.lacks(*KEYS.get(names[0], names[:1]))


def _grouped(blocks: list[Block]) -> tuple[Block, ...]:
    """Layers, equal neighbours as one block with how often it comes."""
    groups: list[Block] = []
    for block in blocks:
        if groups and replace(groups[-1], repeat=1) == block:
            groups[-1] = replace(block, repeat=groups[-1].repeat + 1)
        else:
            groups.append(block)
    return tuple(groups)


def _keys(declaration: Any) -> Iterator[str]:
    """Every key that a declaration names."""
    if isinstance(declaration, Mapping):
        for key, part in declaration.items():
            if key in ("left_out", "refused"):
                for expression in part:
                    yield from _keys(expression)
            elif key not in ("nested", "idle", "kinds", "tower"):
                yield from _keys(part)
    elif isinstance(declaration, list):
        for part in declaration:
            yield from _keys(part)
    elif isinstance(declaration, str):
        for name in _compiled(declaration).co_names:
            yield from KEYS.get(name, (name,))
