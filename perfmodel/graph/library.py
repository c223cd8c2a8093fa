"""The declared graphs by name: those that come with the package, and a user's files."""

from __future__ import annotations

from pathlib import Path

from perfmodel.catalogue import Catalogue, of_kind
from perfmodel.graph.declaration import read

GRAPHS = Catalogue("graph", read, *of_kind("graphs", Path(__file__).with_name("declared")))
"""The graphs: those in PERFMODEL_PATH, the shipped ones, those of packages (`perfmodel.graphs`)."""
load, names = GRAPHS.load, GRAPHS.names
