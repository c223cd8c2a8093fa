"""An event loop over the steps of a deployment: requests that arrive, wait, run and end.

    steps = Steps(Deployment(network, device, engine.load("vllm"), tensor=4))
    traffic = Traffic(requests=10_000, seed=1)
    outcome = simulate(steps, traffic.arriving(rate=2.0, isl=1024, osl=256))
    outcome.quantile("ttft", 0.99)

`traffic` draws requests and `trace` reads recorded ones; `steptable` has the time of every step;
`server` is the scheduler of one copy of the network, `loop` runs the copies; `outcome` has what
clients saw. The closed forms of `requests` answer the same questions without chance.
"""
