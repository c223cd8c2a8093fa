"""The counting rule: algorithm × schedule → operations, bytes per boundary, footprint."""

from perfmodel.count.cost import Cost, KernelCost, Traffic, count, memory_bytes

__all__ = ["Cost", "KernelCost", "Traffic", "count", "memory_bytes"]
