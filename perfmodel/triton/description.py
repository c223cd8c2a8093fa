"""What a Triton kernel computes, by the names of its arguments and of its config's fields.

A size is the name of an argument or a number; so is a flag. A tile is given by the names of the
config's fields. The type is that of a tensor argument, or is said.
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
"""Dimensions of the tiles of n configs, each of shape (n,)."""

WARPS, STAGES = "num_warps", "num_stages"
_USUAL = {WARPS: 4, STAGES: 3}


@dataclass(frozen=True)
class Description:
    """What a kernel computes and which fields of a config are its tile."""

    bundled: str
    """The bundled kernel whose compiled binaries stand for it (`perfmodel list kernels`)."""
    build: Callable[[Mapping[str, Any]], Problem]
    """The problem of one launch, from the kernel's arguments by name."""
    fields: Mapping[str, str]
    """Dimension of the model's tile to the config's field that sets it."""
    accumulators: Callable[[Any, Tiles], np.ndarray]
    """Sums of 32 bits that a block keeps in registers, shape (n,)."""

    def problem(self, arguments: Mapping[str, Any]) -> Problem:
        """The problem of one launch; raises `ProblemError` and `UnknownName` in one line each."""
        return self.build(arguments)

    def tiles(self, configs: Sequence[Any]) -> Tiles:
        """The tiles of some configs; raises `UnknownName` for a field that a config lacks."""
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
    """A product C[m,n] = A[m,k] B[k,n] in tiles, a block each.

    `data` is the argument that holds A, or `dtype` says its type; 32-bit floats multiply as tf32,
    as `tl.dot` has it. `tile` are the config's fields of rows, columns and steps of k, `group` the
    one of row blocks that launch together, `slices` the one of slices of k.
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
    """Tiled attention, forward or backward: a block a tile of queries, keys streamed.

    `data` is the argument that holds the queries, or `dtype` says its type; `causal` is the name of
    a flag or the flag; `tile` are the config's fields of queries and keys.
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
    """A row-wise operator ("softmax", "layernorm", "rmsnorm"), a block a row.

    `data` is the argument that holds the rows, or `dtype` says its type; `block` is the config's
    field of elements that a block takes at once.
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
    """The fields of a `triton.Config`, or of a mapping, and what Triton takes where it has none."""
    if isinstance(config, Mapping):
        return {**_USUAL, **config}
    if not hasattr(config, "all_kwargs"):
        raise ProblemError(f"a config is a triton.Config or a mapping, not {quoted(str(config))}")
    return {**_USUAL, **config.all_kwargs()}


def _field(fields: Mapping[str, Any], name: str) -> Any:
    if name not in fields:
        raise UnknownName("field of a config", name, fields)
    return fields[name]


def _value(arguments: Mapping[str, Any], said: Any) -> Any:
    """The argument of that name; what is no name is the value itself."""
    if not isinstance(said, str):
        return said
    if said not in arguments:
        raise UnknownName("argument of the kernel", said, arguments)
    return arguments[said]


def _size(arguments: Mapping[str, Any], said: Argument) -> int:
    value = _value(arguments, said)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{said} is no size but {quoted(str(value)[:40])}") from None


def _dtype(arguments: Mapping[str, Any], data: str | None, dtype: str | None) -> str:
    """The type that is said, or that of the tensor argument `data`."""
    if dtype is not None:
        return dtype
    if data is None:
        raise ProblemError("name the argument that holds the data (data=), or its type (dtype=)")
    tensor = _value(arguments, data)
    name = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if name not in TORCH:
        raise UnknownName(f"type of {data}", name, TORCH)
    return TORCH[name]
