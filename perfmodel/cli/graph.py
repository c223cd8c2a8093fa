"""`perfmodel graph NAME`: operators joined by tensors, on one or several devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from perfmodel.cli import ranges, spellings
from perfmodel.cli.arguments import Corrected, Devices, GraphSizes, Harness, SomeType
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown
from perfmodel.fieldoption import FieldOption
from perfmodel.graph import load, predict_graph
from perfmodel.render import Report, trees


@dataclass(frozen=True)
class Asked(Corrected):
    """What `graph` is asked for."""

    graph: Annotated[str, FieldOption(None, "GRAPH", argument=True, names="perfmodel.graph:names")]
    """A graph's name (perfmodel list graphs) or YAML file."""
    device: Devices
    """The devices."""
    size: GraphSizes = field(default_factory=dict)
    """Sizes of the graph, with commas or repeated: batch=4,seq=2k."""
    dtype: SomeType = None
    """Type of the data: bf16, fp16, fp8, fp32 (perfmodel list types)."""
    harness: Harness = "kernel"
    """Benchmark harness whose overhead is included."""
    by: Annotated[str, FieldOption(None, "WHAT", single=True, names=trees.OF_GRAPHS)] = "node"
    """What has a line."""


def graph_(asked: Asked, shown: Shown) -> Report:
    """Predict a graph of operators: time by node or operator, gaps, host, live memory.

    \b
    perfmodel graph decoder-layer -d h100-sxm --size batch=4 --size seq=2k
    perfmodel graph decoder-layer -d a100 -d mi300x -s seq=1 -s past=8k -s batch=16 --by operator
    perfmodel graph mine.yaml -d h100-sxm --harness cuda_graph --format json
    """
    declaration = load(asked.graph)
    graph = declaration.at(sizes(asked.size, declaration.sizes), asked.dtype)
    answers = [predict_graph(graph, device, harness=asked.harness) for device in asked.device]
    json = shown.form == "json"
    return trees.data(answers, "graphs") if json else trees.report(answers, asked.by, "graphs")


def sizes(texts: Mapping[str, str], names: Mapping[str, object]) -> dict[str, float]:
    """The sizes of a graph from texts by name. Raises `UnknownName` and `ProblemError`."""
    values: dict[str, float] = {}
    for name, text in texts.items():
        name = spellings.named("size of the graph", name.replace("-", "_"), names)
        values[name] = ranges.number(text, name, least=0)
    return values


app = command(graph_, "graph")
