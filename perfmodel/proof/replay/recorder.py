"""Records every load, store and atomic of a kernel in Triton's interpreter.

The interpreter makes one call with arrays of pointers and masks for each memory operation. One call
is thus one tile, and recording takes a few array operations a tile. Bytes are summed by tensor and
direction. A consumer can process the addresses as they come, block by block in launch order, so
that memory does not grow with the run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from perfmodel.proof.kernel import KernelError

Way = Literal["read", "write", "atomic"]


def require_interpreter() -> None:
    """Make sure that kernels loaded from now on are interpreted.

    Triton decides this when it is imported. Raises `KernelError` if it was imported for compiling.
    """
    if "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        from triton.language import standard
        from triton.runtime.interpreter import InterpretedFunction
    except ImportError:
        raise KernelError("replay needs triton: pip install 'perfmodel[gpu]'") from None
    if not isinstance(standard.sum, InterpretedFunction):
        raise KernelError(
            "Triton was loaded to compile, so nothing can be replayed in this process; "
            "set TRITON_INTERPRET=1 before it starts"
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """One memory operation of one block."""

    block: int
    """The block."""
    tensor: str
    """Name of the array."""
    offsets: np.ndarray
    """Bytes from its first element, of each active lane."""
    width: int
    """Bytes of each access."""
    way: Way
    """Load, store or atomic addition."""


Consumer = Callable[[Chunk], None]


@dataclass
class Tally:
    """Memory accesses of one launch."""

    bytes: dict[tuple[str, Way], int] = field(default_factory=dict)
    """Bytes by array and way (load, store or atomic)."""
    accesses: int = 0
    """Elements accessed."""
    operations: int = 0
    """Memory operations."""
    read: dict[str, np.ndarray] = field(default_factory=dict)
    """Each byte of each array that was loaded from: not 0 where it was read."""


@dataclass
class Recorder:
    """Counts the memory accesses of a launch and passes them to a consumer."""

    arrays: Mapping[str, tuple[int, int]]
    """First byte of each array, and the byte past its end."""
    consumer: Consumer | None = None
    """Called with each operation."""
    on_block: Callable[[int, int], None] | None = None
    """Called at the start of each block with (block, blocks in all)."""
    tally: Tally = field(default_factory=Tally)
    """The counts."""

    def __post_init__(self) -> None:
        spans = sorted((span, name) for name, span in self.arrays.items())
        self._names = [name for _, name in spans]
        self._starts = np.array([span[0] for span, _ in spans], dtype=np.uint64)
        self._ends = np.array([span[1] for span, _ in spans], dtype=np.uint64)
        self._block = 0

    def record(self, pointers: np.ndarray, mask: np.ndarray | None, width: int, way: Way) -> None:
        """Count one memory operation; raises `KernelError` if it is outside all arrays."""
        active = pointers.reshape(-1) if mask is None else _active_pointers(pointers, mask)
        self.tally.operations += 1
        if not active.size:
            return
        low, high = active.min(), active.max()
        place = int(np.searchsorted(self._starts, low, side="right")) - 1
        if place < 0 or int(high) + width > int(self._ends[place]):
            raise KernelError(f"a {way} leaves the arrays of the launch (block {self._block})")
        name = self._names[place]
        key = (name, way)
        self.tally.bytes[key] = self.tally.bytes.get(key, 0) + active.size * width
        self.tally.accesses += active.size
        offsets = (active - self._starts[place]).astype(np.int64)
        if way == "read":
            self._mark(name, offsets, width)
        if self.consumer is not None:
            self.consumer(Chunk(self._block, name, offsets, width, way))

    def _mark(self, name: str, offsets: np.ndarray, width: int) -> None:
        """Note that these bytes were read; accesses are aligned to their width, at most 8 bytes."""
        if name not in self.tally.read:
            first, end = self.arrays[name]
            self.tally.read[name] = np.zeros(-(-(end - first) // 8) * 8, dtype=np.uint8)
        elements = self.tally.read[name].view(f"u{width}")
        elements[offsets // width] = np.iinfo(elements.dtype).max

    def enter(self, block: int, blocks: int) -> None:
        """Start a new thread block."""
        self._block = block
        if self.on_block is not None:
            self.on_block(block, blocks)


def _active_pointers(pointers: np.ndarray, mask: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(pointers.shape, mask.shape)
    values = pointers if pointers.shape == shape else np.broadcast_to(pointers, shape)
    lanes = mask if mask.shape == shape else np.broadcast_to(mask, shape)
    return values.reshape(-1) if lanes.all() else values[lanes]


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """A context in which the interpreter's memory operations go through `recorder`.

    Blocks run in launch order, first grid dimension fastest; the interpreter's own order differs.
    """
    require_interpreter()
    from triton.runtime import interpreter

    hooks = _hooks(interpreter.InterpreterBuilder, interpreter.InterpretedFunction, recorder)
    originals = {place: getattr(*place) for place in hooks}
    for place, hook in hooks.items():
        setattr(*place, hook)
    try:
        yield recorder
    except interpreter.InterpreterError as error:
        cause = error.__cause__
        while cause is not None and not isinstance(cause, KernelError):
            cause = cause.__cause__
        raise cause or KernelError(f"the interpreter stopped: {error}") from error
    finally:
        for place, original in originals.items():
            setattr(*place, original)


def _hooks(
    builder: Any, function: Any, recorder: Recorder
) -> dict[tuple[Any, str], Callable[..., Any]]:
    """Replacements for the interpreter's methods, by class and name; those for descriptors and
    block pointers call these.

    At every call of a function by a kernel Triton looks through its whole language for what to
    replace on behalf of the function's module. That holds until the launch ends, so here it is
    done once a launch.
    """
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas
    place, extent = builder.set_grid_idx, builder.set_grid_dim
    prepared_call, prepared = function.__call__, set[str]()
    count = 0

    def masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **opts: Any) -> Any:
        recorder.record(ptrs.data, _lanes(mask), _width(ptrs), "read")
        return load(self, ptrs, mask, *rest, **opts)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **opts: Any) -> Any:
        recorder.record(ptrs.data, _lanes(mask), _width(ptrs), "write")
        return store(self, ptrs, value, mask, *rest, **opts)

    def atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        recorder.record(ptr.data, _lanes(mask), _width(ptr), "atomic")
        return rmw(self, op, ptr, val, mask, *rest)

    def atomic_cas(self: Any, ptr: Any, *rest: Any) -> Any:
        recorder.record(ptr.data, None, _width(ptr), "atomic")
        return cas(self, ptr, *rest)

    def set_grid_dim(self: Any, *sizes: int) -> None:
        nonlocal count
        count = 0
        prepared.clear()
        extent(self, *sizes)

    def set_grid_idx(self: Any, *_: int) -> None:
        nonlocal count
        x, y, z = self.grid_dim
        recorder.enter(count, x * y * z)
        place(self, count % x, count // x % y, count // (x * y))
        count += 1

    def call(self: Any, *rest: Any, **opts: Any) -> Any:
        if self.fn.__module__ in prepared:
            return self.rewrite()(*rest, **opts)
        prepared.add(self.fn.__module__)
        return prepared_call(self, *rest, **opts)

    return {
        (builder, "create_masked_load"): masked_load,
        (builder, "create_masked_store"): masked_store,
        (builder, "create_atomic_rmw"): atomic_rmw,
        (builder, "create_atomic_cas"): atomic_cas,
        (builder, "set_grid_dim"): set_grid_dim,
        (builder, "set_grid_idx"): set_grid_idx,
        (function, "__call__"): call,
    }


def _lanes(mask: Any) -> np.ndarray | None:
    return None if mask is None else np.asarray(mask.data, dtype=bool)


def _width(pointer: Any) -> int:
    return max(1, int(pointer.get_element_ty().primitive_bitwidth) // 8)
