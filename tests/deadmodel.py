"""A pytest plugin that makes every prediction fail: `-p deadmodel`.

It is loaded before any test module, so that tests import the replaced functions. The environment
variable DEAD_MODEL says how the model is dead: `refuses` raises, `repeats` gives the answer to the
first question to all. After the tests it lists those that passed nevertheless, and whether they
called the model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import Phase, settings

from perfmodel.errors import PerfmodelError

MODEL = (
    "predict:_question", "collectives.collectivetime:predict_collective",
    "networks.networktime:predict_network", "training.step:predict_step",
    "serving.steps:Steps.decode", "serving.steps:Steps.prefill", "serving.steps:Steps.mixed",
    "serving.steps:Steps.verify", "serving.steps:Steps.passes", "serving.cachememory:weight_bytes",
    "serving.cachememory:sequence_bytes", "offload.layertimes:predict_block",
    "offload.layertimes:block_seconds", "offload.policymemory:spans",
    "compression.compressed:Compressed.predict",
)  # fmt: skip
"""What predicts, as module:name below `perfmodel`."""

asked: set[str] = set()
failed: set[str] = set()
ran: dict[str, None] = {}
_current = ""


def refusing(_function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises."""

    def refuse(*_arguments: object, **_options: object) -> Any:
        asked.add(_current)
        raise PerfmodelError("the model is dead")

    return refuse


def constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose answer to the first question is its answer to all."""
    answers: list[Any] = []

    def repeat(*arguments: Any, **options: Any) -> Any:
        asked.add(_current)
        if not answers:
            answers.append(function(*arguments, **options))
        return answers[0]

    return repeat


def replace(place: str, kind: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a dead function in place of one, wherever it was imported."""
    module, _, path = place.partition(":")
    # Modules by their full names: `perfmodel.predict`, as an attribute, is the function.
    *classes, name = path.split(".")
    holder: Any = import_module(f"perfmodel.{module}")
    for each in classes:
        holder = getattr(holder, each)
    living = getattr(holder, name)
    dead = kind(living)
    setattr(holder, name, dead)
    for loaded in [each for key, each in sys.modules.items() if key.startswith("perfmodel.")]:
        if vars(loaded).get(name) is living:
            setattr(loaded, name, dead)


for _place in MODEL:
    replace(_place, {"refuses": refusing, "repeats": constant}[os.environ["DEAD_MODEL"]])

# Nothing is to be learnt from the smallest example of a failure that every example has.
settings.register_profile(
    "dead",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
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
