"""Kernels compiled for any GPU, without one, and the resources that their binaries use.

Start at `compiled`, which compiles kernels, reads the binaries and caches the results. `targets`
are the compile targets. `disassembly`, `instructions` and `issueslots` read the code.
`compilefacts` is the table of results stored beside the kernels, `compilesuite` writes it, and
`compiledeffect` applies it to a prediction.
"""
