"""Loops that Python is too slow for, in C: dependent loads, streams, multiply-adds, the clock.

Compiled once a session with the system's compiler (`CC`, cc, gcc or clang) and run on every core at
once, from threads that have let go of the interpreter. Without a compiler `load` says so with None,
and numpy's own loops stand in where they can.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

SOURCE = r"""
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LANES 16
typedef float wide __attribute__((vector_size(4 * LANES), aligned(4)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Seconds per dependent load: next[i] holds the byte offset of the cell after cell i. */
double chase(const char *cells, long steps, long *last) {
    uint64_t at = 0;
    double start = now();
    for (long i = 0; i < steps; i++) at = *(const uint64_t *)(cells + at);
    double spent = now() - start;
    *last = (long)at;
    return spent / steps;
}

double stream_read(const float *a, long n, long reps, float *out) {
    wide sums[8] = {{0}};
    double start = now();
    for (long r = 0; r < reps; r++) {
        for (long i = 0; i + 8 * LANES <= n; i += 8 * LANES)
            for (int j = 0; j < 8; j++) sums[j] += *(const wide *)(a + i + j * LANES);
        __asm__ volatile("" ::: "memory");
    }
    double spent = now() - start;
    wide sum = sums[0];
    for (int j = 1; j < 8; j++) sum += sums[j];
    for (int j = 0; j < LANES; j++) *out += sum[j];
    return spent / reps;
}

double stream_copy(float *b, const float *a, long n, long reps) {
    double start = now();
    for (long r = 0; r < reps; r++) {
        for (long i = 0; i + LANES <= n; i += LANES) *(wide *)(b + i) = *(const wide *)(a + i);
        __asm__ volatile("" ::: "memory");
    }
    return (now() - start) / reps;
}

double stream_triad(float *c, const float *a, const float *b, long n, long reps) {
    wide factor;
    for (int j = 0; j < LANES; j++) factor[j] = 0.75f;
    double start = now();
    for (long r = 0; r < reps; r++) {
        for (long i = 0; i + LANES <= n; i += LANES)
            *(wide *)(c + i) = *(const wide *)(a + i) + factor * *(const wide *)(b + i);
        __asm__ volatile("" ::: "memory");
    }
    return (now() - start) / reps;
}

/* FLOP per second of independent multiply-adds that stay in registers. */
double multiply_add(long reps, float *out) {
    wide sums[12], x, y;
    for (int j = 0; j < LANES; j++) { x[j] = 0.999f; y[j] = 1e-3f; }
    for (int k = 0; k < 12; k++) sums[k] = x + (float)k;
    double start = now();
    for (long r = 0; r < reps; r++)
        for (int k = 0; k < 12; k++) sums[k] = sums[k] * x + y;
    double spent = now() - start;
    for (int k = 0; k < 12; k++) for (int j = 0; j < LANES; j++) *out += sums[k][j];
    return 2.0 * 12 * LANES * reps / spent;
}

/* Clock in Hz: a chain of additions of two registers takes one cycle each. */
double cycle_rate(long reps, long *out) {
    uint64_t x = 1, y = (uint64_t)(uintptr_t)out | 1;
    double start = now();
    for (long r = 0; r < reps; r++)
        for (int k = 0; k < 64; k++) { x += y; __asm__ volatile("" : "+r"(x)); }
    double spent = now() - start;
    *out = (long)x;
    return 64.0 * reps / spent;
}
"""
_COMMON = ("-O3", "-funroll-loops", "-ffp-contract=fast", "-shared", "-fPIC")
_LINE = 64


class CProbes:
    """The compiled loops; arrays are float32 and contiguous."""

    method = "C loop"

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name in (
            "chase", "stream_read", "stream_copy", "stream_triad", "multiply_add", "cycle_rate",
        ):  # fmt: skip
            getattr(library, name).restype = ctypes.c_double

    def chase(self, cells: np.ndarray, steps: int) -> float:
        """Seconds per dependent load through `cells` (see `ring`)."""
        last = ctypes.c_long(0)
        start = cells.ctypes.data_as(ctypes.c_void_p)
        return float(self._library.chase(start, ctypes.c_long(steps), ctypes.byref(last)))

    def read(self, arrays: list[np.ndarray], reps: int) -> float:
        """Seconds to read one array once."""
        out = ctypes.c_float(0)
        return float(
            self._library.stream_read(
                _pointer(arrays[0]), _count(arrays[0]), ctypes.c_long(reps), ctypes.byref(out)
            )
        )

    def copy(self, arrays: list[np.ndarray], reps: int) -> float:
        """Seconds to copy one array into another."""
        a, b = arrays
        return float(
            self._library.stream_copy(_pointer(b), _pointer(a), _count(a), ctypes.c_long(reps))
        )

    def triad(self, arrays: list[np.ndarray], reps: int) -> float:
        """Seconds for c = a + 0.75 b."""
        a, b, c = arrays
        pointers = (_pointer(c), _pointer(a), _pointer(b))
        return float(self._library.stream_triad(*pointers, _count(a), ctypes.c_long(reps)))

    def multiply_add(self, reps: int) -> float:
        """FLOP/s of one core."""
        out = ctypes.c_float(0)
        return float(self._library.multiply_add(ctypes.c_long(reps), ctypes.byref(out)))

    def clock(self, reps: int) -> float:
        """Cycles per second of one core."""
        out = ctypes.c_long(0)
        return float(self._library.cycle_rate(ctypes.c_long(reps), ctypes.byref(out)))


def load() -> CProbes | None:
    """Compile and load; None where there is no compiler that can."""
    compiler = os.environ.get("CC") or next(
        filter(None, (shutil.which(name) for name in ("cc", "gcc", "clang"))), None
    )
    if compiler is None:
        return None
    with TemporaryDirectory(prefix="perfmodel-") as folder:
        source, library = Path(folder) / "probes.c", Path(folder) / "probes.so"
        source.write_text(SOURCE, encoding="utf-8")
        for tuned in (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ()):
            command = (*compiler.split(), *_COMMON, *tuned, "-o", str(library), str(source))
            try:
                done = subprocess.run(command, capture_output=True, timeout=60, check=False)
                if done.returncode == 0:
                    return CProbes(ctypes.CDLL(str(library)))
            except (OSError, subprocess.SubprocessError):
                return None
    return None


def ring(size_bytes: int, seed: int = 0) -> np.ndarray:
    """Cells, one a cache line, whose offsets form one random cycle through all of them."""
    count = max(size_bytes // _LINE, 2)
    order = np.random.default_rng(seed).permutation(count)
    cells = np.zeros((count, _LINE // 8), dtype=np.uint64)
    cells[order, 0] = np.roll(order, -1).astype(np.uint64) * _LINE
    start = int(np.flatnonzero(order == 0)[0])
    assert cells[0, 0] == order[(start + 1) % count] * _LINE
    return cells


def together(work: Callable[[int], float], threads: int) -> list[float]:
    """`work(i)` on all threads at once, after all are ready; what each returned."""
    found = [0.0] * threads
    ready = threading.Barrier(threads)

    def run(i: int) -> None:
        ready.wait()
        found[i] = work(i)

    others = [threading.Thread(target=run, args=(i,)) for i in range(1, threads)]
    for other in others:
        other.start()
    run(0)
    for other in others:
        other.join()
    return found


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _count(array: np.ndarray) -> ctypes.c_long:
    return ctypes.c_long(array.size)
