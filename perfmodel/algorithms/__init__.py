"""What is computed: one declaration a file, and the problem that gives its axes their sizes."""

from perfmodel.algorithms.algorithm import Algorithm, Band, Step, Tensor
from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.matmul import Matmul
from perfmodel.algorithms.problem import Problem
from perfmodel.algorithms.rowwise import Rowwise

__all__ = ["Algorithm", "Attention", "Band", "Matmul", "Problem", "Rowwise", "Step", "Tensor"]
