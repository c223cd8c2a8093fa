"""One file for each kind of results: its sentences, charts and table.

Importing this package registers all of them.
"""

# ruff: noqa: F401
from perfmodel.render.html.kinds import (
    compared,
    declared,
    networks,
    profiles,
    serving,
    training,
)
