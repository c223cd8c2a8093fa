"""Recorded operators and their shapes as problems: rows of the measured-run table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.evidence.profiled.timeline import Recorded

Row = Mapping[str, Any]
"""Columns of the measured-run table."""
_UNSTATED = "bf16"


@dataclass(frozen=True)
class Found:
    """The problem of a recorded operator."""

    row: Row
    """The columns that state its problem: op, dtype, sizes."""
    estimated: bool = False
    """Whether only its bytes are known, not its operations."""


@lru_cache(maxsize=65536)
def problem(recorded: Recorded, dtype: str = "") -> Found | None:
    """The problem of an operator with shapes; None if it is unknown or computes nothing.

    `dtype` is used where the profile records no type; if it is empty too, bf16 is.
    """
    handler = _handlers().get(_plain(recorded.name))
    if handler is None or not recorded.dims:
        return None
    try:
        return handler(recorded, dtype or _UNSTATED)
    except (IndexError, ValueError):  # not the form of the operator that the table describes
        return None


def is_free(name: str) -> bool:
    """Whether an operator makes a view or allocates, and computes nothing."""
    return _plain(name) in _free()


def from_text(text: str) -> Recorded | None:
    """The operator named by a range of `torch.autograd.profiler.emit_nvtx`.

    "aten::mm, seq = 1, op_id = 5, sizes = [[1024, 256], [256, 256]]" (its record_shapes=True).
    """
    found = _RANGE.match(text)
    if found is None:
        return None
    sizes = _sizes(found["sizes"] or "")
    return Recorded(found["name"], sizes)


_RANGE = re.compile(
    r"(?P<name>[\w:.]{1,120})(?:, seq = \d+)?(?:, op_id = \d+)?"
    r"(?:, sizes = (?P<sizes>\[.{0,4000}?\]))?(?:, input_op_ids.*)?$",
    re.DOTALL,
)
_LIST = re.compile(r"\[([\d, ]*)\]")


def _sizes(text: str) -> tuple[tuple[int, ...], ...]:
    inner = text.strip()[1:-1]
    return tuple(
        tuple(int(size) for size in each.split(",") if size.strip())
        for each in _LIST.findall(inner)
    )


@lru_cache(maxsize=1)
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("operations.yaml"))
    return found


@lru_cache(maxsize=1)
def _free() -> frozenset[str]:
    return frozenset(map(_plain, _document()["free"]["names"]))


@lru_cache(maxsize=1)
def _handlers() -> Mapping[str, Callable[[Recorded, str], Found | None]]:
    document = _document()
    found: dict[str, Callable[[Recorded, str], Found | None]] = {}
    kinds: dict[str, Callable[..., Found | None]] = {
        "products": _product, "attention": _attention, "rows": _rows
    }  # fmt: skip
    for kind, handler in kinds.items():
        for entry in document[kind]:
            for name in entry["names"]:
                found[_plain(name)] = _with(handler, entry)
    found |= {_plain(name): _map for name in document["maps"]["names"]}
    found |= {_plain(name): _moved for name in document["moved"]["names"]}
    return found


def _with(handler: Callable[..., Found | None], entry: Row) -> Callable[[Recorded, str], Any]:
    return lambda recorded, dtype: handler(recorded, dtype, entry)


def _plain(name: str) -> str:
    """An operator's name without the trailing underscore of in-place operators."""
    return name.rstrip("_")


def _dtype(recorded: Recorded, argument: int, usual: str) -> str:
    types: Mapping[str, str] = _document()["types"]
    said = recorded.types[argument] if argument < len(recorded.types) else ""
    return types.get(said, usual)


def _product(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    """C[m,n] = A[m,k] B[k,n]; leading extents count as rows of A, or as a batch if B has them
    too."""
    left, right = (recorded.dims[entry[side]] for side in ("left", "right"))
    if not left or not right:
        return None
    if entry.get("rows"):
        n, k = (right[0], right[1]) if len(right) > 1 else (1, right[0])
        shared: tuple[int, ...] = ()
    else:
        k, n = (right[-2], right[-1]) if len(right) > 1 else (right[0], 1)
        shared = right[:-2]
    batch = math.prod(shared)
    m = math.prod(left) // (k * batch) if k * batch else 0
    if min(m, n, k, batch) < 1 or m * k * batch != math.prod(left):
        return None
    sizes = {"m": m, "n": n, "k": k, "batch": batch}
    return Found({"op": "gemm", "dtype": _dtype(recorded, entry["left"], dtype), **sizes})


def _attention(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    queries, keys, values = recorded.dims[:3]
    if min(len(queries), len(keys), len(values)) < 3:
        return None
    if entry["layout"] == "bhsd":
        (heads_q, seq_q), (heads_kv, seq_kv) = queries[-3:-1], keys[-3:-1]
    else:
        (seq_q, heads_q), (seq_kv, heads_kv) = queries[-3:-1], keys[-3:-1]
    place = entry.get("causal")
    causal = place is not None and place < len(recorded.given) and recorded.given[place] == "True"
    row = {
        "op": "attention", "dtype": _dtype(recorded, 0, dtype), "batch": math.prod(queries[:-3]),
        "heads_q": heads_q, "heads_kv": heads_kv, "seq_q": seq_q, "seq_kv": seq_kv,
        "head_dim": queries[-1], "causal": causal, "direction": "fwd",
        "phase": "decode" if seq_q == 1 else "prefill",
    }  # fmt: skip
    return Found(row | ({"head_dim_v": values[-1]} if values[-1] != queries[-1] else {}))


def _rows(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    shape = recorded.dims[0]
    if not shape or not math.prod(shape):
        return None
    place = entry.get("along")
    said = recorded.given[place] if place is not None and place < len(recorded.given) else ""
    cols = shape[int(said)] if re.fullmatch(r"-?\d{1,2}", said) else shape[-1]
    row = {"op": entry["is"], "rows": math.prod(shape) // cols, "cols": cols, "direction": "fwd"}
    return Found({**row, "dtype": _dtype(recorded, 0, dtype)})


def _map(recorded: Recorded, dtype: str) -> Found | None:
    found = _largest(recorded, dtype)
    if found is None:
        return None
    shape, inputs, kind = found
    variant = _plain(recorded.name).rpartition("::")[2].removeprefix("_")
    return Found(_pointwise(shape, inputs, kind) | {"variant": variant})


def _moved(recorded: Recorded, dtype: str) -> Found | None:
    found = _largest(recorded, dtype)
    if found is None:
        return None
    shape, _, kind = found
    return Found(_pointwise(shape, 1, kind) | {"variant": "copy"}, estimated=True)


def _largest(recorded: Recorded, dtype: str) -> tuple[Sequence[int], int, str] | None:
    """The largest argument's extents, how many have its size, and its type."""
    sizes = [math.prod(shape) if shape else 0 for shape in recorded.dims]
    most = max(sizes, default=0)
    if most < 1:
        return None
    first = sizes.index(most)
    return recorded.dims[first], sizes.count(most), _dtype(recorded, first, dtype)


def _pointwise(shape: Sequence[int], inputs: int, dtype: str) -> dict[str, Any]:
    cols = shape[-1]
    return {
        "op": "pointwise", "dtype": dtype, "rows": math.prod(shape) // cols, "cols": cols,
        "inputs": inputs, "outputs": 1, "direction": "fwd",
    }  # fmt: skip
