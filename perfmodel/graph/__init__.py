"""Graphs of operators: nodes in launch order, joined by tensors.

    graph = load("decoder-layer").at({"batch": 4})
    tree = predict_graph(graph, perfmodel.load("h100-sxm"))

A `Node` (node.py) is a problem of an operator with the `Tensor`s (tensor.py) that it reads and
writes. An `Edge` (node.py) maps tensors to an operand. A `Graph` (graph.py) is checked when it is
made.

live.py counts the bytes allocated at each node, touches.py what earlier nodes left in the caches.
asks.py predicts each distinct problem once. A `Tree` (tree.py) is the result of everything that is
made of kernels: it adds up their time, ranges and counts. graphtime.py makes that of a graph;
stretch.py has host and device side by side:

    time = start + Σ kernels + gaps between them, or the host where it is later

jobs.py is the list scheduler: jobs on units (stages, devices, links) in queues, with what each
waits for.

declaration.py reads graphs from YAML, and library.py finds them by name; declared/ has those that
come with the package.
"""

from perfmodel.graph.declaration import DeclaredGraph, declare, read
from perfmodel.graph.graph import Graph
from perfmodel.graph.graphtime import predict_graph
from perfmodel.graph.library import load, names
from perfmodel.graph.node import Edge, Node
from perfmodel.graph.tensor import Tensor
from perfmodel.graph.tree import Tree

__all__ = [
    "DeclaredGraph",
    "Edge",
    "Graph",
    "Node",
    "Tensor",
    "Tree",
    "declare",
    "load",
    "names",
    "predict_graph",
    "read",
]
