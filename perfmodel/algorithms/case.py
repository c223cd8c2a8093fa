"""A declared algorithm, and the same at given sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Band
from perfmodel.algorithms.expressions import evaluate, names, resolve
from perfmodel.algorithms.gradient import SAME, gradient
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.algorithms.sizes import LARGEST, check_points
from perfmodel.arithmetic import Number, ceil_div, product
from perfmodel.elements import ELEMENTS, ElementType, element
from perfmodel.errors import ProblemError, UnknownName

_NONE: Mapping[str, str] = MappingProxyType({})
MOST_ELEMENTS = 2**56
"""The most elements of a tensor: its bytes, read several times over, are counted in 64 bits."""


@dataclass(frozen=True)
class Case:
    """An algorithm at given sizes: the input of the counting rule and the mapper."""

    algorithm: Algorithm
    """The algorithm."""
    sizes: Mapping[str, Any]
    """Extent of each axis, an array where a parameter is one; of a shard where `ranks` splits axes
    over devices."""
    elements: Mapping[str, ElementType]
    """Element type of each role."""
    parameters: Mapping[str, Any]
    """Parameter values from which the sizes follow."""
    dtype: str
    """Type of the data."""
    operator: Mapping[str, Any] | None = None
    """The built-in operator that computes the same, as declared."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Devices that each axis is split over."""
    extents: Mapping[str, Any] = field(default_factory=dict)
    """Expressions of the unsharded sizes."""
    compute: str = ""
    """Type that its contractions run at, where all their operands have types of their own; empty:
    the data's."""
    counted: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What a search has counted of it, by steps and by the shape of the device: kept, because all
    devices of that shape count alike."""

    def shard(self, ranks: Mapping[str, int]) -> Case:
        """The case of the device with the largest shard, with axes split over `ranks` devices.

        Raises `ProblemError` where the mask allows no such split.
        """
        band = self.algorithm.mask
        if band is not None:
            band.check_split(ranks, self.sizes[band.query])
        sizes = {axis: ceil_div(size, ranks.get(axis, 1)) for axis, size in self.sizes.items()}
        return replace(self, sizes=sizes, ranks=dict(ranks))


@dataclass(frozen=True)
class Declaration:
    """A declared algorithm; `at` sets its sizes."""

    algorithm: Algorithm
    """The algorithm."""
    about: str
    """One sentence about it."""
    source: str
    """Reference of the algorithm."""
    parameters: Mapping[str, Any]
    """Parameters with their defaults, which may be expressions of others."""
    extents: Mapping[str, Any]
    """An expression of the parameters for each axis."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Type of each element role; "data": the data's type."""
    mask: Mapping[str, Any] | None = None
    """The mask as declared."""
    operator: Mapping[str, Any] | None = None
    """Name and sizes of the built-in operator that computes the same; libraries' kernels of it can
    then be timed."""
    limits: tuple[str, ...] = ()
    """Comparisons of parameters that hold in every problem: top_k <= experts."""
    recompute: tuple[str, ...] = ()
    """Tensors that the backward pass makes again instead of reading them from memory."""

    @cached_property
    def backward(self) -> Declaration:
        """The declaration of the backward pass, by `gradient`. Raises `ProblemError` where no input
        has a gradient."""
        return self.recomputing(self.recompute)

    def recomputing(self, tensors: tuple[str, ...]) -> Declaration:
        """The backward pass in which these tensors are made again."""

        def role(name: str) -> str:
            typed = self.types.get(name, name) != "data" and name in {*SAME, *self.types}
            return name if typed else "gradient"

        algorithm = gradient(self.algorithm, recompute=tensors, role=role)
        return replace(self, algorithm=replace(algorithm, name=self.name))

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self.algorithm.name

    def at(self, dtype: str = "bf16", roles: Mapping[str, str] = _NONE, /, **given: Any) -> Case:
        """The algorithm at given parameters, with `roles` of other types than declared.

        Parameters may be float64 arrays where there is no mask. Raises `ProblemError` for sizes
        without meaning.
        """
        for name in given:
            if name not in self.parameters:
                raise UnknownName(f"parameter of {self.name}", name, self.parameters)
        values = resolve({**self.parameters, **given}, self.name)
        self._check_limits(values)
        sizes = {axis: self._extent(axis, said, values) for axis, said in self.extents.items()}
        algorithm = Algorithm(
            self.name,
            self.algorithm.axes,
            self.algorithm.tensors,
            self.algorithm.steps,
            self.algorithm.outputs,
            self._band({**values, **sizes}),
        )
        self._check(sizes)
        elements = self.elements(dtype, roles)
        operator, extents, compute = self.operator, self.extents, self._compute(elements)
        return Case(
            algorithm, sizes, elements, values, dtype, operator, extents=extents, compute=compute
        )

    def _compute(self, elements: Mapping[str, ElementType]) -> str:
        products = [step for step in self.algorithm.steps if step.kind == "contraction"]
        operands = {self.algorithm.tensors[name].element for x in products for name in x.inputs}
        types = {elements[role].compute for role in operands}
        typed = all(self.types.get(role, "data") != "data" for role in operands)
        return types.pop() if typed and len(types) == 1 else ""

    def _check_limits(self, values: Mapping[str, Any]) -> None:
        for limit in self.limits:
            holds = np.asarray(evaluate(limit, values))
            if np.all(holds):
                continue
            first = int(np.argmin(holds.reshape(-1)))
            sizes = (
                f"{name} = {np.ravel(values[name])[min(first, np.size(values[name]) - 1)]:g}"
                for name in sorted(names(limit))
            )
            raise ProblemError(
                f"{self.name} needs {limit}, but {' and '.join(sizes)}; change one of them"
            )

    def _check(self, sizes: Mapping[str, Number]) -> None:
        """Raise `ProblemError` for tensors and steps too large to be counted."""
        tensors = self.algorithm.tensors
        for tensor in tensors.values():
            if np.any(product(sizes[axis] for axis in tensor.axes) > MOST_ELEMENTS):
                raise ProblemError(
                    f"tensor {tensor.name} of {self.name} has more than 2^56 elements "
                    f"({' x '.join(tensor.axes)}); give smaller sizes"
                )
        for step in self.algorithm.steps:
            operands = (tensors[name] for name in (*step.inputs, *step.outputs))
            check_points({axis: sizes[axis] for tensor in operands for axis in tensor.axes})

    def _extent(self, axis: str, text: Any, values: Mapping[str, Any]) -> Number:
        value = evaluate(text, values)
        first = 0
        if isinstance(value, np.ndarray):
            fits = (value == np.floor(value)) & (value >= 1) & (value <= LARGEST)
            first = int(np.argmin(fits))
            worst = value[first] if not np.all(fits) else 1.0
        else:
            worst = value
        if not is_whole(worst) or not 1 <= worst <= LARGEST:
            named = {k: v for k, v in values.items() if str(k) in str(text)}
            named = {k: f"{v[first]:g}" if np.ndim(v) else v for k, v in named.items()}
            inputs = ", ".join(f"{k} = {v}" for k, v in named.items())
            raise ProblemError(
                f"axis {axis} of {self.name} is {text} = {worst:g}, which is no whole number of at "
                f"least 1 and at most 2^40; change {inputs or 'it'}"
            )
        return value if isinstance(value, np.ndarray) else int(value)

    def _band(self, values: Mapping[str, Any]) -> Band | None:
        if self.mask is None:
            return None
        query, key = str(self.mask["query"]), str(self.mask["key"])
        share = evaluate(self.mask.get("share", 1), values)
        if not 0 < share <= 1:
            raise ProblemError(
                f"{self.name} keeps a share of {share:g} of its tiles; 0 < share ≤ 1"
            )
        if share < 1:
            return Band(query, key, share=float(share))
        # One query aligned to the end sees every key, causal or not.
        causal = bool(evaluate(self.mask.get("causal", False), values)) and values[query] > 1
        window = evaluate(self.mask.get("window", 0), values) or None
        if window is not None and not (is_whole(window) and 0 < window <= LARGEST):
            raise ProblemError(
                f"{self.name} has a window of {window:g} keys; write a whole number up to 2^40, or "
                "0 for all"
            )
        if not causal and window is None:
            return None
        right = 0 if causal else (None if window is None else window - 1)
        return Band(query, key, left=window, right=right)

    def elements(self, dtype: str, roles: Mapping[str, str] = _NONE) -> dict[str, ElementType]:
        """Element type of every role when the data are of type `dtype`, or in such a format of
        products, and those of `roles` of other types than declared."""
        if dtype in ELEMENTS:
            data = weights = element(dtype)
            output = data if data.bits >= 16 else element("bf16")
        else:
            form = matmul_format(dtype)
            data, weights, output = map(element, (form.activations, form.weights, form.output))
        types = {
            "data": data,
            "output": output,
            "gradient": output,
            "accumulator": element("fp32"),
            "statistic": element("fp32"),
        }
        for role, name in {**self.types, **roles}.items():
            as_data = weights if role == "weights" else data
            types[role] = as_data if name == "data" else element(name)
        return types


def is_whole(value: Any) -> bool:
    """Whether a value is a finite whole number; booleans are not."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value == math.floor(value)
