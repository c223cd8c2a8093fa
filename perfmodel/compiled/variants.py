"""Variants: one compiled function for each kind of call, recorded and built where it pays.

PERFMODEL_COMPILED is `auto`, `wait` or `off`. With `auto` a kind of call is recorded after many
predictions of it, code that the cache holds is used, and new code is built in the background while
NumPy computes. With `wait` code is recorded and built on the first call. NumPy computes all that no
variant does, with the same numbers to 1e-12.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass

if TYPE_CHECKING:  # a single prediction does not load them
    from perfmodel.compiled.interpreter import Interpreter
    from perfmodel.compiled.writer import Program

ENVIRONMENT = "PERFMODEL_COMPILED"
"""Environment variable: auto, wait or off."""
CHUNK = 2**16
"""Most problems of one call of a compiled function; NumPy takes fewer at once."""
# Predictions of one kind after which recording and building it pays, and what a call by itself
# costs beside them, in predictions of a long array.
_PAYS, _CALL = 20_000, 200
# Sample problems of a recording, and problems whose results are compared with NumPy's first.
_SAMPLES, _COMPARED = 24, 64
# Largest relative difference between the two.
_AGREES = 1e-11

Function = Callable[[Mapping[str, Any]], tuple[Any, Mapping[str, Any]]]
"""What is compiled: from arrays over problems to plain facts and named arrays of results."""


@dataclass
class Variant:
    """A compiled function with the numbers of one device."""

    answer: Any
    """The plain facts of the results."""
    program: Program
    """The source, with its constants and menus."""
    rows: Mapping[str, int]
    """The place of each result among what the program computes."""
    words: Mapping[str, Sequence[str]]
    """Results that are words: those that their numbers stand for."""
    guards: Sequence[tuple[int, str]]
    """Nodes of which any or all were true where it was recorded, or not."""
    decisions: tuple[bool, ...]
    """Which were; the same must be so for other problems."""
    nodes: Sequence[int]
    """Nodes of the results and of the guards."""
    interpreter: Interpreter
    """The same by NumPy."""
    run: Any = None
    """The function; None until it is built."""
    faulty: bool = False
    """Whether building failed, results differ from NumPy's, or a time lay below its bound."""

    def results(
        self, arrays: Mapping[str, np.ndarray], few: int, *, plain: bool = False
    ) -> dict[str, Any] | None:
        """The results for the first of some problems, or `plain` ones for one problem; None where
        these are of another kind than recorded."""
        n = len(next(iter(arrays.values())))
        if self.run is None and n > few:
            n, arrays = few, {name: values[:few] for name, values in arrays.items()}
        table = None if self.faulty else self._computed(arrays, n)
        if table is None:
            return None
        if plain:
            column = table[:, 0].tolist()
            results = {name: column[row] for name, row in self.rows.items()}
            return results | {name: words[int(results[name])] for name, words in self.words.items()}
        results = {name: table[row, :n] for name, row in self.rows.items()}
        return results | {
            name: np.array(words)[results[name].astype(np.intp)]
            for name, words in self.words.items()
        }

    def _computed(self, arrays: Mapping[str, np.ndarray], n: int) -> np.ndarray | None:
        """A row for each number that the program computes, unless the problems are of another
        kind."""
        table, decisions, broken = (self._interpreted if self.run is None else self._run)(arrays, n)
        self.faulty |= broken
        kind = tuple(map(bool, decisions))
        return None if self.faulty or kind != self.decisions else table

    def _run(self, arrays: Mapping[str, np.ndarray], n: int) -> tuple[Any, Any, bool]:
        """Results, guards, and whether a bound was wrong, by compiled code."""
        inputs, room = self.program.inputs, -(-n // 8) * 8
        columns = np.empty((len(inputs), room))
        for row, name in zip(columns, inputs, strict=True):
            row[:n] = arrays[name]
        columns[:, n:] = columns[:, n - 1 : n]
        table = np.empty((self.height, room))
        decisions = np.empty(len(self.guards) + 1, dtype=np.int64)
        self.run(n, _address(columns), _address(table), room, *self._numbers, _address(decisions))
        *truths, broken = decisions.tolist()
        return table, truths, bool(broken)

    def _interpreted(self, arrays: Mapping[str, np.ndarray], n: int) -> tuple[Any, Any, bool]:
        """The same by NumPy."""
        inputs = {name: np.asarray(arrays[name], dtype=np.float64) for name in self.program.inputs}
        values, broken = self.interpreter.run(inputs, self.nodes)
        table = np.empty((self.height, n))
        for row, value in zip(table, values[: self.height], strict=True):
            row[:] = value
        tests = zip(self.guards, values[self.height :], strict=True)
        return table, [getattr(np, quantifier)(value) for (_, quantifier), value in tests], broken

    def __post_init__(self) -> None:
        tables = self.program.tables
        self.height = max(self.rows.values(), default=-1) + 1
        self._menus = np.array([each.ctypes.data for each in tables] or [0], dtype=np.uintp)
        self._lengths = np.array([len(each) for each in tables] or [0], dtype=np.int64)
        device = (self.program.constants, self._menus, self._lengths)
        self._numbers = tuple(map(_address, device))


def _address(array: Any) -> int:
    """Where the numbers of a writable array start, in a fourth of the time of its own `ctypes`."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


@dataclass
class _Kind:
    """What is known of one kind of call."""

    kept: Any
    """Objects that its key names by their id, so that no other object takes it."""
    spent: int = 0
    """Predictions so far."""
    variants: list[Variant] = field(default_factory=list)
    """One for each set of decisions that its problems took."""
    refused: bool = False
    """Whether the function cannot be recorded."""


# The kinds of call of this process, those that were asked for last at the end.
_KINDS: dict[Hashable, _Kind] = {}
_MOST_KINDS = 256
# Variants of a kind: problems that decide otherwise than all of them are left to NumPy.
_MOST_VARIANTS = 4


def mode() -> str:
    """auto, wait or off. Raises `ProblemError` for another value of PERFMODEL_COMPILED."""
    value = os.environ.get(ENVIRONMENT, "auto")
    if value not in ("auto", "wait", "off"):
        raise ProblemError(f"{ENVIRONMENT} is {value!r}; write auto, wait or off")
    return value


def described() -> str:
    """What computes arrays of predictions, in words."""
    from perfmodel.compiled.build import carried, compiler

    if mode() == "off":
        return f"computes arrays by NumPy: {ENVIRONMENT} is off"
    ways = ["code of its own package"] if carried() else []
    ways += [f"code that {compiler()} builds"] if compiler() else []
    if not ways:
        return "computes arrays by NumPy: there is no C compiler"
    return f"computes long arrays by {' and by '.join(ways)}"


def computed(
    key: Hashable,
    kept: Any,
    function: Function,
    arrays: Mapping[str, np.ndarray],
    few: int,
    *,
    plain: bool = False,
) -> tuple[Any, dict[str, Any]] | None:
    """What `function` gives of the first of some problems, by compiled code; None where there is
    none.

    `key` names everything that the function depends on besides the arrays; `kept` are objects
    that it names by their id. NumPy takes only `few` problems at once, which stay in the CPU's
    cache. Of one problem the results may be `plain` numbers and words.
    """
    if (way := mode()) == "off":
        return None
    kind = _KINDS.pop(key, None) or _Kind(kept)
    _KINDS[key] = kind
    if len(_KINDS) > _MOST_KINDS:
        _KINDS.pop(next(iter(_KINDS)), None)
    kind.spent += len(next(iter(arrays.values()))) + _CALL
    if kind.refused or not (way == "wait" or kind.spent >= _PAYS):
        return None
    for variant in kind.variants:
        results = variant.results(arrays, few, plain=plain)
        if results is not None:
            return variant.answer, results
    if len(kind.variants) == _MOST_VARIANTS:
        return None
    # NumPy goes first: what the model keeps for later calls is no part of the recording then.
    first = {name: values[:_COMPARED] for name, values in arrays.items()}
    _, reference = function(first)
    new = _recorded(function, arrays)
    if new is None:
        kind.refused = True
        return None
    kind.variants.append(new)
    _build(new, waits=way == "wait")
    new.faulty |= not _agree(new.results(first, _COMPARED), reference)
    results = new.results(arrays, few, plain=plain)
    return None if results is None else (new.answer, results)


def _recorded(function: Function, arrays: Mapping[str, np.ndarray]) -> Variant | None:
    """The variant for problems that decide as some do; None where it cannot be recorded."""
    from perfmodel.compiled.bound import searches
    from perfmodel.compiled.interpreter import Interpreter
    from perfmodel.compiled.recording import UnrecordableError, record
    from perfmodel.compiled.writer import write

    n = len(next(iter(arrays.values())))
    index = np.unique(np.linspace(0, n - 1, _SAMPLES).astype(np.intp))
    try:
        answer, recording, results, words = record(
            function, {name: values[index] for name, values in arrays.items()}
        )
        guards = list(recording.guards)
        computed = list(dict.fromkeys(results.values()))
        nodes = [*computed, *(node for node, _ in guards)]
        by_bounds = searches(recording.graph, nodes)
        program = write(recording.graph, computed, guards, by_bounds)
    except (UnrecordableError, TypeError, ValueError):  # what recording numbers cannot do
        return None
    decisions = tuple(recording.guards[guard] for guard in guards)
    return Variant(
        answer,
        program,
        {name: computed.index(node) for name, node in results.items()},
        words,
        guards,
        decisions,
        nodes,
        Interpreter(recording.graph, by_bounds),
    )


def _build(variant: Variant, *, waits: bool) -> None:
    """Load the variant's code; where the cache lacks it, build it, in the background unless
    `waits`."""
    from perfmodel.compiled.build import compiler, loaded

    def build() -> None:
        try:
            variant.run = loaded(variant.program.source, build=True)
        except OSError:
            variant.faulty = True

    try:
        variant.run = loaded(variant.program.source, build=waits)
    except OSError:
        variant.faulty = True
    if variant.run is None and not variant.faulty and compiler() is not None:
        threading.Thread(target=build, name="perfmodel-compiled", daemon=True).start()


def _agree(results: Mapping[str, np.ndarray] | None, reference: Mapping[str, Any]) -> bool:
    """Whether the times of some problems are NumPy's; true where they are of another kind."""
    if results is None:
        return True
    seconds = np.asarray(reference["seconds"])
    return bool(np.all(np.abs(results["seconds"] - seconds) <= _AGREES * seconds))
