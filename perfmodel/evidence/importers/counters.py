"""The former place of `perfmodel.evidence.profiled.counters`."""

from perfmodel.evidence.profiled.counters import COLUMNS, NCU_METRICS, import_counters

__all__ = ["COLUMNS", "NCU_METRICS", "import_counters"]
