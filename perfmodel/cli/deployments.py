"""Deployments of a network: every combination of the values in the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.render.refused import Refused, all_of

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
        self, answer: Callable[[Deployment], Iterable[Found]]
    ) -> tuple[list[Found], Refused]:
        """The answers of all deployments in turn, and the impossible deployments.

        Raises what a single one raises, and `ProblemError` for too many, or if all are impossible.
        """
        from perfmodel.serving.deployment import Deployment

        if len(self) > MOST:
            raise ProblemError(f"{len(self):,} deployments are more than {MOST:,}; narrow a list")
        found: list[Found] = []
        refused: list[tuple[str, str]] = []
        for values in product(*self.choices.values()):
            chosen = dict(zip(self.choices, values, strict=True))
            try:
                found += answer(Deployment(self.network, **chosen, system=self.system))
            except PerfmodelError as error:
                if len(self) == 1:
                    raise
                refused.append((self._said(chosen), str(error)))
        if not found:
            raise all_of(refused)
        return found, refused

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
