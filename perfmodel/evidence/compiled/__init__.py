"""Kernels compiled for GPUs that are not here, and what their binaries say.

Start at `compiled`, which compiles, reads and keeps. `targets` are what a compiler can aim at,
`disassembly`, `instructions` and `issueslots` read the code, `compilefacts` is the table beside the
kernels, `compilesuite` makes it, `compiledeffect` puts it into a prediction.
"""
