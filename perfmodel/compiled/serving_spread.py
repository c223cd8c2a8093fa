"""Compiled from serving/spread.yaml by `python -m perfmodel.compiled`."""

HASH = "ad4a2cb6b0e83d6b"
DOCUMENT = {'version': 1, 'widths': {'first': 0.56, 'pace fitted': 0.136, 'pace unfitted': 0.514}}
