"""Evidence for predictions: replayed addresses, compiled code, hardware counters and clocks.

Only this package uses torch and triton. Both are imported where they are used: importing the
package loads neither.

    kernel, registry, products      a bundled kernel: its reference, algorithm and config menu
    cases, casefile                 what to run: problems by name or from a file
    references, gradients           reference results, and the error that is allowed
    replay/      a kernel's recorded addresses, compared with the count and run through a cache
    compiled/    binaries for any GPU: registers, shared memory, instructions
    measured/    timed runs and micro-benchmarks of this machine
    profiled/    profiles of whole programs: every launch, and the problem that it ran
    tables/      users' tables, read into the columns of a kind of table
    records/     the measured-run table, and runs cited from papers
    day/, gpu_day                   all measurements on a GPU in one run of about half an hour
"""
