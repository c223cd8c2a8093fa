"""Evidence for predictions: kernels replayed address by address, and simulated caches.

The only door to torch and triton, and it opens late: importing this package loads neither.
"""
