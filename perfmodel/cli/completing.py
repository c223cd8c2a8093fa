"""Shell completion: names of devices, types, kernels, operators, networks, engines.

Each function takes the typed text and returns possible values; in a list with commas it completes
the last name. Names are looked up on demand, and nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from perfmodel.operators import Operator

Completion = Callable[[str], list[str]]
Names = Callable[[], Iterable[str]]


def of_list(names: Names) -> Completion:
    """Completion of the last name of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        entries = head.split(",")
        return [
            f"{head}{comma}{name}"
            for name in names()
            if name.startswith(last) and name not in entries
        ]

    return complete


def _devices() -> Iterable[str]:
    from perfmodel.hardware import names

    return names()


def _harnesses() -> Iterable[str]:
    from perfmodel.timing.runs import harnesses

    return harnesses()


def _types() -> Iterable[str]:
    from perfmodel.algorithms.matmul import types

    return types()


def _algorithms() -> Iterable[str]:
    from perfmodel.algorithms import library

    return library.names()


def _graphs() -> Iterable[str]:
    from perfmodel import graph

    return graph.names()


def _networks() -> Iterable[str]:
    from perfmodel.networks import library

    return library.names()


def _engines() -> Iterable[str]:
    from perfmodel.serving import engine

    return engine.names()


def _statistics() -> Iterable[str]:
    from perfmodel.serving.clients import STATISTICS

    return STATISTICS


def _systems() -> Iterable[str]:
    from perfmodel.hardware import systems

    return systems.names()


def _operators() -> Iterable[str]:
    from perfmodel import operators

    return operators.names()


def _kernels() -> Iterable[str]:
    from perfmodel.evidence import registry

    return registry.kernels()


def _targets() -> Iterable[str]:
    from perfmodel.evidence.compiled.targets import TARGETS

    return TARGETS


def _formats() -> Iterable[str]:
    from perfmodel.render import RENDERERS

    return RENDERERS


def _gates() -> Iterable[str]:
    from perfmodel.render.gates import FORMATS

    return (*_formats(), *FORMATS)


def _schemas() -> Iterable[str]:
    from perfmodel.formats import FORMATS

    return FORMATS


def _schemes() -> Iterable[str]:
    from perfmodel.compression import quantised

    return quantised.names()


def _explained() -> Iterable[str]:
    from perfmodel.napkin.explain import SCHEDULES

    return SCHEDULES


def _timers() -> Iterable[str]:
    from perfmodel.evidence.measured.timer import HARNESS

    return HARNESS


def _vendors() -> Iterable[str]:
    from perfmodel.hardware import specs

    return dict.fromkeys(device.vendor.lower() for device in specs())


def _templates() -> Iterable[str]:
    from perfmodel.validation.kinds import KINDS

    return (*_operators(), *(kind for kind in KINDS if kind != "operator"))


devices, harnesses, types = of_list(_devices), of_list(_harnesses), of_list(_types)
algorithms, graphs, operators = of_list(_algorithms), of_list(_graphs), of_list(_operators)
networks, engines, systems = of_list(_networks), of_list(_engines), of_list(_systems)
statistics = of_list(_statistics)
kernels, targets, formats = of_list(_kernels), of_list(_targets), of_list(_formats)
gates, schemas, templates = of_list(_gates), of_list(_schemas), of_list(_templates)
schemes, explained = of_list(_schemes), of_list(_explained)
timers, vendors = of_list(_timers), of_list(_vendors)


def schedules(ctx: typer.Context, incomplete: str) -> list[str]:
    """Schedules of the command's operator."""
    return of_list(lambda: _operator(ctx).schedules)(incomplete)


def implementations(ctx: typer.Context, incomplete: str) -> list[str]:
    """Kernels of libraries that compute the command's operator."""
    from perfmodel.timing.libraries import implementations as known

    library = _operator(ctx).library
    return of_list(lambda: known(library) if library else ())(incomplete)


def _operator(ctx: typer.Context) -> Operator:
    from perfmodel import operators as registry

    return registry.load(str(ctx.info_name))
