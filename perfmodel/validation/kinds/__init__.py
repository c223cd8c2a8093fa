"""The kinds of tables of `perfmodel compare`: one module for each, with its `KIND`.

kind = load("collective")
reading = read(["runs.csv"], kind.layout)          # perfmodel.table.reading
predicted = kind.predicted(reading.table, reading.faults)
report(predicted, ["device"], fields=kind.fields)
"""

from perfmodel.validation.kinds.kind import KINDS, Kind, Remarks, load

__all__ = ["KINDS", "Kind", "Remarks", "load"]
