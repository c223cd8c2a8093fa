"""Network × setting × device → the time of its passes, and its breakdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from perfmodel.graph import Graph, Node, touches
from perfmodel.graph.asks import Ask, answers, ask
from perfmodel.graph.spread import Spread
from perfmodel.hardware import Device
from perfmodel.networks.expand import expand
from perfmodel.networks.network import Network
from perfmodel.networks.prediction import KernelTime, NetworkPrediction, PassTime
from perfmodel.networks.segment import PassGraph, Segment
from perfmodel.networks.setting import Setting
from perfmodel.networks.sustained import sustained
from perfmodel.operators import operator_of
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.machine import machine

_HARNESS = "kernel"


def predict_network(
    network: Network, setting: Setting, device: Device, *, constants: Constants | None = None
) -> NetworkPrediction:
    """Predict a forward pass over a network, and a backward pass in training.

    Every distinct kernel is timed once, given what the kernels before it left in the caches.
    Kernels of one kind are timed together as arrays. Raises what `expand` and
    `perfmodel.predict.predict` raise.
    """
    if constants is None:
        return _default_prediction(network, setting, Held(device))
    return _prediction(network, setting, device, constants)


@dataclass(frozen=True, eq=False)
class Held:
    """A device compared by identity, as a cache key: the plans of a sweep share one object."""

    device: Device
    """The device."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.device is self.device

    def __hash__(self) -> int:
        return id(self.device)


@lru_cache(maxsize=512)
def _default_prediction(network: Network, setting: Setting, key: Held) -> NetworkPrediction:
    return _prediction(network, setting, key.device, default())


def _prediction(
    network: Network, setting: Setting, device: Device, constants: Constants
) -> NetworkPrediction:
    values = sustained(constants, device)
    passes = _passes(expand(network, setting), setting)
    questions = [q for _, _, _, graph in passes for q in _questions(graph.graph, device)]
    replies = iter(answers(questions, device, harness=_HARNESS, constants=values))
    gap = float(machine(device).at_clock(values["kernel_gap"]))
    times = []
    for segment, repeat, way, graph in passes:
        kernels = tuple(
            _kernel(kind, next(replies), node)
            for node, kind in zip(graph.graph.nodes, graph.kinds, strict=True)
        )
        times.append(PassTime(segment.name, way, repeat, kernels, gap, graph.exchanges))
    return NetworkPrediction(network, setting, device.slug, tuple(times))


_Entry = tuple[Segment, int, str, PassGraph]


def _passes(segments: Sequence[Segment], setting: Setting) -> list[_Entry]:
    """Forward passes in order, then backward ones from the last."""
    entries: list[_Entry] = [(s, s.repeat, "forward", s.forward) for s in segments]
    if setting.training:
        back = ((s, s.repeat, "backward", s.backward) for s in reversed(segments))
        entries += [entry for entry in back if entry[3].recorder.nodes]
    return entries


def _questions(graph: Graph, device: Device) -> list[Ask]:
    """The question for each node: its problem, and what earlier kernels of its pass left in the
    caches."""
    reuses = touches.reuses(graph, [0.0] * len(graph.nodes), device, again=False)
    return [ask(node, {}, reuse) for node, reuse in zip(graph.nodes, reuses, strict=True)]


def _kernel(kind: str, prediction: Prediction, node: Node) -> KernelTime:
    """A node's time and range."""
    family = operator_of(node.problem).family(node.problem)
    spread = Spread.of(family, prediction, node.repeat)
    return KernelTime(node.name, kind, spread, prediction, node.repeat)
