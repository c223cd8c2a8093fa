"""Proofs of a prediction that need no GPU: a kernel's addresses, and its binary.

    kernel, registry   a bundled kernel: its reference, algorithm and config menu
    replay/            its recorded addresses, compared with the count and run through a cache
    compiled/          its binary for any GPU: registers, shared memory, instructions

torch and triton are imported where they are used: importing the package loads neither. Times of a
real device are in `perfmodel.measured`.
"""
