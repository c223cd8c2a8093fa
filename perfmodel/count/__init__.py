"""The counting rule: algorithm × schedule → operations, bytes per boundary, footprint."""

from perfmodel.count.compulsory import compulsory_bytes
from perfmodel.count.cost import Cost, KernelCost, Traffic, count, memory_bytes

__all__ = ["Cost", "KernelCost", "Traffic", "compulsory_bytes", "count", "memory_bytes"]
