"""Profiles of whole programs: every launch with its time and, where known, its problem.

timeline = formats.read("trace.json")             # launches in order, from any profiler
groups = matching.grouped(timeline, ...)          # equal launches together, with their problem

timeline      launches in columns: start, duration, kernel, counters; ranges named after cases
formats       finds the reader of a file
ncu           Nsight Compute's CSV, and the metrics to request
nsys          Nsight Systems' CSV           nsysdatabase  its SQLite
rocprof       rocprofv3's CSV and SQLite    torchtrace    torch.profiler's trace
profiletable  a profiler's CSV              database, jsonstream   SQLite, the events of a trace
operations    recorded operators with shapes, as problems (operations.yaml)
traffic       what those without products read and write     streams   as problems
convolutions  recorded convolutions as implicit products
kernelnames   operator, type and tile from a kernel's name (kernelnames.yaml)
order         launches in order, aligned with the nodes of a known graph
matching      combines these three
"""
