"""Recorded operators and their shapes as problems."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.algorithms import Rowwise
from perfmodel.algorithms.problem import describe
from perfmodel.collectives import Collective
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.profile import convolutions, traffic
from perfmodel.profile.convolutions import Work
from perfmodel.profile.streams import of_bytes
from perfmodel.profile.timeline import Exchange, Recorded

Row = Mapping[str, Any]
"""Columns of the measured-run table."""
_UNSTATED = "bf16"
_INDUCTOR = re.compile(r"triton_(?:poi|red|per|for)_fused_(?P<ops>\w+?)(?:_\d+)?$")


@dataclass(frozen=True)
class Found:
    """The problem of a recorded operator."""

    row: Row
    """The columns that state its problem: op, dtype, sizes."""
    estimated: bool = False
    """Whether only its bytes are known, not its operations."""
    works: tuple[Work, ...] = ()
    """The problems that it runs one after another, where the columns alone do not state them."""
    collective: Collective | None = None
    """The exchange between devices that it is."""


@lru_cache(maxsize=65536)
def problem(recorded: Recorded, dtype: str = "") -> Found | None:
    """The problem of an operator with shapes; None if it is unknown or computes nothing.

    `dtype` is used where the profile records no type; if it is empty too, bf16 is.
    """
    try:
        if recorded.exchange is not None:
            return _exchange(recorded.exchange)
        match = _INDUCTOR.match(recorded.name)
        if match is not None:
            return _inductor(recorded, dtype or _UNSTATED, match["ops"])
        handler = _handlers().get(_base_name(recorded.name))
        if handler is None or not recorded.dims:
            return None
        return handler(recorded, dtype or _UNSTATED)
    # Not the form of the operator that the table describes.
    except (IndexError, ValueError, TypeError, ZeroDivisionError, ProblemError):
        return None


def is_known(name: str) -> bool:
    """Whether the table has an operator, as a problem or as one that computes nothing."""
    return _base_name(name) in _handlers() or _base_name(name) in _free_names()


def from_text(text: str) -> Recorded | None:
    """The operator named by a range of `torch.autograd.profiler.emit_nvtx`.

    "aten::mm, seq = 1, op_id = 5, sizes = [[1024, 256], [256, 256]]" (its record_shapes=True).
    """
    match = _RANGE.match(text)
    if match is None:
        return None
    sizes = _sizes(match["sizes"] or "")
    return Recorded(match["name"], sizes)


_RANGE = re.compile(
    r"(?P<name>[\w:.]{1,120})(?:, seq = \d+)?(?:, op_id = \d+)?"
    r"(?:, sizes = (?P<sizes>\[.{0,4000}?\]))?(?:, input_op_ids.*)?$",
    re.DOTALL,
)
_LIST = re.compile(r"\[([\d, ]*)\]")


def _sizes(text: str) -> tuple[tuple[int, ...], ...]:
    inner = text.strip()[1:-1]
    return tuple(
        tuple(int(size) for size in part.split(",") if size.strip())
        for part in _LIST.findall(inner)
    )


@lru_cache(maxsize=1)
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("operations.yaml"))
    return document


@lru_cache(maxsize=1)
def _free_names() -> frozenset[str]:
    return frozenset(map(_base_name, _document()["free"]["names"]))


@lru_cache(maxsize=1)
def _handlers() -> Mapping[str, Callable[[Recorded, str], Found | None]]:
    document = _document()
    handlers: dict[str, Callable[[Recorded, str], Found | None]] = {}
    kinds: dict[str, Callable[..., Found | None]] = {
        "products": _product, "attention": _attention, "rows": _rows,
        "convolutions": _convolution, "convolution_gradients": _convolution_gradients,
        "gathers": _gather,
        **{kind: _stream_handler(way, kind == "moved") for kind, way in traffic.WAYS.items()},
    }  # fmt: skip
    for kind, handler in kinds.items():
        for entry in document[kind]:
            for name in entry["names"]:
                handlers[_base_name(name)] = _bind(handler, entry)
    return handlers


def _bind(handler: Callable[..., Found | None], entry: Row) -> Callable[[Recorded, str], Any]:
    return lambda recorded, dtype: handler(recorded, dtype, entry)


def _base_name(name: str) -> str:
    """An operator's name without the trailing underscore of in-place operators."""
    return name.rstrip("_")


def _dtype(recorded: Recorded, argument: int, default: str) -> str:
    types: Mapping[str, str] = _document()["types"]
    name = recorded.types[argument] if argument < len(recorded.types) else ""
    return types.get(name, default)


def _product(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    """C[m,n] = A[m,k] B[k,n]; leading extents count as rows of A, or as a batch if B has them
    too."""
    left, right = (recorded.extents(entry[side]) for side in ("left", "right"))
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
    first = entry.get("first", 0)
    queries, keys, values = (recorded.extents(first + i) for i in range(3))
    # Sequences of different lengths that lie one after another have no axis of their own.
    rank = 3 if entry["layout"] == "bhsd" else 4
    if min(len(queries), len(keys), len(values)) < rank:
        return None
    if entry["layout"] == "bhsd":
        (heads_q, seq_q), (heads_kv, seq_kv) = queries[-3:-1], keys[-3:-1]
    else:
        (seq_q, heads_q), (seq_kv, heads_kv) = queries[-3:-1], keys[-3:-1]
    place, direction = entry.get("causal"), entry.get("direction", "fwd")
    cell = recorded.given[place] if place is not None and place < len(recorded.given) else ""
    row = {
        "op": "attention", "dtype": _dtype(recorded, first, dtype),
        "batch": math.prod(queries[:-3]), "heads_q": heads_q, "heads_kv": heads_kv, "seq_q": seq_q,
        "seq_kv": seq_kv, "head_dim": queries[-1], "causal": cell in _CAUSAL,
        "direction": direction, "phase": "decode" if seq_q == 1 else "prefill",
    }  # fmt: skip
    return Found(row | ({"head_dim_v": values[-1]} if values[-1] != queries[-1] else {}))


_CAUSAL = ("True", "1", "2")
"""The flag, or CustomMaskType's numbers of a causal mask (sdp_utils_cpp.h)."""


def _rows(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    first = entry.get("first", 0)
    shape = recorded.extents(first)
    if not shape or not math.prod(shape):
        return None
    place = entry.get("along")
    cell = recorded.given[place] if place is not None and place < len(recorded.given) else ""
    cols = shape[int(cell)] if re.fullmatch(r"-?\d{1,2}", cell) else shape[-1]
    row = {
        "op": entry["is"], "rows": math.prod(shape) // cols, "cols": cols,
        "direction": entry.get("direction", "fwd"), "dtype": _dtype(recorded, first, dtype),
    }  # fmt: skip
    index = entry.get("widened")
    if index is None or index >= len(recorded.given) or recorded.given[index] != "True":
        return Found(row)
    return _row_problem(Rowwise(**row, output_dtype="fp32"))


def _convolution(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    return _first_of(convolutions.forward(recorded, _dtype(recorded, 0, dtype), entry))


def _convolution_gradients(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    return _first_of(convolutions.backward(recorded, _dtype(recorded, 1, dtype), entry))


def _first_of(works: Sequence[Work]) -> Found | None:
    """The first of several products, said to be several."""
    if not works:
        return None
    (first, _), *rest = works
    extra = {"products": len(works)} if rest else {}
    return Found({"op": first.operator, **describe(first), **extra}, works=tuple(works))


def _gather(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    """Whole rows by number are an embedding's gather; other elements a stream."""
    rows = traffic.rows(recorded, entry)
    if rows is not None:
        tokens, hidden = rows
        sizes = {"tokens": tokens, "hidden": hidden}
        return Found({"op": "embedding", "dtype": _dtype(recorded, 0, dtype), **sizes})
    return _row_problem(traffic.gather(recorded, _types(recorded, dtype), entry), estimated=True)


def _stream_handler(way: traffic.Way, estimated: bool) -> Callable[..., Found | None]:
    def handler(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
        variant = entry.get("variant") or _base_name(recorded.name).rpartition("::")[2].lstrip("_")
        problem = way(recorded, _types(recorded, dtype), entry, variant)
        return _row_problem(problem, estimated=estimated)

    return handler


def _inductor(recorded: Recorded, dtype: str, ops: str) -> Found | None:
    """A kernel that Inductor wrote: the bytes that it counted, or else those of its pointers."""
    if recorded.moved_bytes:
        half = round(recorded.moved_bytes / 2)
        return _row_problem(of_bytes(ops, half, half), estimated=True)
    problem = traffic.pointers(recorded, _types(recorded, dtype), ops)
    return _row_problem(problem, estimated=True)


def _row_problem(op: Rowwise | None, *, estimated: bool = False) -> Found | None:
    """A row-wise problem; the columns state one that reads and writes tensors of one type."""
    if op is None:
        return None
    row = {"op": op.operator, **describe(op)}
    is_plain = not op.also_dtype and op.output_dtype is None and op.inputs and op.outputs
    return Found(row, estimated, () if is_plain else ((op, None),))


def _exchange(exchange: Exchange) -> Found | None:
    """A collective by its size; without its ranks it is not predicted."""
    entry = next((e for e in _document()["collectives"] if exchange.op in e["names"]), None)
    if entry is None:
        return None
    sides = exchange.sent_elements, exchange.received_elements
    elements = sides[entry["whole"] == "received"] or max(sides)
    dtype = _document()["types"].get(exchange.dtype, "fp32")
    size = math.ceil(elements * element(dtype).bytes)
    ranks = 2 if entry["is"] == "send-receive" else exchange.ranks
    row = {"op": entry["is"], "bytes": size, "ranks": ranks or "?", "dtype": dtype}
    collective = Collective(entry["is"], size, ranks, None, dtype) if ranks else None
    return Found(row, collective=collective)


def _types(recorded: Recorded, default: str) -> traffic.Types:
    return traffic.Types(recorded.types, _document()["types"], _document()["numbers"], default)
