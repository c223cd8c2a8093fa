"""Serving: the time of one step of a network, requests made of steps, and the memory for the cache.

A *step* runs T tokens of B sequences through a network: a prefill, one decoded token of each
sequence, or both. Its time is the sum of its kernels and exchanges, of the gaps between launches,
and of the engine's host time:

    t(T, B, S) = Σ kernels + Σ gaps + Σ exchanges + host(engine, B)

    network, device = load_network("llama-3-8b"), load_device("h100-sxm")
    steps = Steps(Deployment(network, device, engine.load("vllm")))
    for one in serve(steps, "concurrency", [1, 8, 64], isl=1024, osl=1024):
        print(one.metric("ttft_ms"), one.metric("tpot_ms"))

Start at `deployment` (the network, the devices, the formats), `engine` (facts about engines:
engines/) and `steps` (the time of a step). `requests` makes loads of steps, `served` the metrics
that users see. `cachememory` has the capacity; `speculative` and `disaggregated` model drafts and
separate pools.
"""
