"""Shell completion: names of devices, types, kernels, operators, networks, engines.

Each function takes the typed text and returns possible values; in a list with commas it completes
the last name. Names are looked up on demand, and nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from perfmodel.operators import Operator

Completion = Callable[[str], list[str]]
Names = Callable[[], Iterable[str]]


def of_list(names: Names | str) -> Completion:
    """Completion of the last name of a list with commas; "module:names" is imported on demand."""

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        entries = head.split(",")
        return [
            f"{head}{comma}{name}"
            for name in (_imported(names) if isinstance(names, str) else names())
            if name.startswith(last) and name not in entries
        ]

    return complete


def _imported(place: str) -> Iterable[str]:
    """The names that a function or a table of a module has."""
    module, attribute = place.split(":")
    names: Any = getattr(import_module(module), attribute)
    return tuple(names() if callable(names) else names)


def of_option(
    names: tuple[str, ...] | Names, complete: Callable[..., list[str]] | None
) -> Callable[[Any, Any, str], list[str]] | None:
    """The completion of an option, as click calls it: of its `names`, or by its own function of the
    text, or of context and text."""
    if complete is None and not names:
        return None
    own: Callable[..., list[str]] = complete or of_list(names if callable(names) else lambda: names)
    if len(signature(own).parameters) == 1:
        return lambda _context, _option, text: own(text)
    return lambda context, _option, text: own(context, text)


def _vendors() -> Iterable[str]:
    from perfmodel.hardware import specs

    return dict.fromkeys(device.vendor.lower() for device in specs())


def _gates() -> Iterable[str]:
    from perfmodel.render import RENDERERS
    from perfmodel.render.gates import FORMATS

    return (*RENDERERS, *FORMATS)


def _templates() -> Iterable[str]:
    from perfmodel import operators
    from perfmodel.validation.kinds import KINDS

    return (*operators.names(), *(kind for kind in KINDS if kind != "operator"))


algorithms = of_list("perfmodel.algorithms.library:names")
devices = of_list("perfmodel.hardware:names")
engines = of_list("perfmodel.serving.engine:names")
explained = of_list("perfmodel.napkin.explain:SCHEDULES")
formats = of_list("perfmodel.render:RENDERERS")
gates = of_list(_gates)
graphs = of_list("perfmodel.graph:names")
harnesses = of_list("perfmodel.timing.runs:harnesses")
kernels = of_list("perfmodel.evidence.registry:kernels")
networks = of_list("perfmodel.networks.library:names")
operators = of_list("perfmodel.operators:names")
schemas = of_list("perfmodel.formats:FORMATS")
schemes = of_list("perfmodel.compression.quantised:names")
systems = of_list("perfmodel.hardware.systems:names")
targets = of_list("perfmodel.evidence.compiled.targets:TARGETS")
templates = of_list(_templates)
timers = of_list("perfmodel.evidence.measured.timer:HARNESS")
types = of_list("perfmodel.algorithms.matmul:types")
vendors = of_list(_vendors)


def schedules(ctx: click.Context, incomplete: str) -> list[str]:
    """Schedules of the command's operator."""
    return of_list(lambda: _operator(ctx).schedules)(incomplete)


def implementations(ctx: click.Context, incomplete: str) -> list[str]:
    """Kernels of libraries that compute the command's operator."""
    from perfmodel.timing.libraries import implementations as known

    library = _operator(ctx).library
    return of_list(lambda: known(library) if library else ())(incomplete)


def _operator(ctx: click.Context) -> Operator:
    from perfmodel import operators as registry

    return registry.load(str(ctx.info_name))
