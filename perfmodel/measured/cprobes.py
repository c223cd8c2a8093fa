"""Micro-benchmark loops in C: dependent loads, streams, multiply-adds and the clock.

`probes.c` is compiled once a session for this processor with the system's compiler (`CC`, cc, gcc
or clang). It runs in threads that have released the GIL. Without a compiler `load` returns None,
and numpy's loops are used where they can.

`PERFMODEL_CFLAGS` adds compiler flags: with `-mno-avx512f` the probes use narrower vectors.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from perfmodel.measured.bursts import Span

FLAGS_VARIABLE = "PERFMODEL_CFLAGS"
LINE = 64  # bytes: a cache line; arrays are aligned to it
CHUNK = 128  # floats in one step of a stream: eight of the widest vectors
BASE = ("-O3", "-ffp-contract=fast", "-shared", "-fPIC")
# Flags that select this processor; a compiler may know only some of them. The second keeps 64-byte
# vectors where a compiler would prefer two of 32 bytes.
_NATIVE = (
    ("-march=native", "-mprefer-vector-width=512"),
    ("-march=native",),
    ("-mcpu=native",),
    (),
)
_LARGE_PAGE = 2**21  # bytes
_TINY = 1e-30  # a factor so small that it does not change sums


class Gate(ctypes.Structure):
    """A barrier where `wanted` threads wait for each other before their clocks start; used once."""

    _fields_ = (("arrived", ctypes.c_int64), ("wanted", ctypes.c_int64))

    def __init__(self, wanted: int = 1) -> None:
        super().__init__(0, wanted)


class _Span(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in ("start_s", "end_s", "processor_s"))


class CProbes:
    """The compiled loops; arrays are from `aligned`, a multiple of `CHUNK` floats long."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name in ("vector_bytes", "chase", "multiply_add", "cycles"):
            getattr(library, name).restype = ctypes.c_int64
        self.vector_bytes = int(library.vector_bytes())
        self.method = f"C loop, {self.vector_bytes}-byte vectors"

    def chase(self, gate: Gate, cells: np.ndarray, start: int, steps: int) -> tuple[Span, int]:
        """`steps` dependent loads through `cells` (see `ring`) from byte `start`; also where it
        ended.

        Continuing from there visits all cells before any of them a second time.
        """
        return self._run("chase", gate, _pointer(cells), _int64(start), _int64(steps))

    def read(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """One array, `reps` times."""
        (a,) = arrays
        out = ctypes.c_int32(0)
        return self._run(
            "stream_read", gate, _pointer(a), _int64(a.size), _int64(reps), ctypes.byref(out)
        )[0]

    def copy(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """One array into another, `reps` times."""
        a, b = arrays
        return self._run(
            "stream_copy", gate, _pointer(b), _pointer(a), _int64(a.size), _int64(reps)
        )[0]

    def triad(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """c = a + 0.75 b, `reps` times."""
        a, b, c = arrays
        pointers = (_pointer(c), _pointer(a), _pointer(b))
        return self._run("stream_triad", gate, *pointers, _int64(a.size), _int64(reps))[0]

    def multiply_add(self, gate: Gate, reps: int) -> tuple[Span, int]:
        """Independent multiply-adds; also the number of floating-point operations."""
        out = ctypes.c_float(0)
        span, operations = self._run(
            "multiply_add", gate, ctypes.c_float(_TINY), _int64(reps), ctypes.byref(out)
        )
        return span, operations * reps

    def cycles(self, gate: Gate, reps: int) -> tuple[Span, int]:
        """A chain of dependent additions; also the number of clock cycles."""
        return self._run("cycles", gate, _int64(reps), ctypes.byref(ctypes.c_int64(0)))

    def _run(self, name: str, gate: Gate, *arguments: Any) -> tuple[Span, int]:
        """The span of one call, and what the loop returned."""
        span = _Span()
        value = getattr(self._library, name)(ctypes.byref(gate), ctypes.byref(span), *arguments)
        return Span(span.start_s, span.end_s, span.processor_s), int(value)


def load(flags: Sequence[str] | None = None) -> CProbes | None:
    """Compile for this processor and load; None if no compiler can.

    `flags` are added to the compiler's, in place of those of `PERFMODEL_CFLAGS`.
    """
    compiler = shlex.split(os.environ.get("CC", "")) or _compiler()
    extra = shlex.split(os.environ.get(FLAGS_VARIABLE, "")) if flags is None else flags
    with TemporaryDirectory(prefix="perfmodel-") as folder:
        library = Path(folder) / "probes.so"
        for native in _NATIVE if compiler else ():
            command = [*compiler, *BASE, *native, *extra, "-o", str(library), str(source())]
            try:
                process = subprocess.run(command, capture_output=True, timeout=60, check=False)
                if process.returncode == 0:
                    return CProbes(ctypes.CDLL(str(library)))
            except (OSError, subprocess.SubprocessError):
                return None
    return None


def source() -> Path:
    """The path of `probes.c`."""
    return Path(str(resources.files("perfmodel.measured").joinpath("probes.c")))


def _compiler() -> list[str]:
    return [path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))][:1]


def aligned(count: int) -> np.ndarray:
    """`count` uninitialised float32, aligned to a cache line; see `_pages`."""
    return _pages(4 * count).view(np.float32)[:count]


def ring(size_bytes: int, seed: int = 0) -> np.ndarray:
    """Cells, one in each cache line, whose offsets form one random cycle through all of them."""
    count = max(size_bytes // LINE, 2)
    order = np.random.default_rng(seed).permutation(np.arange(count, dtype=np.uint32))
    cells = _pages(count * LINE).reshape(count, LINE // 8)
    cells[order, 0] = np.roll(order, -1).astype(np.uint64) * LINE
    return cells


def _pages(size_bytes: int) -> np.ndarray:
    """An array of 8-byte numbers in large pages, if the system grants them on request.

    In small pages a load from main memory takes up to four times as long, since page-table entries
    come from memory too. Where small and large pages are mixed, even the first-level cache reaches
    only half of its rate.
    """
    count = -(-size_bytes // 8)
    memory = mmap.mmap(-1, 8 * count + _LARGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # an operating system without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    numbers = np.frombuffer(memory, np.uint64)
    first = (-numbers.ctypes.data % _LARGE_PAGE) // 8
    return numbers[first : first + count]


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _int64(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)
