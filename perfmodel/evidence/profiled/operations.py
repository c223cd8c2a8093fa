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
from perfmodel.evidence.profiled import convolutions, traffic
from perfmodel.evidence.profiled.convolutions import Work
from perfmodel.evidence.profiled.streams import of_bytes
from perfmodel.evidence.profiled.timeline import Exchange, Recorded

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
        fused = _INDUCTOR.match(recorded.name)
        if fused is not None:
            return _fused(recorded, dtype or _UNSTATED, fused["ops"])
        handler = _handlers().get(_plain(recorded.name))
        if handler is None or not recorded.dims:
            return None
        return handler(recorded, dtype or _UNSTATED)
    # Not the form of the operator that the table describes.
    except (IndexError, ValueError, TypeError, ZeroDivisionError, ProblemError):
        return None


def is_known(name: str) -> bool:
    """Whether the table has an operator, as a problem or as one that computes nothing."""
    return _plain(name) in _handlers() or _plain(name) in _free()


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
        "products": _product, "attention": _attention, "rows": _rows,
        "convolutions": _convolution, "convolution_gradients": _convolution_gradients,
        "gathers": _gather,
        **{kind: _streamed(way, kind == "moved") for kind, way in traffic.WAYS.items()},
    }  # fmt: skip
    for kind, handler in kinds.items():
        for entry in document[kind]:
            for name in entry["names"]:
                found[_plain(name)] = _with(handler, entry)
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
    least = 3 if entry["layout"] == "bhsd" else 4
    if min(len(queries), len(keys), len(values)) < least:
        return None
    if entry["layout"] == "bhsd":
        (heads_q, seq_q), (heads_kv, seq_kv) = queries[-3:-1], keys[-3:-1]
    else:
        (seq_q, heads_q), (seq_kv, heads_kv) = queries[-3:-1], keys[-3:-1]
    place, direction = entry.get("causal"), entry.get("direction", "fwd")
    said = recorded.given[place] if place is not None and place < len(recorded.given) else ""
    row = {
        "op": "attention", "dtype": _dtype(recorded, first, dtype),
        "batch": math.prod(queries[:-3]), "heads_q": heads_q, "heads_kv": heads_kv, "seq_q": seq_q,
        "seq_kv": seq_kv, "head_dim": queries[-1], "causal": said in _CAUSAL,
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
    said = recorded.given[place] if place is not None and place < len(recorded.given) else ""
    cols = shape[int(said)] if re.fullmatch(r"-?\d{1,2}", said) else shape[-1]
    row = {
        "op": entry["is"], "rows": math.prod(shape) // cols, "cols": cols,
        "direction": entry.get("direction", "fwd"), "dtype": _dtype(recorded, first, dtype),
    }  # fmt: skip
    widened = entry.get("widened")
    if widened is None or widened >= len(recorded.given) or recorded.given[widened] != "True":
        return Found(row)
    return _stated(Rowwise(**row, output_dtype="fp32"))


def _convolution(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    return _joined(convolutions.forward(recorded, _dtype(recorded, 0, dtype), entry))


def _convolution_gradients(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    return _joined(convolutions.backward(recorded, _dtype(recorded, 1, dtype), entry))


def _joined(works: Sequence[Work]) -> Found | None:
    """The first of several products, said to be several."""
    if not works:
        return None
    (first, _), *others = works
    also = {"products": len(works)} if others else {}
    return Found({"op": first.operator, **describe(first), **also}, works=tuple(works))


def _gather(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
    """Whole rows by number are an embedding's gather; other elements a stream."""
    rows = traffic.rows(recorded, entry)
    if rows is not None:
        tokens, hidden = rows
        sizes = {"tokens": tokens, "hidden": hidden}
        return Found({"op": "embedding", "dtype": _dtype(recorded, 0, dtype), **sizes})
    return _stated(traffic.gather(recorded, _types(recorded, dtype), entry), estimated=True)


def _streamed(way: traffic.Way, estimated: bool) -> Callable[..., Found | None]:
    def handler(recorded: Recorded, dtype: str, entry: Row) -> Found | None:
        variant = entry.get("variant") or _plain(recorded.name).rpartition("::")[2].lstrip("_")
        found = way(recorded, _types(recorded, dtype), entry, variant)
        return _stated(found, estimated=estimated)

    return handler


def _fused(recorded: Recorded, dtype: str, ops: str) -> Found | None:
    """A kernel that Inductor wrote: the bytes that it counted, or else those of its pointers."""
    if recorded.moved_bytes:
        half = round(recorded.moved_bytes / 2)
        return _stated(of_bytes(ops, half, half), estimated=True)
    found = traffic.pointers(recorded, _types(recorded, dtype), ops)
    return _stated(found, estimated=True)


def _stated(found: Rowwise | None, *, estimated: bool = False) -> Found | None:
    """A row-wise problem; the columns state one that reads and writes tensors of one type."""
    if found is None:
        return None
    row = {"op": found.operator, **describe(found)}
    alone = not found.also_dtype and found.output_dtype is None and found.inputs and found.outputs
    return Found(row, estimated, () if alone else ((found, None),))


def _exchange(exchange: Exchange) -> Found | None:
    """A collective by its size; without its ranks it is not predicted."""
    entry = next(
        (each for each in _document()["collectives"] if exchange.op in each["names"]), None
    )
    if entry is None:
        return None
    sides = exchange.sent_elements, exchange.received_elements
    elements = sides[entry["whole"] == "received"] or max(sides)
    dtype = _document()["types"].get(exchange.dtype, "fp32")
    size = math.ceil(elements * element(dtype).bytes)
    ranks = 2 if entry["is"] == "send-receive" else exchange.ranks
    row = {"op": entry["is"], "bytes": size, "ranks": ranks or "?", "dtype": dtype}
    known = Collective(entry["is"], size, ranks, None, dtype) if ranks else None
    return Found(row, collective=known)


def _types(recorded: Recorded, usual: str) -> traffic.Types:
    return traffic.Types(recorded.types, _document()["types"], _document()["numbers"], usual)
