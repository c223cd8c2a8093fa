"""Deployments of a network: every combination of the values in the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from perfmodel.cli.leftout import Asked, answered
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.render.refused import Refused

if TYPE_CHECKING:
    from perfmodel.hardware import System
    from perfmodel.networks.network import Network
    from perfmodel.serving.deployment import Deployment

Found = TypeVar("Found")

MOST = 2_000
"""Limit on the deployments of one command."""


@dataclass(frozen=True)
class Deployments:
    """A network, and the values for each field of a deployment."""

    network: Network
    """The network."""
    choices: Mapping[str, Sequence[Any]]
    """Values by field of `Deployment`."""
    system: System | None
    """The system that joins the devices; None: their default system."""

    def __len__(self) -> int:
        count = 1
        for values in self.choices.values():
            count *= len(values)
        return count

    def answers(
        self, parts: Callable[[Deployment], Iterable[Asked[Iterable[Found]]]]
    ) -> tuple[list[Found], Refused]:
        """The answers to all `parts` of every deployment, and the impossible ones.

        Raises as `answered`, and `ProblemError` for too many deployments.
        """
        if len(self) > MOST:
            raise ProblemError(f"{len(self):,} deployments are more than {MOST:,}; narrow a list")
        answers, refused = answered(self._asked(parts))
        return [one for answer in answers for one in answer], refused

    def _asked(
        self, parts: Callable[[Deployment], Iterable[Asked[Iterable[Found]]]]
    ) -> Iterator[Asked[list[Found]]]:
        """The parts of every deployment under its label; an impossible deployment is one part."""
        from perfmodel.serving.deployment import Deployment

        for values in product(*self.choices.values()):
            chosen = dict(zip(self.choices, values, strict=True))
            label = self._said(chosen)
            try:
                each = list(parts(Deployment(self.network, **chosen, system=self.system)))
            except PerfmodelError as error:
                each = [("", partial(_raise, error))]
            for words, answer in each:
                yield ", ".join(filter(None, [label, words])), partial(_listed, answer)

    def _said(self, chosen: Mapping[str, Any]) -> str:
        """The values that distinguish a deployment."""
        return ", ".join(
            value.slug
            if name == "device"
            else value.name
            if name == "engine"
            else f"{name} {value}"
            for name, value in chosen.items()
            if len(self.choices[name]) > 1
        )


def _listed(answer: Callable[[], Iterable[Found]]) -> list[Found]:
    """The answers of one part; an iterator raises here, where errors are caught."""
    return list(answer())


def _raise(error: PerfmodelError) -> list[Any]:
    raise error
