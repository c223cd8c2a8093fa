"""A training step over devices: how long it takes, and what it holds in memory.

    step = predict_step(networks.library.load("llama-3-8b"), Plan(seq=4096), device)
    step.seconds, step.classes, step.memory.lines

A `Plan` (plan.py) distributes a step over devices. layers.py times each layer's passes on host and
device, pipeline/ orders them over stages, fabric.py has the links, overlap.py what communication
hides under. update.py has the optimiser's kernels, stepmemory.py the memory of the fullest device.
step.py combines them, as a tree of leaves that add up (steptree.py).

A `Parameter` (parameter.py) is a weight by its shape. optimisers.yaml declares each update as steps
of an algorithm; optimisers.py cuts it into kernels, so that states, traffic and products are
counted.

precision.py has the types of weights, gradients and states. trainingrows.py and runnetwork.py read
rows of measured runs, and metrics.py computes the metric of a row from a step.
"""
