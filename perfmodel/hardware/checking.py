"""Checks of a spec file: pydantic models of the blocks, loaded only for a file that needs a check.

Each class of blocks becomes a pydantic model with the same name and fields; validated data become a
block. The JSON Schema is generated from the models too.
"""

from __future__ import annotations

import re
from dataclasses import Field as Factory
from functools import cache, partial
from typing import Annotated, Any, Self, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    create_model,
    model_validator,
)

from perfmodel.hardware.block import BLOCKS, Block
from perfmodel.hardware.blocks import DTYPES, TAKEN, DType
from perfmodel.hardware.facts import Quantity, measured_in
from perfmodel.plaintext import quoted
from perfmodel.units import DIMENSIONS

_FACT_VALUES = {"type": ["number", "boolean", "string", "array"]}
_FORMULA = ("=", "+", "-", "@", "'")
_B = TypeVar("_B", bound=Block)


def checked(block: type[_B], data: Any) -> _B:
    """The block of that class that `data` describes; raises pydantic's `ValidationError`."""
    return block.of(dict(_models()[block.__name__].model_validate(data)))


def json_schema(block: type[Block]) -> dict[str, Any]:
    """The JSON Schema of data of a block."""
    return _models()[block.__name__].model_json_schema()


class _Base(BaseModel):
    """Base of the models. They are built on first use: one validator serves the whole spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        BLOCKS[type(self).__name__].of(dict(self)).agree()
        return self


@cache
def _models() -> dict[str, type[BaseModel]]:
    """A model for each class of blocks, by name; parts come before the blocks that contain them."""
    names: dict[str, Any] = {
        "bool": StrictBool, "Line": Line, "Label": Label, "Keys": Keys, "Whole": Whole,
        "Positive": Positive, "Capability": Capability, "FlopCounts": FlopCounts,
        "ClockText": Annotated[str | None, _quantity_schema("frequency")], "LinkName": LinkName,
        "PeakKey": PeakKey, "FactTable": FactTable, "AtLeastOne": AtLeastOne,
        "LevelName": LevelName,
    }  # fmt: skip
    models = {}
    for name, block in BLOCKS.items():
        models[name] = _model(block, names)
        names[name] = Annotated[models[name], AfterValidator(partial(_block, block))]
    return models


def _model(block: type[Block], names: dict[str, Any]) -> type[BaseModel]:
    """The model of a block; `names` maps the names in its annotations to pydantic types."""
    if issubclass(block, Quantity) and "dimensions" in vars(block):
        names = {**names, "Quantified": _quantity_type(block.dimensions)}
    hints = get_type_hints(block, localns=names, include_extras=True)
    fields: dict[str, Any] = {name: (hints[name], _default(block, name)) for name in block.fields}
    return create_model(block.__name__, __base__=_Base, __doc__=block.__doc__, **fields)


def _default(block: type[Block], name: str) -> Any:
    default = block.defaults.get(name, ...)
    return Field(default_factory=dict) if isinstance(default, Factory) else default


def _block(block: type[Block], model: BaseModel) -> Block:
    return block.of(dict(model))


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of printable text")
    return text


def _plain_name(text: str) -> str:
    """Names appear in tables that spreadsheets open, where these signs begin a formula."""
    if text.lstrip()[:1] in _FORMULA:
        raise ValueError(f"{quoted(text)}: a name does not begin with one of {' '.join(_FORMULA)}")
    return text


def _dense(text: str) -> str:
    """Structured sparsity doubles a peak on paper; specs hold dense figures only."""
    if "spars" in text.lower():
        raise ValueError(f"{text!r}: sparse figures are refused; give the dense one")
    return text


def _fact_value(value: Any) -> Any:
    """A number, a word, true or false, or a list of these."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, (bool, int, float, str)):
            raise ValueError(f"{quoted(str(item))} is no number, word, true or false")
        if isinstance(item, str):
            _one_line(item)
    return value


def _link_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,29}", name) or name in TAKEN:
        raise ValueError(
            f"{name[:60]!r} names no further link: write up to 30 of a-z, 0-9 and -, and no level "
            f"or term ({', '.join(TAKEN)})"
        )
    return name


def _peak_key(key: str) -> str:
    unit, _, dtype = key.partition(".")
    if unit not in ("matrix", "vector") or (dtype and dtype not in DTYPES):
        raise ValueError(f"peak note {key!r} must be matrix, vector, or with a type: matrix.fp8")
    return key


Line = Annotated[StrictStr, AfterValidator(_one_line)]
Label = Annotated[
    Line,
    AfterValidator(_dense),
    AfterValidator(_plain_name),
    WithJsonSchema({"type": "string", "pattern": rf"^\s*[^\s{''.join(map(re.escape, _FORMULA))}]"}),
]
Keys = Annotated[tuple[Line, ...], Field(min_length=1)]
Whole = Annotated[StrictInt, Field(gt=0, le=10**9)]
Positive = Annotated[StrictInt, Field(gt=0, le=10**12)]
FactTable = Annotated[
    dict[Line, Annotated[Any, AfterValidator(_fact_value), WithJsonSchema(_FACT_VALUES)]],
    Field(min_length=1),
]
Capability = Annotated[StrictStr | None, Field(pattern=r"^\d+\.\d$")]
FlopCounts = Annotated[dict[DType, Positive], Field(min_length=1)]
LinkName = Annotated[StrictStr, AfterValidator(_link_name)]
PeakKey = Annotated[StrictStr, AfterValidator(_peak_key)]
LevelName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9-]{0,29}$")]
AtLeastOne = Annotated[float, Field(ge=1, le=1000, strict=True)]


def _quantity_schema(*dimensions: str) -> Any:
    """The JSON Schema of a quantity in one of `dimensions`."""
    patterns = "|".join(f"({DIMENSIONS[name].pattern()})" for name in dimensions)
    examples = [DIMENSIONS[name].example for name in dimensions]
    return WithJsonSchema({"type": "string", "pattern": patterns, "examples": examples})


def _quantity_type(dimensions: tuple[str, ...]) -> Any:
    """A number with a unit of one of `dimensions`, within the range of real devices."""
    return Annotated[
        str,
        _quantity_schema(*dimensions),
        BeforeValidator(partial(_is_text, dimensions[0])),
        AfterValidator(partial(_is_of_a_device, dimensions)),
    ]


def _is_text(name: str, value: Any) -> str:
    example = DIMENSIONS[name].example
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f'{name} {value!r} has no unit; write it like "{example}"')
    if not isinstance(value, str):
        raise ValueError(f'{name} must be text such as "{example}", not {value!r}')
    return _dense(_one_line(value))


def _is_of_a_device(dimensions: tuple[str, ...], value: str) -> str:
    name, number = measured_in(value, dimensions)
    if number <= 0:
        raise ValueError(f"{name} {value!r} must be above zero")
    dimension = DIMENSIONS[name]
    if not dimension.least <= number <= dimension.most:
        unit = dimension.symbols[0]
        raise ValueError(
            f"{name} {value!r} is beyond any device's, {dimension.least:g} to "
            f"{dimension.most:g} {unit}"
        )
    return value
