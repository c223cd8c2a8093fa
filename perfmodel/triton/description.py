"""What a Triton kernel computes, by the names of its arguments and config fields.

A size or flag is the name of an argument, or a value. A tile is given by the names of config
fields. The type is that of a tensor argument, or is given by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.attention import Direction
from perfmodel.elements import TORCH
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.plaintext import quoted

Argument = str | int
"""The name of a kernel's argument, or a number."""
Tiles = Mapping[str, np.ndarray]
"""Tile dimensions of n configs, each of shape (n,)."""

WARPS, STAGES = "num_warps", "num_stages"
_USUAL = {WARPS: 4, STAGES: 3}


@dataclass(frozen=True)
class Description:
    """What a kernel computes, and which config fields are its tile."""

    bundled: str
    """The bundled kernel whose compiled binaries represent it (`perfmodel list kernels`)."""
    build: Callable[[Mapping[str, Any]], Problem]
    """The problem of one launch, from the kernel's arguments by name."""
    fields: Mapping[str, str]
    """Dimension of the model's tile → the config field that sets it."""
    accumulators: Callable[[Any, Tiles], np.ndarray]
    """32-bit accumulators that a block keeps in registers, shape (n,)."""

    def problem(self, arguments: Mapping[str, Any]) -> Problem:
        """The problem of one launch. Raises `ProblemError` and `UnknownName`."""
        return self.build(arguments)

    def tiles(self, configs: Sequence[Any]) -> Tiles:
        """The tiles of configs. Raises `UnknownName` for a field that a config lacks."""
        each = [_fields(config) for config in configs]
        return {
            dimension: np.array([_field(fields, name) for fields in each], dtype=np.float64)
            for dimension, name in self.fields.items()
        }


def matmul(
    m: Argument,
    n: Argument,
    k: Argument,
    *,
    data: str | None = None,
    dtype: str | None = None,
    batch: Argument = 1,
    tile: tuple[str, str, str] = ("BLOCK_M", "BLOCK_N", "BLOCK_K"),
    group: str | None = None,
    slices: str | None = None,
) -> Description:
    """A product C[m,n] = A[m,k] B[k,n], one tile a block.

    `data` is the argument that holds A, or `dtype` names its type; 32-bit floats multiply as tf32,
    as in `tl.dot`. `tile` names the config fields of rows, columns and steps of k. `group` names
    the field of row blocks that are launched together, `slices` the field of slices of k.
    """

    def build(arguments: Mapping[str, Any]) -> Problem:
        kind = _dtype(arguments, data, dtype)
        kind = "tf32" if kind == "fp32" and dtype is None else kind
        rows, columns, depth, number = (_size(arguments, size) for size in (m, n, k, batch))
        return Matmul(rows, columns, depth, number, kind)

    fields = dict(zip(("m", "n", "k"), tile, strict=True)) | {"warps": WARPS, "stages": STAGES}
    further = {"group": group, "slices": slices}
    fields |= {dimension: name for dimension, name in further.items() if name}
    return Description("matmul", build, fields, lambda _, tiles: tiles["m"] * tiles["n"])


def attention(
    heads: Argument,
    seq: Argument,
    head_dim: Argument,
    *,
    batch: Argument = 1,
    kv_heads: Argument | None = None,
    seq_kv: Argument | None = None,
    causal: bool | str = False,
    data: str | None = None,
    dtype: str | None = None,
    direction: Direction = "fwd",
    tile: tuple[str, str] = ("BLOCK_M", "BLOCK_N"),
) -> Description:
    """Tiled attention, forward or backward: each block has a tile of queries and streams keys.

    `data` is the argument that holds the queries, or `dtype` names its type; `causal` is a flag or
    the name of one; `tile` names the config fields of queries and keys.
    """

    def build(arguments: Mapping[str, Any]) -> Problem:
        queries, keys = _size(arguments, seq), _size(arguments, seq if seq_kv is None else seq_kv)
        return Attention(
            _size(arguments, batch),
            _size(arguments, heads),
            _size(arguments, heads if kv_heads is None else kv_heads),
            queries,
            keys,
            _size(arguments, head_dim),
            causal=bool(_value(arguments, causal)),
            dtype=_dtype(arguments, data, dtype),
            direction=direction,
        )

    def forward(problem: Any, tiles: Tiles) -> np.ndarray:
        return np.asarray(tiles["rows"] * (problem.head_dim + tiles["keys"]))

    def backward(problem: Any, tiles: Tiles) -> np.ndarray:
        return np.asarray(tiles["keys"] * 2 * problem.head_dim)

    fields = {"rows": tile[0], "keys": tile[1], "warps": WARPS, "stages": STAGES}
    sums = forward if direction == "fwd" else backward
    bundled = "attention-tiled" if direction == "fwd" else "attention-backward"
    return Description(bundled, build, fields, sums)


def rows(
    op: str,
    rows: Argument,
    columns: Argument,
    *,
    data: str | None = None,
    dtype: str | None = None,
    direction: Direction = "fwd",
    block: str = "BLOCK_SIZE",
) -> Description:
    """A row-wise operator ("softmax", "layernorm", "rmsnorm"), one row a block.

    `data` is the argument that holds the rows, or `dtype` names its type; `block` names the config
    field of elements that a block processes at once.
    """

    def build(arguments: Mapping[str, Any]) -> Problem:
        return Rowwise(
            op,
            _size(arguments, rows),
            _size(arguments, columns),
            _dtype(arguments, data, dtype),
            direction=direction,
        )

    fields = {"columns": block, "warps": WARPS}
    bundled = op if direction == "fwd" else f"{op}-backward"
    return Description(bundled, build, fields, lambda _, tiles: tiles["columns"])


def _fields(config: Any) -> dict[str, Any]:
    """The fields of a `triton.Config` or a mapping, with Triton's defaults."""
    if isinstance(config, Mapping):
        return {**_USUAL, **config}
    if not hasattr(config, "all_kwargs"):
        raise ProblemError(f"a config is a triton.Config or a mapping, not {quoted(str(config))}")
    return {**_USUAL, **config.all_kwargs()}


def _field(fields: Mapping[str, Any], name: str) -> Any:
    if name not in fields:
        raise UnknownName("field of a config", name, fields)
    return fields[name]


def _value(arguments: Mapping[str, Any], name: Any) -> Any:
    """The argument of that name; a value that is no name is returned as it is."""
    if not isinstance(name, str):
        return name
    if name not in arguments:
        raise UnknownName("argument of the kernel", name, arguments)
    return arguments[name]


def _size(arguments: Mapping[str, Any], argument: Argument) -> int:
    value = _value(arguments, argument)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{argument} is no size but {quoted(str(value)[:40])}") from None


def _dtype(arguments: Mapping[str, Any], data: str | None, dtype: str | None) -> str:
    """The given type, or that of the tensor argument `data`."""
    if dtype is not None:
        return dtype
    if data is None:
        raise ProblemError("name the argument that holds the data (data=), or its type (dtype=)")
    tensor = _value(arguments, data)
    name = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if name not in TORCH:
        raise UnknownName(f"type of {data}", name, TORCH)
    return TORCH[name]
