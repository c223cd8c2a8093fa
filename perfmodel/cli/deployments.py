"""Deployments of a network: the values in the options, combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from perfmodel.cli.combining import Grid
from perfmodel.cli.leftout import Asked, answered, narrowed, settled
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import System
from perfmodel.networks.network import Network
from perfmodel.render.refused import Refused
from perfmodel.serving.deployment import Deployment

Answer = TypeVar("Answer")
Lists = Mapping[str, Sequence[Any]]
Questions = Callable[[Deployment, Lists], Iterable[Asked[Iterable[Answer]]]]
"""What is asked of a deployment under its load."""

MOST = 2_000
"""Limit on the deployments of one command."""


@dataclass(frozen=True)
class Deployments:
    """A network, and the values for each field of a deployment."""

    network: Network
    """The network."""
    choices: Lists
    """Values by field of `Deployment`."""
    system: System | None
    """The system that joins the devices; None: their default system."""
    load: Lists
    """The sizes and lengths of every deployment's loads."""
    pairs: bool = False
    """Whether the lists are paired element by element, those of the load too (`--zip`)."""

    @property
    def loads(self) -> Grid:
        """The loads of all deployments."""
        return Grid({**self.choices, **self.load}, self.pairs)

    def answers(self, questions: Questions[Answer]) -> tuple[list[Answer], Refused]:
        """The answers to all `questions` of every deployment, and the impossible ones.

        Raises as `answered`, and `ProblemError` for too many deployments.
        """
        grid = self.loads if self.pairs else Grid(self.choices)
        grid.check(MOST, "deployments")
        answers, refused = answered(self._asked(grid, questions))
        return [row for answer in answers for row in answer], refused

    def _asked(self, grid: Grid, questions: Questions[Answer]) -> Iterator[Asked[list[Answer]]]:
        """The questions of every deployment under its label; an impossible one has one."""
        for fields in grid:
            words = grid.label(fields)
            load = {name: [fields.pop(name)] for name in self.load} if self.pairs else self.load
            try:
                pieces = list(questions(self._plan(fields), load))
            except PerfmodelError as error:
                pieces = [("", partial(settled, error))]
            for label, answer in pieces:
                label = ", ".join(filter(None, [words, label]))
                # An iterator raises in `list`, where errors are caught.
                each = partial(lambda answer: list(answer()), answer)
                yield label, partial(narrowed, each, partial(self._check, fields))

    def _plan(self, fields: Mapping[str, Any]) -> Deployment:
        return Deployment(self.network, **fields, system=self.system)

    def _check(self, fields: Mapping[str, Any], name: str, size: int) -> None:
        """Raise `PerfmodelError` where one with another size cannot be served either."""
        from perfmodel.serving.cachememory import check_weights

        check_weights(self._plan({**fields, name: size}))
