"""The JSON Schema of a network file, from the dataclasses (`perfmodel.formats`)."""

from __future__ import annotations

from typing import Any

from perfmodel.entryschema import array_of, object_of
from perfmodel.networks.network import ACTIVATIONS, Block, Network
from perfmodel.networks.reading import MOST_BLOCKS, SEVERAL, TOTALS


def schema() -> dict[str, Any]:
    """The schema of a file."""
    network = _network()
    entry = {**network, "properties": dict(network["properties"])}
    entry["properties"]["aliases"] = array_of({"type": "string"}, "Further names of the network.")
    del entry["properties"]["name"]
    entry["required"] = [key for key in network["required"] if key != "name"]
    networks = {
        "type": "object",
        "properties": {
            SEVERAL: {
                "type": "object",
                "description": "Networks by name.",
                "minProperties": 1,
                "additionalProperties": entry,
            }
        },
        "required": [SEVERAL],
        "additionalProperties": False,
    }
    return {
        "title": "A network, or several",
        "if": {"required": [SEVERAL]},
        "then": networks,
        "else": network,
        "$defs": {"block": _block(), "blocks": _blocks(), Network.__name__: network},
    }


def _network() -> dict[str, Any]:
    schema = object_of(Network)
    for key in ("blocks", "encoder"):
        description = schema["properties"][key]["description"]
        schema["properties"][key] = {"$ref": "#/$defs/blocks", "description": description}
    totals = {key: {"type": "integer", "minimum": 0} for key in TOTALS}
    schema["properties"]["sizes"] |= {"properties": totals, "additionalProperties": False}
    return schema


def _block() -> dict[str, Any]:
    schema = object_of(Block)
    schema["properties"]["mlp"]["properties"]["activation"]["enum"] = list(ACTIVATIONS)
    return schema


def _blocks() -> dict[str, Any]:
    """Schema of a list of blocks, single or alternating."""
    sequence = {
        "type": "object",
        "description": "Blocks that alternate, and how many times.",
        "properties": {
            "repeat": {"type": "integer", "minimum": 1, "maximum": MOST_BLOCKS},
            "blocks": {"$ref": "#/$defs/blocks"},
        },
        "required": ["repeat", "blocks"],
        "additionalProperties": False,
    }
    return {
        "type": "array",
        "minItems": 1,
        "items": {
            "if": {"required": ["blocks"]},
            "then": sequence,
            "else": {"$ref": "#/$defs/block"},
        },
    }
