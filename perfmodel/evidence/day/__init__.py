"""A day with a GPU: everything that needs one, in minutes, whatever goes wrong.

`perfmodel.evidence.gpu_day` is the command. It touches no GPU itself: `supervisor` runs each stage
in a process of its own, which may hang, crash or run out of time and takes nothing with it.

    stages       what each stage does, on a `Bed`
    bed, gpu     what stages need of a device, and a CUDA or ROCm device as one
    rehearsal    the same without a GPU: Triton's interpreter and a stopwatch that invents times
    precompile   the binaries of a grid, compiled in as many processes as there are cores
    forecast     the plan: which configs to try, and what the model says before anything is run
    profile      one profiled call of many cases, under Nsight Compute
    summary      what the day has shown, in a table

Only torch and triton are needed. Forecasts need the model, and so pydantic and PyYAML: they can be
made before, on another machine, and carried along as a file.
"""
