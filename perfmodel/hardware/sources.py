"""What the sources are that several specs name (`sources.yaml`), so that each is said once.

A spec explains the others itself, under `sources`, and comes first where both have a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable

PATH = Path(__file__).with_name("sources.yaml")


@lru_cache(maxsize=1)
def shared() -> Mapping[str, str]:
    """Title and address of each source by its key."""
    titles: Mapping[str, str] = yamltable.read(PATH)
    return titles


def completed(spec: dict[str, Any]) -> dict[str, Any]:
    """The data of a spec with all the sources that it names, as far as they are known."""
    entries = spec.get("sources", {})
    if not isinstance(entries, dict):
        return spec
    defaults = {key: shared()[key] for key in _source_keys(spec) if key in shared()}
    return {**spec, "sources": dict(sorted({**defaults, **entries}.items()))}


def _source_keys(data: Any) -> Iterator[str]:
    """The sources of every fact."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == "source" and isinstance(value, list):
                yield from (item for item in value if isinstance(item, str))
            else:
                yield from _source_keys(value)
    elif isinstance(data, list):
        for item in data:
            yield from _source_keys(item)
