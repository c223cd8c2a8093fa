"""The former place of `perfmodel.evidence.profiled.ncu` and `.counters`."""

from perfmodel.evidence.profiled import ncu

__all__ = ["ncu"]
