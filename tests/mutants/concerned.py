"""Which test modules concern a module of the library: those that import it over the fewest steps.

Where a run of the tests has recorded which test runs which line (`make coverage`), only tests that
run a mistake's line concern it: seconds in place of minutes. Otherwise whole modules do.

The imports are read from the text of all modules, those inside functions included. A name that a
package exports counts as an import of the module that defines it, and a command's name in a test as
an import of the command's module. Among tests that are as near, those that import fewer modules
come first: they are about less.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_LAWS = (
    "tests.docs.", "tests.cli.test_completion", "tests.cli.test_fuzz", "tests.cli.test_interrupts",
    "tests.cli.test_report_browser", "tests.cli.test_report_kinds_browser",
    "tests.unit.test_replacing",
)  # fmt: skip
"""Tests of printed numbers, of texts, and of the project's frame. A mistake that only they notice
has no law against it, so no mutant is run against them."""


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _trees() -> dict[str, ast.Module]:
    """Modules of the library and of the tests by their names, parsed."""
    paths = [
        *ROOT.glob("perfmodel/**/*.py"),
        *ROOT.glob("tests/*.py"),
        *ROOT.glob("tests/*/test_*.py"),
    ]
    return {_name(path): ast.parse(path.read_bytes()) for path in paths}


def _named(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name in it) of each import; no name for a whole module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def _home(module: str, name: str) -> str:
    """The module that defines a name, followed through the packages that export it."""
    inner = f"{module}.{name}"
    if not name or module not in _trees():
        return module
    if inner in _trees() and inner != "perfmodel.predict":
        return inner
    for source, exported in _named(_trees()[module]):
        if exported == name and source != module:
            return _home(source, name)
    return module


@cache
def _commands() -> dict[str, str]:
    """The module of each command."""
    names = (name for name in _trees() if name.startswith("perfmodel.cli."))
    return {name.rpartition(".")[2].strip("_"): name for name in names}


@cache
def _imports(module: str) -> frozenset[str]:
    tree = _trees()[module]
    found = {_home(source, name) for source, name in _named(tree)}
    if module.startswith("tests."):
        found = {f"tests.{name}" if f"tests.{name}" in _trees() else name for name in found}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                first = node.value.removeprefix("perfmodel ").partition(" ")[0]
                found |= {_commands()[first]} if first in _commands() else set()
    return frozenset(found & _trees().keys()) - {module, "perfmodel"}


@cache
def _users() -> dict[str, list[str]]:
    """The modules that import each module."""
    users: dict[str, list[str]] = {}
    for name in _trees():
        for used in _imports(name):
            users.setdefault(used, []).append(name)
    return users


@cache
def _words(module: str) -> frozenset[str]:
    tree = _trees()[module]
    return frozenset(re.findall(r"[a-z_]{4,}", ast.unparse(tree)))


def concerned(module: str, text: str = "") -> list[str]:
    """Paths of test modules from which imports lead to a module, the nearest first.

    Tests with a name of `text`, a part of the module, are a step nearer than others.
    """
    names = set(re.findall(r"[a-z_]{4,}", text))
    steps, todo = {module: 0}, deque([module])
    while todo:
        one = todo.popleft()
        for user in _users().get(one, ()):
            if user not in steps:
                steps[user] = steps[one] + 1
                todo.append(user)
    tests = [
        name for name in steps
        if name.startswith("tests.") and ".test_" in name and not name.startswith(WITHOUT_LAWS)
    ]  # fmt: skip
    tests.sort(
        key=lambda name: (steps[name] - bool(names & _words(name)), len(_imports(name)), name)
    )
    return [f"{name.replace('.', '/')}.py" for name in tests]


RECORD = ROOT / ".coverage"
"""Which tests ran which lines: what `make coverage` leaves."""


@cache
def _record() -> CoverageData:
    record = CoverageData(str(RECORD))
    record.read()
    return record


def running(path: Path, line: int, modules: list[str]) -> list[str]:
    """Tests of `modules` that ran a line of a file, one of each module in turn; none where no run
    has recorded it since the file changed."""
    if not RECORD.is_file() or RECORD.stat().st_mtime < path.stat().st_mtime:
        return []
    tests: dict[str, set[str]] = defaultdict(set)
    for context in _record().contexts_by_lineno(str(path)).get(line, ()):
        test = context.partition("|")[0]
        tests[test.partition("::")[0]].add(test)
    turns = zip_longest(*(sorted(tests[module]) for module in modules))
    return [test for test in chain.from_iterable(turns) if test]
