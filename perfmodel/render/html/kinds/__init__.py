"""One file a kind of results: what it says in sentences, which charts it has, and its table.

Importing this registers all of them.
"""

# ruff: noqa: F401
from perfmodel.render.html.kinds import (
    collectives,
    compared,
    larger,
    networks,
    profiles,
    serving,
    training,
    weights,
)
