"""A measuring run on a GPU: everything that needs one, in minutes, robust to failures.

`perfmodel.measured.gpu_day` is the command. It uses no GPU itself: `supervisor` runs each stage in
its own process. A stage that hangs, crashes or runs out of time does not affect the others.

    stages       the work of each stage, on a `Gpu`
    gpu          a CUDA or ROCm device as stages use it
    rehearsal    the same without a GPU: Triton's interpreter, and made-up times
    precompile   the binaries of a grid, compiled with one process a core
    forecast     the plan: which configs to try, and their predicted times
    profile      one profiled call of many cases, under Nsight Compute
    summary      the results as a table

Only torch and triton are needed. Forecasts need the model, and therefore pydantic and PyYAML; they
can be made on another machine beforehand and copied over as a file.
"""
