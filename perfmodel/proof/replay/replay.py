"""Replay: runs a kernel in Triton's interpreter and compares every byte with the counting rule.

The rule predicts each tensor's bytes between the thread blocks and the L2; the interpreter records
the bytes that the kernel requested. The two must be equal to the byte for reads, writes and
atomics. With a device, the same addresses also run through a simulation of its L2, block by block
in launch order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.count import Cost, Traffic, count
from perfmodel.hardware.device import Device
from perfmodel.proof import registry
from perfmodel.proof.kernel import Launch, Tensors
from perfmodel.proof.replay import cachesim, tilestream
from perfmodel.proof.replay.recorder import Recorder, Tally, recording, require_interpreter
from perfmodel.timing.machine import machine

Progress = Callable[[int, int], None]

TOLERANCES: Mapping[str, float] = {
    "fp32": 1e-5,
    "fp16": 3e-3,
    "bf16": 2e-2,
    "fp8": 2e-2,
    "int8": 3e-3,
    "w8a8_int8": 3e-3,
}
"""The largest ‖out − ref‖ / ‖ref‖ of a right result in the interpreter, by the problem's type."""


@dataclass(frozen=True, slots=True)
class TensorBytes:
    """Bytes of one tensor in one launch. Atomic bytes count the payload once, though it crosses the
    boundary both ways."""

    kernel: str
    """The kernel."""
    tensor: str
    """The tensor."""
    asked: Traffic
    """Bytes that the launch requested."""
    counted: Traffic
    """Bytes by the counting rule."""
    distinct_read_bytes: int = 0
    """Bytes that the launch read at least once."""
    least_read_bytes: float | None = None
    """Bytes that it has to read at least once, by the counting rule: all but those that a mask
    hides. None for a tensor that it also writes."""

    @property
    def equal(self) -> bool:
        """Whether reads, writes and atomics all agree to the byte."""
        return self.asked == self.counted

    @property
    def misread(self) -> bool:
        """Whether it read other elements than it has to, so some of them never or hidden ones."""
        return self.least_read_bytes not in (None, self.distinct_read_bytes)


@dataclass(frozen=True, slots=True)
class CacheBytes:
    """One launch at the memory boundary."""

    kernel: str
    """The kernel."""
    simulated_read_bytes: float
    """Bytes from memory in the simulated cache."""
    simulated_write_bytes: float
    """Bytes to memory in the simulated cache."""
    model_bytes: float
    """Bytes by the model's closed form."""
    hit_rate: float
    """Share of requested bytes that hit the simulated cache."""

    @property
    def simulated_bytes(self) -> float:
        """All bytes that the simulated cache moved to and from memory."""
        return self.simulated_read_bytes + self.simulated_write_bytes

    @property
    def error(self) -> float:
        """model / simulated − 1."""
        return self.model_bytes / self.simulated_bytes - 1 if self.simulated_bytes else 0.0


@dataclass(frozen=True)
class Replay:
    """One replayed problem.

    `largest_error` is the worst ‖out − ref‖ / ‖ref‖ of its outputs, None where it was not checked.
    `accesses` counts elements loaded, stored or added; `seconds` is the time of the replay itself.
    """

    kernel: str
    """The bundled kernel."""
    problem: Any
    """The problem."""
    config: Any
    """The config."""
    tensors: tuple[TensorBytes, ...]
    """Bytes of each tensor of each launch."""
    cache: tuple[CacheBytes, ...]
    """Memory traffic of each launch; empty without a device."""
    accesses: int
    """Elements loaded, stored or added."""
    blocks: int
    """Blocks that ran."""
    seconds: float
    """Time of the replay itself."""
    largest_error: float | None
    """Worst ‖out − ref‖ / ‖ref‖ of its outputs; None where it was not checked."""
    device: str | None = None
    """Slug of the device whose cache was simulated; None if none was."""

    @property
    def equal(self) -> bool:
        """Whether every tensor of every launch agrees to the byte."""
        return all(row.equal for row in self.tensors)

    @property
    def misread(self) -> tuple[TensorBytes, ...]:
        """The tensors of which other elements were read than have to be."""
        return tuple(row for row in self.tensors if row.misread)

    @property
    def tolerance(self) -> float:
        """The largest error of a right result; the loosest of all for a type without its own."""
        dtype = getattr(self.problem, "dtype", "")
        return TOLERANCES.get(dtype, max(TOLERANCES.values()))

    @property
    def wrong(self) -> bool:
        """Whether the result was checked and is NaN or off by more than the tolerance."""
        return self.largest_error is not None and not self.largest_error <= self.tolerance

    @property
    def asked_bytes(self) -> float:
        """All bytes that the kernel requested."""
        return float(sum(row.asked.total_bytes for row in self.tensors))

    @property
    def counted_bytes(self) -> float:
        """All bytes by the counting rule."""
        return float(sum(row.counted.total_bytes for row in self.tensors))


def replay(
    kernel_name: str,
    problem: Any = None,
    config: Any = None,
    device: Device | None = None,
    *,
    concurrent: int | None = None,
    seed: int = 0,
    check: bool = True,
    progress: Progress | None = None,
) -> Replay:
    """Replay one kernel on one problem (its first case where none is given).

    `progress(blocks done, blocks in all)` is called as blocks start. With a `device`, addresses
    also run through its L2, `concurrent` blocks at a time (one for each of its units unless given).
    Raises `UnknownName` for the kernel and `KernelError` where Triton cannot interpret here.
    """
    require_interpreter()
    kernel = registry.kernel(kernel_name)
    if problem is None:
        problem, fallback = kernel.cases[0]
        config = fallback if config is None else config
    config = kernel.configs[0] if config is None else config
    inputs = kernel.make_inputs(problem, seed)
    tensors = {**inputs.tensors, **kernel.allocate(problem, config)}
    launches = kernel.launches(problem, config)
    cost = count(kernel.schedule(problem, config), problem.sizes(), problem.elements())
    total = sum(launch.blocks for launch in launches)
    start = time.perf_counter()
    tallies, caches, offset = [], [], 0
    for launch in launches:
        feed = None if device is None else cachesim.Feed.of(device, _spans(tensors), concurrent)
        recorder = Recorder(
            _spans(tensors),
            feed.take if feed else None,
            None if progress is None else _offset_progress(progress, offset, total),
        )
        with recording(recorder):
            kernel.launch(launch, tensors)
        tallies.append((launch, recorder.tally))
        if feed is not None and device is not None:
            caches.append(_cache_bytes(launch, cost, problem, feed, device))
        offset += launch.blocks
    seconds = time.perf_counter() - start
    arrays = kernel.arrays(problem, config)
    outputs = {array.name: tensors[array.name] for array in arrays if array.role == "output"}
    errors = kernel.errors(inputs, outputs) if check else {}
    return Replay(
        kernel=kernel.name,
        problem=problem,
        config=config,
        tensors=_compare(tallies, cost, {array.name: array.counted_as for array in arrays}),
        cache=tuple(caches),
        accesses=sum(tally.accesses for _, tally in tallies),
        blocks=total,
        seconds=seconds,
        largest_error=max(errors.values(), key=_nan_is_worst) if errors else None,
        device=None if device is None else device.slug,
    )


def _nan_is_worst(value: float) -> float:
    return float("inf") if value != value else value


def _offset_progress(progress: Progress, offset: int, total: int) -> Progress:
    return lambda block, _: progress(offset + block + 1, total)


def _spans(tensors: Tensors) -> dict[str, tuple[int, int]]:
    """First byte of each tensor, and the byte past its end."""
    return {
        name: (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
        for name, tensor in tensors.items()
        if tensor.numel()
    }


def _cache_bytes(
    launch: Launch, cost: Cost, problem: Any, feed: cachesim.Feed, device: Device
) -> CacheBytes:
    """What one launch moved to and from memory in the simulated cache, and in the model."""
    total = feed.finish()
    part = next(item for item in cost.kernels if item.name == launch.kernel)
    model = tilestream.model_bytes(
        cost.schedule, part, problem.elements(), feed.concurrent, machine(device)
    )
    return CacheBytes(launch.kernel, total.read_bytes, total.write_bytes, model, total.hit_rate)


def _compare(
    tallies: list[tuple[Launch, Tally]], cost: Cost, aliases: Mapping[str, str]
) -> tuple[TensorBytes, ...]:
    """Requested and counted bytes of every tensor of every kernel of the schedule."""
    requests: dict[tuple[str, str], dict[str, int]] = {}
    unique = _distinct_bytes(tallies, aliases)
    for launch, tally in tallies:
        for (array, way), number in tally.bytes.items():
            ways = requests.setdefault((launch.kernel, aliases[array]), {})
            ways[way] = ways.get(way, 0) + number
    counts = {
        (part.name, tensor): _whole(traffic)
        for part in cost.kernels
        for tensor, traffic in part.l2.items()
        if traffic.total_bytes
    }
    floors: dict[tuple[str, str], Any] = {
        (part.name, tensor): _whole(traffic).read_bytes
        for part in cost.kernels
        for tensor, traffic in part.hbm.items()
        if not traffic.write_bytes and not traffic.atomic_bytes
    }
    return tuple(
        TensorBytes(
            *key,
            _traffic(requests.get(key, {})),
            counts.get(key, Traffic()),
            unique.get(key, 0),
            floors.get(key),
        )
        for key in dict.fromkeys((*counts, *requests))
    )


def _distinct_bytes(
    tallies: list[tuple[Launch, Tally]], aliases: Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """Bytes of every tensor that the launches of a kernel of the schedule read at least once."""
    masks: dict[tuple[str, str], np.ndarray] = {}
    for launch, tally in tallies:
        for array, marks in tally.read.items():
            key = (launch.kernel, array)
            masks[key] = masks[key] | marks if key in masks else marks
    sizes: dict[tuple[str, str], int] = {}
    for (kernel, array), marks in masks.items():
        key = (kernel, aliases[array])
        sizes[key] = sizes.get(key, 0) + int(np.count_nonzero(marks))
    return sizes


def _whole(traffic: Traffic) -> Traffic:
    """Bytes without the rounding of a mean: 7 groups of 150 / 7 rows have 150."""
    ways = (traffic.read_bytes, traffic.write_bytes, traffic.atomic_bytes)
    return Traffic(*(round(float(way), 6) for way in ways))


def _traffic(ways: Mapping[str, int]) -> Traffic:
    return Traffic(ways.get("read", 0), ways.get("write", 0), ways.get("atomic", 0))
