"""`perfmodel graph NAME`: operators joined by tensors, on one or several devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from perfmodel.cli import completing, known, ranges
from perfmodel.cli.arguments import DeviceSpecs, Harness, Learned, NoLearned
from perfmodel.cli.build import command
from perfmodel.cli.output import Shown
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption
from perfmodel.plaintext import quoted


@dataclass(frozen=True)
class Asked:
    """What `graph` is asked for."""

    graph: Annotated[str, FieldOption(metavar="GRAPH", argument=True, complete=completing.graphs)]
    """A graph's name (perfmodel list graphs) or YAML file."""
    device: DeviceSpecs
    """The devices."""
    size: Annotated[list[str] | None, FieldOption(None, "NAME=SIZE", ("--size", "-s"))] = None
    """Sizes of the graph, with commas or repeated: batch=4,seq=2k."""
    dtype: Annotated[str | None, FieldOption(metavar="TYPE", complete=completing.types)] = None
    """Type of the data: bf16, fp16, fp8, fp32 (perfmodel list types)."""
    harness: Harness = "kernel"
    """Benchmark harness whose overhead is included."""
    learned: Learned = None
    """File of corrections."""
    no_learned: NoLearned = False
    """Whether nothing is corrected."""
    by: Annotated[str, FieldOption(metavar="WHAT")] = "node"
    """One line for each node or operator."""


def graph_(asked: Asked, shown: Shown) -> None:
    """Predict a graph of operators: time by node or operator, gaps, host, live memory.

    \b
    perfmodel graph decoder-layer -d h100-sxm --size batch=4 --size seq=2k
    perfmodel graph decoder-layer -d a100 -d mi300x -s seq=1 -s past=8k -s batch=16 --by operator
    perfmodel graph mine.yaml -d h100-sxm --harness cuda_graph --format json
    """
    from perfmodel.graph import load, predict_graph
    from perfmodel.render import graphs

    known.named("line of a graph", asked.by, graphs.BY)
    declaration = load(asked.graph)
    graph = declaration.at(sizes(asked.size, declaration.sizes), asked.dtype)
    answers = [predict_graph(graph, device, harness=asked.harness) for device in asked.device]
    shown.emit(graphs.data(answers) if shown.form == "json" else graphs.report(answers, asked.by))


def sizes(texts: Iterable[str] | None, names: Mapping[str, object]) -> dict[str, float]:
    """Sizes from texts such as batch=4 or batch=4,seq=8k."""
    values: dict[str, float] = {}
    for pair in (pair for text in texts or () for pair in known.names(text)):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not (name and equals and text):
            raise ProblemError(f"--size {quoted(pair)} is not NAME=SIZE; write batch=4")
        name = known.named("size of the graph", name.replace("-", "_"), names)
        if name in values:
            raise ProblemError(f"--size gives {name} twice; choose one")
        values[name] = ranges.number(text, name, least=0)
    return values


app = command(graph_, "graph")
