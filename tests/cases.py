"""Cases of tests as data: tests/vectors/MODULE.yaml holds, by test or by table, one case a line.

A key `test_name(first, second)` is the cases of that test, whose arguments it names; any other key
is a table that the module reads by itself. Tuples are lists there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

VECTORS = Path(__file__).parent / "vectors"


@cache
def tables(module: str) -> dict[str, Any]:
    """All tables of a test module."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    path = VECTORS / f"{module.removeprefix('test_')}.yaml"
    return dict(yaml.load(path.read_text(encoding="utf-8"), Loader=loader))


def listed(file: str, name: str) -> Any:
    """One table of the test module at a path."""
    return tables(Path(file).stem)[name]


def cases(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test once a case of its own."""
    for key, rows in tables(Path(inspect.getfile(test)).stem).items():
        name, _, arguments = key.rstrip(")").partition("(")
        if name == test.__name__:
            return pytest.mark.parametrize(arguments, rows)(test)
    raise LookupError(f"no cases of {test.__name__}")
