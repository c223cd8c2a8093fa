"""Optimisers: the states that they keep of a tensor, and their update as problems to time.

    adamw = load("adamw")
    adamw.state_bytes(parameters, precision)
    for work in adamw.problems(parameters, precision, style="foreach"):
        one = predict(work.problem, device, schedule=work.schedule)
        one.seconds * work.repeat * work.share_of_steps  # averaged over steps

optimisers.yaml declares each optimiser as stages of steps and products (update.py). cutting.py
makes kernels of the steps, expansion.py problems of the kernels. The counting rule gives the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from perfmodel.algorithms.case import is_whole
from perfmodel.algorithms.expressions import evaluate
from perfmodel.algorithms.expressions import names as named
from perfmodel.catalogue import Table
from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.plaintext import quoted
from perfmodel.training.expansion import Expansion, Work, sizes, together
from perfmodel.training.parameter import KINDS, Parameter
from perfmodel.training.precision import Precision
from perfmodel.training.update import Rule, Stage, Style

STYLE = "multi-tensor"
"""The default style of an update."""
UNCLIPPED = "none"
"""No clipping."""
TOKENS = "tokens"
"""Size in expressions: the tokens of a step, which statistics are taken over."""


@dataclass(frozen=True)
class Setting:
    """A whole number that an optimiser's expressions use by name."""

    value: int
    """Default value."""
    meaning: str
    """Meaning, in one line."""
    source: str
    """Source."""
    least: int = 1
    """Smallest allowed value."""


@dataclass(frozen=True)
class Optimiser:
    """An optimiser: how weights are updated."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    source: str
    """Paper and code."""
    rules: tuple[Rule, ...]
    """Updates. Each tensor takes the first rule that applies to it; the last rule applies to
    any."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Whole numbers that a user may change, by name."""

    def __post_init__(self) -> None:
        if set(self.rules[-1].kinds) != set(KINDS) or self.rules[-1].fewest != 1:
            raise ProblemError(f"the last rule of {self.name} does not take every tensor")

    @cached_property
    def updates(self) -> tuple[Rule, ...]:
        """The rules, with those of other optimisers in place of the ones that are `like` them."""
        return tuple(
            replace(update, kinds=tuple(kind for kind in update.kinds if kind in rule.kinds))
            if rule.like
            else update
            for rule in self.rules
            for update in (OPTIMISERS[rule.like].updates if rule.like else (rule,))
        )

    @cached_property
    def values(self) -> Mapping[str, int]:
        """The value of every setting."""
        return {name: setting.value for name, setting in self.settings.items()}

    @cached_property
    def needs_tokens(self) -> bool:
        """Whether its work depends on the tokens of a step."""
        return any(TOKENS in named(text) for rule in self.updates for text in rule.expressions)

    @cached_property
    def multiplies(self) -> bool:
        """Whether its update has matrix products."""
        return any(stage.gemm for rule in self.updates for stage in rule.work)

    def state_bytes(self, parameters: Iterable[Parameter], precision: Precision) -> float:
        """Bytes of all states of the parameters; moments have the precision's type."""
        total: float = sum(
            evaluate(state.elements, {**self.values, **sizes(piece)})
            * element(state.type or precision.states).bytes
            * piece.count
            for rule, pieces in self._rule_parameters(parameters)
            for piece in pieces
            for state in rule.states.values()
        )
        return total

    def problems(
        self,
        parameters: Iterable[Parameter],
        precision: Precision,
        *,
        style: str = STYLE,
        clip: str = UNCLIPPED,
        tokens: int | None = None,
    ) -> tuple[Work, ...]:
        """Every kernel of one update, in order, with kernels of equal time together.

        `style` is one of `STYLES`, `clip` one of `CLIPPING` or none. `tokens` is the number of
        tokens of a step, over which K-FAC takes its statistics. Raises `UnknownName` for another
        style or clipping, and `ProblemError` if tokens are needed and not given.
        """
        tensors = tuple(parameters)
        expansions = self._expansions(tensors, precision, style, tokens)
        if clip not in (UNCLIPPED, *CLIPPING):
            raise UnknownName("clipping by the global norm", clip, (UNCLIPPED, *CLIPPING))
        if clip != UNCLIPPED and tensors:
            types = replace(precision.updated, copy=None)
            rule = Rule((replace(CLIPPING[clip], name=""),))
            expansions.insert(0, Expansion(rule, tensors, types, STYLES.load(style), {}))
        return together(self.name, (launch for e in expansions for launch in e.launches()))

    def traffic_bytes(
        self, parameters: Iterable[Parameter], precision: Precision, **how: Any
    ) -> float:
        """Bytes that one update moves, averaged over steps; `how` as for `problems`."""
        return sum(work.bytes for work in self.problems(parameters, precision, **how))

    def _expansions(
        self, parameters: Iterable[Parameter], precision: Precision, style: str, tokens: int | None
    ) -> list[Expansion]:
        if self.needs_tokens and tokens is None:
            raise ProblemError(
                f"{self.name} takes statistics over the tokens of a step; give their number"
            )
        values = {**self.values, TOKENS: tokens}
        return [
            Expansion(rule, pieces, precision.updated, STYLES.load(style), values)
            for rule, pieces in self._rule_parameters(parameters)
        ]

    def _rule_parameters(
        self, parameters: Iterable[Parameter]
    ) -> Iterator[tuple[Rule, tuple[Parameter, ...]]]:
        """Every rule that applies to some of the tensors, with these tensors, cut as the rule
        says."""
        pairs = [(self._rule_of(parameter), parameter) for parameter in parameters]
        for i, rule in enumerate(self.updates):
            pieces = tuple(
                piece
                for taker, parameter in pairs
                if taker == i
                for piece in self._pieces(rule, parameter)
            )
            if pieces:
                yield rule, pieces

    def _rule_of(self, parameter: Parameter) -> int:
        """Index of the rule for a tensor; the last rule applies to any."""
        for i, rule in enumerate(self.updates):
            fewest = evaluate(rule.fewest, self.values)
            if parameter.kind in rule.kinds and parameter.elements >= fewest:
                return i
        raise AssertionError(f"the last rule of {self.name} does not take {parameter}")

    def _pieces(self, rule: Rule, parameter: Parameter) -> tuple[Parameter, ...]:
        if rule.cut is None:
            return (parameter,)
        return parameter.blocks(evaluate(rule.cut, self.values))


_FILE = Path(__file__).with_name("optimisers.yaml")
OPTIMISERS = Table("optimiser", Optimiser, _FILE, "optimisers")
"""The optimisers, in file order."""
STYLES = Table("style of an optimiser", Style, _FILE, "styles")
"""Implementations."""
CLIPPING = Table("clipping by the global norm", Stage, _FILE, "clipping")
"""Ways of clipping by the global norm."""
names = OPTIMISERS.names


def load(name: str, **settings: int) -> Optimiser:
    """The optimiser `name` with some settings changed: load("adam-8bit", block=256).

    Raises `UnknownName` for another name or setting, and `ProblemError` for a setting that is not a
    whole number, or is below its least value.
    """
    optimiser = OPTIMISERS.load(name)
    changed = dict(optimiser.settings)
    for key, value in settings.items():
        if key not in changed:
            raise UnknownName(f"setting of {name}", key, changed)
        setting = changed[key]
        if not is_whole(value) or value < setting.least:
            raise ProblemError(
                f"{key} of {name} is {quoted(str(value))}; write a whole number of at least "
                f"{setting.least} ({setting.meaning})"
            )
        changed[key] = replace(setting, value=value)
    return replace(optimiser, settings=changed) if settings else optimiser
