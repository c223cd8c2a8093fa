"""The registry of operators: what a user can predict by name, each in one file.

    operator = load("gemm")                 # or "cross-entropy", or "mine.yaml"
    problem = operator.problem(m=4096, n=4096, k=4096, dtype="bf16")
    operator_of(problem).time(problem, device, constants, Request())

An `Operator` (operator.py) has its options, which problems one call can time as arrays, and how a
problem is timed. attention.py, gemm.py and rowwise.py know what libraries run; their shared way
from a class of kernels to the best tile is library.py.

declared.py serves every algorithm that is declared in YAML: its schedules are the mapper's.
registry.py finds them by name, those of other packages by the entry point `perfmodel.operators`. No
code outside this folder branches on the kind of problem.
"""

from perfmodel.operators.operator import Operator, Request, Timed
from perfmodel.operators.options import Choice, Flag, Option, Size
from perfmodel.operators.registry import every, find, load, names, operator_of

__all__ = [
    "Choice",
    "Flag",
    "Operator",
    "Option",
    "Request",
    "Size",
    "Timed",
    "every",
    "find",
    "load",
    "names",
    "operator_of",
]
