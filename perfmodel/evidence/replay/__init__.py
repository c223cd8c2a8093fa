"""Kernels run address by address: every byte against the counting rule, no GPU needed.

Start at `replay.replay`. `recorder` notes loads and stores in the interpreter of Triton, `cachesim`
is an L2 fed with them, `tilestream` gives the same stream from a schedule, `suite` runs all.
"""
