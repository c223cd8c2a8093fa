"""Algorithms, one declaration a file, and problems, which give their axes sizes."""

from perfmodel.algorithms.algorithm import Algorithm, Band, Step, Tensor
from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.matmul import Matmul
from perfmodel.algorithms.problem import Problem
from perfmodel.algorithms.rowwise import Rowwise

__all__ = ["Algorithm", "Attention", "Band", "Matmul", "Problem", "Rowwise", "Step", "Tensor"]
