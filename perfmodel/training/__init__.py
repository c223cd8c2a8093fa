"""A training step: what it runs over devices, how long it takes, and what it holds in memory.

    step = predict_step(networks.library.load("llama-3-8b"), Plan(seq=4096), device)
    step.seconds, step.classes, step.memory.lines

A `Plan` (plan.py) lays a step out. layers.py has each layer's passes as stretches of host and
device, pipeline/ their order over stages, fabric.py the links under it, overlap.py what hides what,
update.py the optimiser's kernels, memory.py what the fullest device holds; step.py joins them.

A `Parameter` (parameter.py) is a weight by its shape. optimisers.yaml declares each update as the
steps of an algorithm; optimisers.py cuts it into kernels, so that states, traffic and products are
counted, not stated. precision.py says in which types weights, gradients and states lie, sharding.py
which share of them a device holds. runs.py and runnetwork.py read rows of measured runs, and
metrics.py has what they measure of a step.
"""
