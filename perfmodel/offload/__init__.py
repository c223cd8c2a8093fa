"""Networks larger than a device: what lies in host memory or on disk, and what moving it costs.

policy.py says which shares of weights, cache and activations lie where; layertimes.py how long a
layer's transfers and work take, by FlexGen's fitted rates (flexgen.py) or by this model's operators
and links (modelled.py); search.py finds the best policy that fits. recompute.py splits a cache
between sending it and computing it anew (KVPR), streaming.py sends weights while a batch computes,
sharing.py divides work between two machines. schedule.py runs tasks on resources, one after
another on each.
"""
