"""GPU memory-hierarchy performance model and rooflines, checked against measured runs.

    from perfmodel import Attention, load, predict
    predict(Attention(4, 32, 8, 4096, 4096, 128, causal=True), load("h100-sxm"))

Say what is computed (a problem), how it is laid out (a schedule) and where (a device); the counting
rule gives operations and bytes per level, the time model seconds, with every term kept.
"""

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import Cost, count
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load, names
from perfmodel.predict import Prediction, Predictions, predict, predict_arrays
from perfmodel.schedules import Kernel, Loop, Schedule

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Cost",
    "Device",
    "Kernel",
    "Loop",
    "Matmul",
    "PerfmodelError",
    "Prediction",
    "Predictions",
    "Rowwise",
    "Schedule",
    "__version__",
    "count",
    "load",
    "names",
    "predict",
    "predict_arrays",
]
