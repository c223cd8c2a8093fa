"""Replays kernels address by address and compares every byte with the counting rule; needs no GPU.

Start at `replay.replay`. `recorder` records loads and stores in Triton's interpreter, `cachesim`
simulates an L2 with them, `tilestream` derives the same accesses from a schedule, and `suite` runs
everything.
"""
