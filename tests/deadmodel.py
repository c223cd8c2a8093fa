"""A pytest plugin that makes every prediction fail: `-p deadmodel`.

It is loaded before any test module, so that tests import the replaced functions from
`perfmodel.predict`. After the tests it lists those that passed nevertheless, and whether they
called the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn

import pytest
from hypothesis import Phase, settings

from perfmodel.errors import PerfmodelError

asked: set[str] = set()
failed: set[str] = set()
ran: dict[str, None] = {}
_current = ""


def refuse(*_arguments: object, **_options: object) -> NoReturn:
    """The replacement of `predict_arrays`: raises."""
    asked.add(_current)
    raise PerfmodelError("the model is dead")


# By its full name: `perfmodel.predict`, as an attribute, is the function.
import_module("perfmodel.predict").predict_arrays = refuse

# Nothing is to be learnt from the smallest example of a failure that every example has.
settings.register_profile(
    "dead", deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remember which test is running."""
    global _current
    _current = item.nodeid.partition("[")[0]
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the outcome of a test's phase; all parameters of a test count as one."""
    name = report.nodeid.partition("[")[0]
    ran[name] = None
    if report.failed:
        failed.add(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each test that passed with every one of its parameters."""
    for name in ran:
        if name not in failed:
            terminalreporter.write_line(f"LIVES {name} {'asked' if name in asked else 'quiet'}")
