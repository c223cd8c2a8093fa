"""Serving: from one step of a network to requests, and what fits beside the weights.

A *step* runs T tokens of B sequences through a network: a prompt, one token of each sequence, or
both. Its time is that of its kernels and exchanges, the gaps between launches and the engine's host:

    t(T, B, S) = Σ kernels + Σ gaps + Σ exchanges + host(engine, B)

    deployment = Deployment(load_network("llama-3-8b"), load_device("h100-sxm"), engine("vllm"))
    serve(deployment, Workload(isl=1024, osl=1024, batch=16)).ttft_seconds

`engine` has what is known of engines, `step` their steps, `memory` what fits, `requests` what
users see: TTFT, TPOT, tokens a second.
"""
