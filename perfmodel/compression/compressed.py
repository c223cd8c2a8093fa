"""A network whose layers' matrices are stored by a scheme: its bytes, and the time of a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from perfmodel.algorithms import Matmul
from perfmodel.compression import quantised
from perfmodel.compression.scheme import PLAIN, PLAIN_BITS, Scheme
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import Network
from perfmodel.networks.networktime import Held, of_passes, predict_network
from perfmodel.networks.setting import Setting
from perfmodel.networks.summary import narrowed, part
from perfmodel.networks.value import Weight
from perfmodel.operators import operator_of
from perfmodel.prediction import Prediction

_LOGITS = "logits"


@dataclass(frozen=True)
class Compressed:
    """A network under a scheme.

    The matrices of its layers are stored by the scheme, embedding and head as users of the scheme
    usually store them, everything else at 16 bits.
    """

    original: Network
    """The network before compression."""
    scheme: Scheme
    """The scheme of the layers' matrices."""
    head: Scheme | None = None
    """The scheme of the head; None: the usual one for `scheme`."""

    @cached_property
    def network(self) -> Network:
        """The network after compression."""
        return self.scheme.network(self.original)

    @cached_property
    def of_head(self) -> Scheme:
        """The scheme of the head's matrix."""
        return self.head or quantised.load(self.scheme.head)

    @cached_property
    def of_embedding(self) -> Scheme:
        """The scheme of an embedding that is not the head too."""
        return quantised.load(self.scheme.embedding)

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of all weights."""
        return sum(
            self.stored_bytes(weight) * repeat for weight, repeat in parameters(self.network)
        )

    @cached_property
    def bits(self) -> float:
        """Mean stored bits of a weight in the layers' matrices."""
        pairs = list(self.matrices())
        total = sum(self.stored_bytes(weight) * repeat for weight, repeat in pairs)
        return 8.0 * total / sum(weight.elements * repeat for weight, repeat in pairs)

    def matrices(self, setting: Setting | None = None) -> Iterator[tuple[Weight, int]]:
        """The weights that the scheme applies to, joined as the stack joins them, with their number
        of layers."""
        pairs = parameters(self.network, setting)
        return (pair for pair in pairs if self._is_stored_by_scheme(pair[0]))

    def _is_stored_by_scheme(self, weight: Weight) -> bool:
        return narrowed(weight, self.network, experts_only=self.scheme.experts_only)

    def stored_bytes(self, weight: Weight) -> float:
        """Bytes of all matrices of a weight; a tied embedding counts as the head."""
        if self._is_stored_by_scheme(weight):
            k, n = weight.shape
            return weight.count * self.scheme.stored_bytes(n, k)
        table = {"head": self.of_head, "embedding": self.of_embedding}.get(
            part(weight, self.network)
        )
        if table is not None:
            n, k = max(weight.shape), min(weight.shape)
            return table.stored_bytes(n, k)
        return weight.elements * PLAIN_BITS / 8.0

    def predict(self, setting: Setting, device: Device) -> Tree:
        """A forward pass in 16 bits with the scheme's kernels in place of plain products.

        Raises `ProblemError` where the device cannot multiply the format.
        """
        for scheme in (self.scheme, self.of_head):
            scheme.check(device)
        setting = replace(setting, dtype=PLAIN)
        baseline = predict_network(self.network, setting, device)
        names = frozenset(weight.name for weight, _ in self.matrices(setting))
        passes = [self._pass(one, names, device) for one in baseline.children if one.children]
        return of_passes(self.network, setting, device, passes)

    def _pass(self, base: Tree, names: frozenset[str], device: Device) -> Tree:
        """A pass with its products replaced."""
        kernels: list[Tree] = []
        for kernel in base.children:
            if f"{kernel.name}.weight" in names:
                kernels += _replacements(kernel, self.scheme, device)
            elif kernel.name == _LOGITS:
                kernels += _replacements(kernel, self.of_head, device)
            else:
                kernels.append(kernel)
        return Tree.series(base.name, base.kind, kernels, int(base.repeat))


def _replacements(kernel: Tree, scheme: Scheme, device: Device) -> Iterable[Tree]:
    """A product's kernels under a scheme, without a benchmark harness's start-up."""
    assert kernel.run is not None
    problem = Matmul(**kernel.run.problem)
    if scheme.multiplies == problem.dtype:
        return (kernel,)
    parts = _kernels(scheme, problem, Held(device))
    return [
        replace(
            Tree.of(
                f"{kernel.name}{f' {i + 1}' if i else ''}", kernel.kind, _family(each, problem),
                each, kernel.repeat,
            ),
            gap_seconds=kernel.gap_seconds,
        )
        for i, each in enumerate(parts)
    ]  # fmt: skip


@lru_cache(maxsize=1024)
def _kernels(scheme: Scheme, problem: Matmul, key: Held[Device]) -> tuple[Prediction, ...]:
    """The kernels of a product; layers that alternate have the same ones."""
    return scheme.kernels(problem, key.own)


def _family(prediction: Prediction, problem: Matmul) -> str:
    """The family of a kernel's errors: for a product its type, for other kernels the operator's
    name."""
    if prediction.algorithm != "matmul":
        return prediction.algorithm
    dtype = prediction.problem.get("dtype", problem.dtype)
    return operator_of(problem).family(replace(problem, dtype=dtype))
