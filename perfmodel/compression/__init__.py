"""Weights in fewer bytes: formats, sparsity, smaller networks, and the time of a step with them.

A `Scheme` (scheme.py) has the bytes of a matrix and the kernels that multiply by it. quantised.py
has the formats of formats.yaml, sparse.py those that store fewer weights: 2:4, tiled CSL, CSR,
SqueezeLLM, pruned networks.

naming.py parses names of schemes, compressed.py applies one to a network, comparing.py compares
schemes and finds where one starts or stops paying off. The accuracy of a compressed network is not
modelled.
"""
