"""A training step on one device: what it holds in memory, what it runs, how long it takes.

    adamw, recipe = optimisers.load("adamw"), precision.load("megatron")
    adamw.state_bytes(parameters, recipe)      # 8 bytes a parameter
    adamw.problems(parameters, recipe)         # what the model times: 30 bytes a parameter
    model_states(recipe, count, states, stage=1, shards=8)

A `Parameter` (parameter.py) is a weight by its shape. optimisers.yaml declares each update as the
steps of an algorithm, which optimiserfile.py reads into rules (update.py); cutting.py cuts steps
into kernels, launching.py says how a style launches these, and expansion.py makes problems of them,
so that states, traffic and products are counted, not stated. precision.py says in which types
weights, gradients and states lie, sharding.py which share of them a device holds.
"""
