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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from perfmodel.graph import Graph, touches
from perfmodel.graph.asks import Ask, answers, ask
from perfmodel.graph.stretch import joined
from perfmodel.graph.tree import Tree, together, waits
from perfmodel.hardware import Device
from perfmodel.networks import hosts
from perfmodel.networks.expand import expand
from perfmodel.networks.network import Network
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.segment import Segment
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
_K = TypeVar("_K")
_T = TypeVar("_T")


def predict_network(
    network: Network, setting: Setting, device: Device, *, constants: Constants | None = None
) -> Tree:
    """Predict a forward pass over a network, and a backward pass in training.

    Every distinct kernel is timed once, given what the kernels before it left in the caches.
    Kernels of one kind are timed together as arrays. Raises what `expand` and
    `perfmodel.predict.predict` raise.
    """
    (tree,) = predict_networks(network, [setting], device, constants=constants)
    return tree


def predict_networks(
    network: Network,
    settings: Sequence[Setting],
    device: Device,
    *,
    constants: Constants | None = None,
) -> list[Tree]:
    """The same for several settings, whose kernels of one kind are timed together too."""
    if constants is not None:
        return _predictions(network, settings, device, constants)

    def make(new: Sequence[tuple[Network, Setting, Held[Device]]]) -> list[Tree]:
        return _predictions(network, [setting for _, setting, _ in new], device, default())

    return _TREES.of([(network, setting, Held(device)) for setting in settings], make)


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


class Kept(Generic[_K, _T]):
    """The last results by key; those that are missing are made together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.results: dict[_K, _T] = {}

    def of(self, keys: Sequence[_K], make: Callable[[list[_K]], Iterable[_T]]) -> list[_T]:
        """The result of each key."""
        own = {key: self.results[key] for key in keys if key in self.results}
        new = [key for key in dict.fromkeys(keys) if key not in own]
        own |= zip(new, make(new) if new else (), strict=True)
        self.results |= own
        for key in list(self.results)[: len(self.results) - self.most]:
            self.results.pop(key, None)
        return [own[key] for key in keys]


_TREES = Kept[tuple[Network, Setting, Held[Device]], Tree](512)


def _predictions(
    network: Network, settings: Sequence[Setting], device: Device, constants: Constants
) -> list[Tree]:
    values = sustained(constants, device)
    tapes = [_passes(network, setting) for setting in settings]
    questions = [q for own in tapes for _, _, tape in own for q in _questions(tape.graph, device)]
    replies = iter(answers(questions, device, harness=_HARNESS, constants=values))
    gap = float(machine(device).at_clock(values["kernel_gap"]))
    trees = []
    for setting, own in zip(settings, tapes, strict=True):
        parts = []
        for segment, way, tape in own:
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
        trees.append(of_passes(network, setting, device, parts))
    return trees


def _passes(network: Network, setting: Setting) -> list[tuple[Segment, str, Recorder]]:
    """The passes over the segments, in order."""
    segments = expand(network, setting)
    passes = [(segment, "forward", segment.forward) for segment in segments]
    if setting.training:
        back = ((segment, "backward", segment.backward) for segment in reversed(segments))
        passes += [entry for entry in back if entry[2].nodes]
    return passes


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
