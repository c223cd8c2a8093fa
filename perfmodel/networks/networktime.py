"""Network × setting × device → a tree of its passes and their kernels.

Passes are taken as parts of runs of hours, at the device's rated clock. The fitted energies are
those of a 7 nm device at A100's clock. They were fitted to runs of milliseconds, over which no
power regulator acts. Such runs hardly show what an operation costs at a higher clock; a training
step does.

An operation switches a charge through the supply voltage: E = C·V². The voltage rises with the
clock (Horowitz, ISSCC 2014; DVFS: V ∝ f near the rated clock). Relative to the same gates at A100's
clock f₀

    E = E₀ · (f / f₀)²

This applies to the matrix unit, whose share of the energy is by far the largest. The energy of
AMD's matrix operations (`amd_energy`) comes from published rates of MI300X at its power limit;
there f₀ is MI300X's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from perfmodel.graph import Graph, touches
from perfmodel.graph.asks import Ask, answers, ask
from perfmodel.graph.stretch import joined
from perfmodel.graph.tree import Tree, together, waits
from perfmodel.hardware import Device
from perfmodel.networks import hosts
from perfmodel.networks.expand import expand
from perfmodel.networks.network import Network
from perfmodel.networks.setting import Setting
from perfmodel.operators import operator_of
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.machine import machine

_HARNESS = "kernel"
_OWN = ("torch",)
"""Operations' own name for the library of products."""
_LATENTS = (
    "latents are cached expanded to keys and values, as transformers does; engines decode in the "
    "latent (perfmodel infer)"
)
_T = TypeVar("_T")


def predict_network(
    network: Network, setting: Setting, device: Device, *, constants: Constants | None = None
) -> Tree:
    """Predict a forward pass over a network, and a backward pass in training.

    Every distinct kernel is timed once, given what the kernels before it left in the caches.
    Kernels of one kind are timed together as arrays. Raises what `expand` and
    `perfmodel.predict.predict` raise.
    """
    if constants is None:
        return _default_prediction(network, setting, Held(device))
    return _prediction(network, setting, device, constants)


@dataclass(frozen=True, eq=False)
class Held(Generic[_T]):
    """A device, system or segment compared by identity, as a cache key: plans of a sweep share
    one."""

    own: _T
    """The device, system or segment."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.own is self.own

    def __hash__(self) -> int:
        return id(self.own)


@lru_cache(maxsize=512)
def _default_prediction(network: Network, setting: Setting, key: Held[Device]) -> Tree:
    return _prediction(network, setting, key.own, default())


def _prediction(network: Network, setting: Setting, device: Device, constants: Constants) -> Tree:
    values = sustained(constants, device)
    segments = expand(network, setting)
    passes = [(segment, "forward", segment.forward) for segment in segments]
    if setting.training:
        back = ((segment, "backward", segment.backward) for segment in reversed(segments))
        passes += [entry for entry in back if entry[2].nodes]
    questions = [q for _, _, tape in passes for q in _questions(tape.graph, device)]
    replies = iter(answers(questions, device, harness=_HARNESS, constants=values))
    gap = float(machine(device).at_clock(values["kernel_gap"]))
    parts = []
    for segment, way, tape in passes:
        kernels = [
            replace(
                Tree.of(
                    node.name, kind, operator_of(node.problem).family(node.problem),
                    next(replies), node.repeat,
                ),
                gap_seconds=gap,
            )
            for node, kind in zip(tape.nodes, tape.kinds, strict=True)
        ]  # fmt: skip
        parts.append(Tree.series(segment.name, way, kernels, segment.repeat))
    return of_passes(network, setting, device, parts)


def of_passes(network: Network, setting: Setting, device: Device, passes: Sequence[Tree]) -> Tree:
    """The tree of a network's passes: its time from the first launch to the end of the last kernel,
    where the host of the setting's stack launches them."""
    host = hosts.load(setting.stack.host)
    launch = {"forward": host.forward_seconds, "backward": host.backward_seconds}
    seconds, forward = (
        joined(p.stretch(launch[p.kind]) for p in passes if p.kind in kinds).seconds
        for kinds in (launch, ("forward",))
    )
    tree = Tree.series(network.name, "network", passes)
    low, high = together(tree.leaves)
    return replace(
        tree,
        children=(
            *tree.children,
            *waits(host=seconds - sum(tree.by(lambda leaf: leaf.kind).values())),
        ),
        seconds=seconds,
        low_seconds=seconds * low,
        high_seconds=seconds * high,
        settings={
            "network": network.name,
            "batch": setting.batch,
            "seq": setting.seq,
            "past": setting.past,
            "pass": setting.pass_,
            "dtype": setting.dtype,
            "stack": setting.stack.name,
        },
        device=device.slug,
        phases={"forward": forward, "backward": seconds - forward},
        assumptions=_assumptions(network, setting, tree),
    )


def _assumptions(network: Network, setting: Setting, tree: Tree) -> tuple[str, ...]:
    """The assumptions of all kernels, each once.

    Library names of a stack that mean the usual kernels are not listed as assumptions.
    """
    stack = setting.stack
    usual = tuple(f"implementation '{name}'" for name in (*_OWN, stack.library, stack.flash_kernel))
    lines = [
        line for _, run in tree.kernels for line in run.assumptions if not line.startswith(usual)
    ]
    if setting.past and any(block.attention.latent is not None for block in network.blocks):
        lines.insert(0, _LATENTS)
    return tuple(dict.fromkeys(lines))


def _questions(graph: Graph, device: Device) -> list[Ask]:
    """The question for each node: its problem, and what earlier kernels of its pass left in the
    caches."""
    reuses = touches.reuses(graph, [0.0] * len(graph.nodes), device, again=False)
    return [ask(node, {}, reuse) for node, reuse in zip(graph.nodes, reuses, strict=True)]


_REFERENCE_HZ = {"AMD": 2.1e9}
"""Boost clock of MI300X (AMD Instinct MI300X data sheet), for energies of AMD devices."""
_OTHERS_HZ = 1.41e9
"""Boost clock of A100 (NVIDIA A100 data sheet), for all other energies."""


def sustained(constants: Constants, device: Device) -> Constants:
    """The constants for long runs on a device."""
    if device.kind != "gpu":
        return constants
    faster = (device.boost_hz / _REFERENCE_HZ.get(device.vendor, _OTHERS_HZ)) ** 2
    return constants.with_values({"matrix_joules": constants["matrix_joules"] * faster})
