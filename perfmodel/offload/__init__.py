"""Networks larger than a device: data in host memory or on disk, and the time of moving it.

policy.py places weights, cache and activations. layertimes.py has the time of a layer's transfers
and work, by FlexGen's fitted rates (flexgen.py) or by this model's operators and links
(modelled.py). search.py finds the fastest policy that fits.

recompute.py splits a KV cache into a part that is sent and a part that is recomputed (KVPR).
streaming.py sends weights while a batch computes. sharing.py puts some layers on the host.
"""
