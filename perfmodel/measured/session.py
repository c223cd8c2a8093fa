"""A measuring session on this machine: its stopwatches, its contenders, its launch floor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from perfmodel.cases import Case
from perfmodel.errors import UnknownName
from perfmodel.measured.environment import Environment, environment, needs_torch
from perfmodel.measured.journal import Announce, Journal, unannounced
from perfmodel.measured.measure import Bench, no_cells
from perfmodel.measured.rivals import Contender, rivals
from perfmodel.measured.timer import (
    Call,
    DeviceEvents,
    GraphReplay,
    Policy,
    Samples,
    Stopwatch,
    WallClock,
    collect,
)

if TYPE_CHECKING:
    from perfmodel.measured.contenders import Launcher, Menu
    from perfmodel.measured.tuning import Tuner

L2 = Literal["cold", "warm"]
QUICK = Policy(samples=30, warmup_s=0.05, limit_s=0.25)
DAY = Policy(samples=30, warmup_s=0.05, limit_s=0.3)  # a thousand cases in a quarter of an hour
FULL = Policy(samples=100, warmup_s=0.2, limit_s=1.5)
TUNING = Policy(samples=5, least_samples=3, warmup_s=0.02, limit_s=0.1)
_FLUSHED = 4  # times the last cache: bytes written to flush it on a CPU
_TIMERS = {"cpu": ("wall",), "cuda": ("graph", "events")}


def default_device() -> str:
    """`cuda` where torch sees a CUDA or ROCm device, else `cpu`."""
    return "cuda" if needs_torch().cuda.is_available() else "cpu"


def bench(
    device: str,
    policy: Policy,
    *,
    l2: L2 | None = None,
    timer: str | None = None,
    announce: Announce = unannounced,
    beside: Callable[[Case, str, str], Mapping[str, str]] | None = None,
) -> Bench:
    """The settings for `device`: cold caches and graph replay on a GPU, warm and wall clock on a
    CPU.

    `announce` is told of each case before it runs, and `beside` gives further cells of a row.
    Raises `UnknownName` for a timer that the device does not have.
    """
    env = environment(device)
    if env.kind == "cpu":
        keep_freed_memory()
    timers = _TIMERS[env.kind]
    if timer is not None and timer not in timers:
        raise UnknownName(f"timer on {env.kind}", timer, timers)
    cold = (l2 or ("cold" if env.kind == "cuda" else "warm")) == "cold"
    names = timers[timers.index(timer) :] if timer else timers
    watches = {name: _stopwatch(name, env, cold) for name in names}
    first = next(iter(watches.values()))
    return Bench(
        env,
        policy,
        watches,
        cold,
        rotates=names[0] == "graph",
        floor_s=_floor(env, first),
        settle=_settle(env),
        watched=env.kind != "cpu",
        beside=beside or no_cells,
        announce=announce,
    )


def contenders(
    where: Environment,
    *,
    tuner: Tuner | None = None,
    menu: Menu | None = None,
) -> tuple[list[Contender], tuple[str, ...]]:
    """The contenders on a device, and a line for each kernel that could not be loaded.

    Triton kernels run on GPUs only; `tuner` and `menu` are those of `KernelContender`.
    """
    entries: list[Contender] = list(rivals(where.kind))
    if where.kind == "cpu":
        return entries, ()
    from perfmodel.measured.contenders import contenders as registered

    kernels, notes = registered(launcher(where), tuner, menu)
    return [*kernels, *entries], notes


def launcher(where: Environment) -> Launcher:
    """Device, compile target and compute units for launching Triton kernels."""
    from perfmodel.measured.contenders import Launcher
    from perfmodel.proof.compiled.targets import nearest

    return Launcher("cuda", nearest(where.target), where.units)


def tuner(bench: Bench, journal: Journal | None = None) -> Tuner:
    """A tuner that times configs as `bench` times cases, with fewer samples."""
    from perfmodel.measured.tuning import Tuner

    def time(calls: Sequence[Call]) -> Samples:
        *rest, last = bench.stopwatches.values()
        for stopwatch in rest:
            with suppress(RuntimeError):  # a graph that cannot be captured
                return collect(calls, stopwatch(), TUNING)
        return collect(calls, last(), TUNING)

    return Tuner(
        time, bench.environment.device, journal, bench.announce, bench.settle, bench.beside
    )


def keep_freed_memory() -> bool:
    """Let the C library reuse freed memory, as the allocator of a GPU does; False if it cannot.

    Otherwise every large result is mapped anew, and page faults dominate the time.
    """
    trim_threshold, most_mapped = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of glibc's malloc.h
    try:
        library = ctypes.CDLL(None)
        return bool(library.mallopt(most_mapped, 0) and library.mallopt(trim_threshold, 2**31 - 1))
    except (OSError, AttributeError, TypeError):
        return False


def _stopwatch(name: str, env: Environment, cold: bool) -> Callable[[], Stopwatch]:
    if name == "graph":
        return GraphReplay
    flush = _flusher(env) if cold else None
    if name == "events":
        return partial(DeviceEvents, flush)
    return partial(WallClock, flush=flush)


def _flusher(env: Environment) -> Call:
    """A call that writes more bytes than the caches hold, which flushes them."""
    torch = needs_torch()
    size = int(max(_FLUSHED * env.cache_bytes, 2**26))
    buffer = torch.empty(size, dtype=torch.int8, device=env.kind)
    return partial(buffer.fill_, 1)


def _floor(env: Environment, stopwatch: Callable[[], Stopwatch]) -> float:
    """Seconds of the smallest operation; times below a few of these are not resolved."""
    torch = needs_torch()
    scalar = torch.zeros(1, device=env.kind)
    policy = Policy(samples=20, warmup_s=0.02, limit_s=0.1)
    return collect((partial(scalar.add_, 1),), stopwatch(), policy).median


def _settle(env: Environment) -> Callable[[], None]:
    """A function that frees a case's memory and raises if the device no longer answers."""
    if env.kind == "cpu":
        return lambda: None
    torch = needs_torch()

    def settle() -> Any:
        import gc

        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    return settle
