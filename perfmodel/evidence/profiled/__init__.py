"""Profiles of whole programs: every launch with its time, and what it computed.

timeline = formats.read("trace.json")             # launches in order, whatever tool saw them
groups = matching.grouped(timeline, ...)          # equal launches, and the problem that they ran

timeline      launches in columns: start, duration, kernel
jsonstream    the events of a trace, one after another
torchtrace    torch.profiler     nsystems   Nsight Systems' SQLite
ncompute      Nsight Compute's CSV          rocprofiler   rocprofv3's CSV and SQLite
formats       which of these a file is
operations    recorded operators and their shapes, as problems (operations.yaml)
kernelnames   what a kernel's name says (kernelnames.yaml)
order         launches in order against the nodes of a known graph
matching      all three
"""
