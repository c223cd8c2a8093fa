"""A training step on one device: what it holds in memory, what it runs, how long it takes.

    optimiser = optimisers.load("adamw")
    precision = precision.load("megatron")
    optimiser.state_bytes(parameters, precision)      # 8 bytes a parameter
    optimiser.problems(parameters, precision)         # what the model times

A `Parameter` (parameter.py) is a weight by its shape. optimisers.yaml declares each update as the
steps of an algorithm; optimisers.py reads it and update.py cuts it into kernels, so that states,
traffic and products are counted, not stated. precision.py says in which types weights, gradients
and states lie, sharding.py which share of them a device holds.
"""
