"""Sweeps: a grid of problems and devices, predicted chunk by chunk into partitioned Parquet.

from perfmodel.analysis.sweep import Grid, Sweep, run
grid = Grid(operators.load("gemm"), {"m": sizes, "n": sizes, "k": sizes}, {"dtype": ("bf16",)})
run(Sweep(grid, (load("h100-sxm"),)), "folder")       # a second run resumes a stopped one

A chunk is a contiguous range of the grid's indices. It is decoded, predicted and written on its
own, so memory does not grow with the grid, and the same function runs here and on Dask.
"""

from perfmodel.analysis.sweep.answers import Answer, best, matching, pareto
from perfmodel.analysis.sweep.manifest import read_manifest
from perfmodel.analysis.sweep.plan import CHUNK, Sweep
from perfmodel.analysis.sweep.runner import Written, run
from perfmodel.analysis.sweep.store import parts
from perfmodel.operators.grid import LIMIT, Grid

__all__ = [
    "CHUNK",
    "LIMIT",
    "Answer",
    "Grid",
    "Sweep",
    "Written",
    "best",
    "matching",
    "pareto",
    "parts",
    "read_manifest",
    "run",
]
