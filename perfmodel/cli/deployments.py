"""Deployments of a network: the values in the options, combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from perfmodel.cli.combining import Grid
from perfmodel.cli.leftout import Asked, answered
from perfmodel.errors import PerfmodelError, SizeError
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
                plan = Deployment(self.network, **fields, system=self.system)
                pieces = list(questions(plan, load))
            except PerfmodelError as error:
                pieces = [("", partial(_raise, error))]
            for label, answer in pieces:
                label = ", ".join(filter(None, [words, label]))
                yield label, partial(self._listed, fields, answer)

    def _listed(
        self, fields: Mapping[str, Any], answer: Callable[[], Iterable[Answer]]
    ) -> list[Answer]:
        """The answers to one question; an iterator raises here, where errors are caught."""

        def check(name: str, size: int) -> None:
            """Raise `PerfmodelError` where one with another size cannot be served either."""
            from perfmodel.serving.cachememory import check_weights

            check_weights(Deployment(self.network, **{**fields, name: size}, system=self.system))

        try:
            return list(answer())
        except SizeError as error:
            raise error.those(check) from None


def _raise(error: PerfmodelError) -> list[Any]:
    raise error
