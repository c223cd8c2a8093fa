"""Shipped YAML documents as JSON, a file a kind and a line a document; see `perfmodel.yamltable`.

Nothing here is written by hand: `python -m perfmodel.compiled` makes all of it anew.
"""
