"""One file a kind of results: what it says in sentences, which charts it has, and its table."""

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
from perfmodel.render.html.kinds.registry import KINDS, Document, Kind, kind

__all__ = [
    *("KINDS", "Document", "Kind", "kind"),
    *("collectives", "compared", "larger", "networks"),
    *("profiles", "serving", "training", "weights"),
]
