"""Compiled from serving/spread.yaml by `python -m perfmodel.compiled`."""

HASH = "a8de22fdbe7ed0f4"
DOCUMENT = {'version': 1, 'widths': {'pace': 0.272, 'first': 0.444}}
