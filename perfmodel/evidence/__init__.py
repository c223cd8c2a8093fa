"""Evidence for predictions: replayed addresses, compiled code, hardware counters and clocks.

The only door to torch and triton, and it opens late: importing this package loads neither.

    kernel, registry, products      a kernel that brings its reference, algorithm and config menu
    cases, casefile                 what to run: problems by name or from a file
    references, gradients           the right answer, and how far from it is still right
    replay/      a kernel's own addresses against the count, and through a simulated cache
    compiled/    binaries for GPUs that are not here: registers, shared memory, instructions
    measured/    timed runs and micro-benchmarks of this machine
    importers/   what profilers write: Nsight Compute and Systems, rocprofv3, torch
    profiled/    profiles of whole programs: every launch, and the problem that it ran
    tables/      tables as people have them, read into the columns of a kind of table
    records/     the measured-run table, and runs cited from papers
    day/, gpu_day                   all of it in the half hour that a GPU is there
"""
