"""Weights in fewer bytes: formats, sparsity, smaller networks, and what they do to a step.

A `Scheme` (scheme.py) says what a matrix takes in memory and which kernels multiply by it:
quantised.py has the formats of formats.yaml, squeeze.py SqueezeLLM, semistructured.py 2:4,
unstructured.py tiled CSL and CSR, structured.py pruned networks. naming.py reads their names,
network.py puts one into a network, breakeven.py says where one starts or ends to pay.

What a scheme does to a network's answers is not known here.
"""
