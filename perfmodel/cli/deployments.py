"""Deployments of a network: the values in the options, combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from perfmodel.cli.combining import combined, count
from perfmodel.cli.leftout import Asked, answered
from perfmodel.errors import PerfmodelError, ProblemError, SizeError
from perfmodel.render.refused import Refused

if TYPE_CHECKING:
    from perfmodel.hardware import System
    from perfmodel.networks.network import Network
    from perfmodel.serving.deployment import Deployment

Found = TypeVar("Found")
Load = Mapping[str, Sequence[Any]]
"""The sizes and lengths of a deployment's loads, a list each."""
Parts = Callable[["Deployment", Load], Iterable[Asked[Iterable[Found]]]]
"""What is asked of a deployment under its load."""

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
    load: Load = field(default_factory=dict)
    """The load of every deployment."""
    pairs: bool = False
    """Whether the lists are paired element by element, those of the load too (`--zip`)."""

    def __len__(self) -> int:
        return count(self._lists(), pairs=self.pairs)

    @property
    def loads(self) -> int:
        """Number of loads of all deployments."""
        return count({**self.choices, **self.load}, pairs=self.pairs)

    def answers(self, parts: Parts[Found]) -> tuple[list[Found], Refused]:
        """The answers to all `parts` of every deployment, and the impossible ones.

        Raises as `answered`, and `ProblemError` for too many deployments.
        """
        if len(self) > MOST:
            raise ProblemError(f"{len(self):,} deployments are more than {MOST:,}; narrow a list")
        answers, refused = answered(self._questions(parts))
        return [row for answer in answers for row in answer], refused

    def _lists(self) -> Load:
        return {**self.choices, **self.load} if self.pairs else self.choices

    def _questions(self, parts: Parts[Found]) -> Iterator[Asked[list[Found]]]:
        """The parts of every deployment under its label; an impossible deployment is one part."""
        from perfmodel.serving.deployment import Deployment

        for fields in combined(self._lists(), pairs=self.pairs):
            label = self._label(fields)
            load = {
                name: [fields.pop(name)] if self.pairs else self.load[name] for name in self.load
            }
            try:
                pieces = list(parts(Deployment(self.network, **fields, system=self.system), load))
            except PerfmodelError as error:
                pieces = [("", partial(_raise, error))]
            for words, answer in pieces:
                yield ", ".join(filter(None, [label, words])), partial(self._list, fields, answer)

    def _list(
        self, fields: Mapping[str, Any], answer: Callable[[], Iterable[Found]]
    ) -> list[Found]:
        """The answers of one part; an iterator raises here, where errors are caught."""
        try:
            return list(answer())
        except SizeError as error:
            raise error.those(partial(self._check, fields)) from None

    def _check(self, fields: Mapping[str, Any], name: str, size: int) -> None:
        """Raise `PerfmodelError` where a deployment with another size cannot be served either."""
        from perfmodel.serving.cachememory import check_weights
        from perfmodel.serving.deployment import Deployment

        check_weights(Deployment(self.network, **{**fields, name: size}, system=self.system))

    def _label(self, fields: Mapping[str, Any]) -> str:
        """The values that distinguish a deployment."""
        return ", ".join(
            value.slug
            if name == "device"
            else value.name
            if name == "engine"
            else f"{name} {value}"
            for name, value in fields.items()
            if len(self._lists()[name]) > 1
        )


def _raise(error: PerfmodelError) -> list[Any]:
    raise error
