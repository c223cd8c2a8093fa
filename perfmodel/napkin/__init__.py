"""FlashAttention on a napkin: which axes may be tiled, what tiles cost, and the best of them.

The theory is that of Abbott & Zardini 2024 (2412.03317): group and stream partitions, transfer
cost H, memory M, optima of the form Σ α·M^-β; the counts are those of `perfmodel.count`.
"""

from perfmodel.napkin.fusion import Verdict, partitions

__all__ = ["Verdict", "partitions"]
