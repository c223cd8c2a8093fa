"""Transformers: their sizes, and the operators that a pass over one runs.

A `Network` (network.py) has sizes and blocks. presets/ has published networks; huggingface/ reads a
config.json. A `Stack` (stacks.yaml) is a software stack: it decides which operations of a layer
share a kernel.

layers/ builds a layer out of operations. operations/ has the kernels of each operation, forward and
backward, and the tensors that its backward pass reads. expand.py makes one segment for each kind of
layer, and networktime.py times the segments.
"""
