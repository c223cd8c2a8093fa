"""Whole transformers: what they are, and the operators that a pass over them runs.

A `Network` (network.py) is sizes and blocks; presets/ has published ones, huggingface/ reads a
config.json. A `Stack` (stacks.yaml) says what software makes of a layer. layers/ puts operations
together, and operations/ write their kernels forward and backward, with the tensors that each
backward reads; expand.py makes segments of them, one a kind of layer, and predict.py times these.
"""
