"""The JSON Schema of a hardware spec, generated from the models and committed beside them.

Editors use it to complete and check spec files. After a change of the models, write it again:

    python -c "from perfmodel.hardware import schema; schema.write()"
"""

from __future__ import annotations

import json
from pathlib import Path

from perfmodel.hardware.device import Device

PATH = Path(__file__).with_name("hardware_spec.schema.json")


def text() -> str:
    """The schema, as the committed file has it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= Device.model_json_schema()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Replace the committed file."""
    PATH.write_text(text(), encoding="utf-8")
