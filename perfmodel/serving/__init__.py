"""Serving: from one step of a network to requests, and what fits beside the weights.

A *step* runs T tokens of B sequences through a network: a prompt, one token of each sequence, or
both. Its time is that of its kernels and exchanges, of the gaps between launches, and of the
engine's host:

    t(T, B, S) = Σ kernels + Σ gaps + Σ exchanges + host(engine, B)

    network, device = load_network("llama-3-8b"), load_device("h100-sxm")
    steps = Steps(Deployment(network, device, engine.load("vllm")))
    for one in serve(steps, "concurrency", [1, 8, 64], isl=1024, osl=1024):
        print(one.metric("ttft_ms"), one.metric("tpot_ms"))

Start at `deployment` (what is served, on what), `engine` (what is known of engines: engines/), and
`steps` (what a step takes). `requests` makes loads of steps and `served` what users see of them;
`memory` says what fits, `speculative` and `disaggregated` what drafts and separate pools change.
"""
