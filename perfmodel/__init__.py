"""GPU memory-hierarchy performance model and rooflines, checked against measured runs.

    from perfmodel import Attention, load, predict
    predict(Attention(4, 32, 8, 4096, 4096, 128, causal=True), load("h100-sxm"))

The inputs are a problem (what is computed), a schedule (how it is tiled) and a device. The counting
rule gives operations and bytes per level. The time model gives seconds, with every term kept.

Public names load their module on first use: measuring on a machine with a GPU needs neither
pydantic nor PyYAML.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfmodel.algorithms import Attention, Matmul, Rowwise
    from perfmodel.analysis.sweep import Grid, Sweep
    from perfmodel.analysis.sweep import run as sweep
    from perfmodel.analysis.whatif import whatif
    from perfmodel.collectives import Collective
    from perfmodel.count import Cost, count
    from perfmodel.errors import (
        MissingExtra,
        OutputError,
        PerfmodelError,
        ProblemError,
        SizeError,
        SpecError,
        TableError,
        UnknownName,
    )
    from perfmodel.graph import Edge, Graph, Node, Tensor, Tree, predict_graph
    from perfmodel.graph import load as load_graph
    from perfmodel.hardware import Device, System, load, names
    from perfmodel.hardware.systems import load as load_system
    from perfmodel.napkin.explain import explain
    from perfmodel.networks.library import load as load_network
    from perfmodel.networks.network import Network
    from perfmodel.predict import predict, predict_arrays
    from perfmodel.prediction import Prediction, Predictions
    from perfmodel.schedules import Kernel, Loop, Schedule
    from perfmodel.serving.deployment import Deployment
    from perfmodel.serving.engine import load as load_engine
    from perfmodel.training.plan import Plan
    from perfmodel.units import UnitError
    from perfmodel.validation.compare import predict_table as compare

__version__ = "0.1.0"

# The module of each public name; after a colon the name there, where it differs.
_MODULES = {
    "Attention": "algorithms",
    "Collective": "collectives",
    "Cost": "count",
    "Deployment": "serving.deployment",
    "Device": "hardware",
    "Edge": "graph",
    "Graph": "graph",
    "Grid": "analysis.sweep",
    "Kernel": "schedules",
    "Loop": "schedules",
    "Matmul": "algorithms",
    "MissingExtra": "errors",
    "Network": "networks.network",
    "Node": "graph",
    "OutputError": "errors",
    "PerfmodelError": "errors",
    "Plan": "training.plan",
    "Prediction": "prediction",
    "Predictions": "prediction",
    "ProblemError": "errors",
    "Rowwise": "algorithms",
    "Schedule": "schedules",
    "SizeError": "errors",
    "SpecError": "errors",
    "Sweep": "analysis.sweep",
    "System": "hardware",
    "TableError": "errors",
    "Tensor": "graph",
    "Tree": "graph",
    "UnitError": "units",
    "UnknownName": "errors",
    "compare": "validation.compare:predict_table",
    "count": "count",
    "explain": "napkin.explain",
    "load": "hardware",
    "load_engine": "serving.engine:load",
    "load_graph": "graph:load",
    "load_network": "networks.library:load",
    "load_system": "hardware.systems:load",
    "names": "hardware",
    "predict": "predict",
    "predict_arrays": "predict",
    "predict_graph": "graph",
    "sweep": "analysis.sweep:run",
    "whatif": "analysis.whatif",
}

__all__ = [
    "Attention",
    "Collective",
    "Cost",
    "Deployment",
    "Device",
    "Edge",
    "Graph",
    "Grid",
    "Kernel",
    "Loop",
    "Matmul",
    "MissingExtra",
    "Network",
    "Node",
    "OutputError",
    "PerfmodelError",
    "Plan",
    "Prediction",
    "Predictions",
    "ProblemError",
    "Rowwise",
    "Schedule",
    "SizeError",
    "SpecError",
    "Sweep",
    "System",
    "TableError",
    "Tensor",
    "Tree",
    "UnitError",
    "UnknownName",
    "__version__",
    "compare",
    "count",
    "explain",
    "load",
    "load_engine",
    "load_graph",
    "load_network",
    "load_system",
    "names",
    "predict",
    "predict_arrays",
    "predict_graph",
    "sweep",
    "whatif",
]


if not TYPE_CHECKING:  # else every misspelt name would be `Any` to a type checker

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'perfmodel' has no attribute {name!r}")
        module, _, attribute = _MODULES[name].partition(":")
        value = getattr(import_module(f"perfmodel.{module}"), attribute or name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package. Importing the module `perfmodel.predict` does not replace the function of that
    name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
