"""Timed runs of this machine.

Start at `measure`, which checks and times cases. `session` sets up the stopwatches (`timer`) and
the implementations to time (`contenders`, `rivals`). `microbench` and its probes measure the rates
of a hardware spec, and `calibrate` writes the spec. `environment`, `watch` and `journal` record the
device's state and the rows.

`references` has the right results,
`counters` turns a profiler's counters into measured rows, `compilesuite` compiles every menu, and
`gpu_day` runs all that needs a GPU in one go: its parts are in `dayparts`, `predicted` says which
configs are worth trying.
"""
