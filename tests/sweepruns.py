"""A small sweep, for tests of the folder that it writes, and what such a folder holds."""

import hashlib
from pathlib import Path

import numpy as np

from perfmodel import operators
from perfmodel.analysis.sweep import Grid, Sweep
from perfmodel.hardware import load


def small(side=60, chunk=500, devices=("h100-sxm", "b200")):
    sizes = {"rows": np.arange(1, side + 1), "cols": np.arange(1, side + 1)}
    grid = Grid(operators.load("softmax"), sizes, {"op": ("softmax",), "dtype": ("bf16", "fp32")})
    return Sweep(grid, tuple(load(name) for name in devices), chunk=chunk)


def contents(folder):
    """Every visible file by its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
