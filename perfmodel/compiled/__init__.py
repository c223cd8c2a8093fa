"""Shipped YAML documents as Python, a module each; see `perfmodel.yamltable`.

Nothing here is written by hand: `python -m perfmodel.compiled` makes all of it anew.
"""
