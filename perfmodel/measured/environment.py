"""The environment of a measurement: the device, versions, clocks, power and temperature.

It records no host or user name. Values that cannot be read stay empty.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from perfmodel.errors import PerfmodelError
from perfmodel.interrupts import import_whole

_CPU = Path("/sys/devices/system/cpu")
_GROUP = Path("/sys/fs/cgroup")
_THROTTLE = {
    "ClocksThrottleReasonSwPowerCap": "power cap",
    "ClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "ClocksThrottleReasonSwThermalSlowdown": "thermal",
    "ClocksThrottleReasonHwThermalSlowdown": "hardware thermal",
    "ClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
    "ClocksThrottleReasonSyncBoost": "sync boost",
}
_SIZE = {"K": 2**10, "M": 2**20, "G": 2**30}


class NoDevice(PerfmodelError):
    """A device that is not in this machine."""


@dataclass(frozen=True, slots=True)
class State:
    """A reading of the device; None where it cannot be read."""

    clock_mhz: float | None = None
    """Clock of the units."""
    memory_clock_mhz: float | None = None
    """Clock of the memory."""
    power_w: float | None = None
    """Watts."""
    temperature_c: float | None = None
    """Degrees Celsius."""
    throttle: str = ""
    """Why the clock is lowered; empty: it is not."""


class Gauge(Protocol):
    """Reads the state of a device."""

    def read(self) -> State:
        """The state now."""


@dataclass(frozen=True)
class Environment:
    """The device and versions that all rows of one session share.

    `target` is what Triton compiles for ("sm_90", "gfx942"; empty on a processor), `units` the
    device's SMs, compute units or cores.
    """

    device: str
    """Slug of the device."""
    name: str
    """Its full name."""
    kind: str
    """cuda, rocm or cpu."""
    cache_bytes: float
    """Bytes of the last cache."""
    memory_bytes: float
    """Bytes of the memory."""
    columns: dict[str, str]
    """Columns of every row: versions, driver, clocks."""
    gauge: Gauge = field(repr=False)
    """Reads clock and power."""
    target: str = ""
    """What Triton compiles for ("sm_90", "gfx942"); empty on a processor."""
    units: int = 1
    """The device's SMs, compute units or cores."""


@dataclass(frozen=True)
class Cpu:
    """A processor as the system describes it."""

    name: str
    """Its name."""
    cores: int
    """Cores."""
    threads: int
    """Logical processors."""
    caches: dict[int, tuple[int, int]]
    """Bytes of one instance and cores that share it, of levels 1, 2 and 3."""
    memory_bytes: int
    """Bytes of memory."""
    flags: frozenset[str]
    """Its instruction sets."""
    base_hz: float | None
    """Base clock."""
    max_hz: float | None
    """Highest clock."""
    places: tuple[int | None, ...] = (None,)
    """Number of one logical processor of each core."""
    available_bytes: int = 0
    """Bytes of memory that are free."""

    @property
    def slug(self) -> str:
        """The name in lower case with dashes, and the number of cores."""
        words = re.sub(r"\(r\)|\(tm\)|cpu|processor|@.*", " ", self.name.lower())
        stem = "-".join(re.findall(r"[a-z0-9]+", words)) or "cpu"
        return f"{stem}-{self.cores}-cores"

    def cache_bytes(self, level: int) -> int | None:
        """Bytes of all instances of a level that the cores can use, together."""
        if level not in self.caches:
            return None
        size, shared = self.caches[level]
        return size * max(-(-self.cores // shared), 1)

    @property
    def last_level(self) -> int | None:
        """The outermost cache."""
        return max(self.caches, default=None)


def cpu() -> Cpu:
    """This machine's processor: the cores that this process may use."""
    info = _cpuinfo()
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    siblings: dict[str, int] = {}
    for i in processors:
        siblings.setdefault(_text(_CPU / f"cpu{i}/topology/thread_siblings_list") or str(i), i)
    threads = len(processors) if len(processors) > 1 else os.cpu_count() or 1
    maximum = _text(_CPU / "cpu0/cpufreq/cpuinfo_max_freq")
    clock = info.get("cpu MHz")
    return Cpu(
        name=info.get("model name") or info.get("Model") or platform.processor() or "CPU",
        cores=len(siblings),
        threads=threads,
        caches=_caches(processors[0], len(siblings)),
        memory_bytes=_memory_bytes(),
        flags=frozenset((info.get("flags") or info.get("Features") or "").split()),
        base_hz=float(clock) * 1e6 if clock else None,
        max_hz=float(maximum) * 1e3 if maximum else None,
        places=tuple(siblings.values()),
        available_bytes=_available_bytes(),
    )


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    cells: dict[str, str] = {}
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            cells.setdefault(name.strip(), value.strip())
    return cells


def _caches(first: int, cores: int) -> dict[int, tuple[int, int]]:
    caches: dict[int, tuple[int, int]] = {}
    for folder in sorted((_CPU / f"cpu{first}/cache").glob("index*")):
        level, size = _text(folder / "level"), _text(folder / "size")
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if _text(folder / "type") == "Instruction" or not level.isdigit() or match is None:
            continue
        shared = _processor_count(_text(folder / "shared_cpu_list"))
        threads = _processor_count(_text(_CPU / f"cpu{first}/topology/thread_siblings_list")) or 1
        sharing = max(min(shared // threads, cores), 1)
        caches[int(level)] = (int(match[1]) * _SIZE.get(match[2], 1), sharing)
    return caches


def _processor_count(text: str) -> int:
    """How many processors "0-3,8" means."""
    count = 0
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return count


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def _available_bytes() -> int:
    """Memory that can be used now: what is free, within the limit of this process's control
    group."""
    free = re.search(r"^MemAvailable:\s*(\d+) kB", _text(Path("/proc/meminfo")), re.M)
    limits = [int(free[1]) * 2**10 if free else _memory_bytes()]
    usage, limit = (_text(_GROUP / name) for name in ("memory.current", "memory.max"))
    if usage.isdigit() and limit.isdigit():
        limits.append(max(int(limit) - int(usage), 0))
    return min(limits)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


class CpuGauge:
    """The mean clock of all cores, where the system reports it."""

    def read(self) -> State:
        """The clocks now."""
        text = _text(Path("/proc/cpuinfo"))
        clocks = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.M)]
        return State(clock_mhz=sum(clocks) / len(clocks) if clocks else None)


class NvmlGauge:
    """NVIDIA's management library (nvidia-ml-py), or `nvidia-smi` where that is missing."""

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._nvml: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            self._nvml = pynvml
        except Exception:  # not installed, or no driver: `read` uses nvidia-smi
            self._nvml = None

    def read(self) -> State:
        """The state now; empty where neither way works."""
        return self._nvml_state() if self._nvml is not None else self._smi_state()

    def _nvml_state(self) -> State:
        nvml, handle = self._nvml, self._handle

        def value(ask: Any, scale: float = 1.0) -> float | None:
            try:
                return float(ask()) * scale
            except nvml.NVMLError:
                return None

        try:
            mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        except nvml.NVMLError:
            mask = 0
        reasons = [
            reason for name, reason in _THROTTLE.items() if mask & getattr(nvml, f"nvml{name}", 0)
        ]
        return State(
            value(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            value(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            value(lambda: nvml.nvmlDeviceGetPowerUsage(handle), 1e-3),
            value(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "+".join(reasons),
        )

    def _smi_state(self) -> State:
        query = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
        text = _run(
            "nvidia-smi", f"--id={self._index}", f"--query-gpu={query}",
            "--format=csv,noheader,nounits",
        )  # fmt: skip
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) != 4:
            return State()
        clock, memory, power, temperature = (_number(cell) for cell in cells)
        return State(clock, memory, power, temperature)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _run(*command: str, folder: Path | None = None) -> str:
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False, cwd=folder
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def environment(device: str) -> Environment:
    """This machine's `cpu` or `cuda` device (ROCm too); raises `NoDevice` where it is not there."""
    return _cpu_environment() if device == "cpu" else _gpu_environment()


def _cpu_environment() -> Environment:
    chip = cpu()
    last = chip.last_level
    return Environment(
        chip.slug,
        chip.name,
        "cpu",
        float(chip.cache_bytes(last) or 0) if last else 0.0,
        float(chip.memory_bytes),
        {**versions(), "threads": str(needs_torch().get_num_threads())},
        CpuGauge(),
        units=chip.cores,
    )


def _gpu_environment() -> Environment:
    torch = needs_torch()
    if not torch.cuda.is_available():
        raise NoDevice(
            "no CUDA or ROCm device here; --device cpu measures this machine's processor, "
            "and predict, replay and compile need no GPU"
        )
    properties = torch.cuda.get_device_properties(0)
    driver = _run("nvidia-smi", "--id=0", "--query-gpu=driver_version", "--format=csv,noheader")
    return Environment(
        device_slug(properties.name),
        properties.name,
        "cuda",
        float(getattr(properties, "L2_cache_size", 0)),
        float(properties.total_memory),
        {**versions(), "driver": driver},
        NvmlGauge(),
        _target(properties),
        int(properties.multi_processor_count),
    )


def _target(properties: Any) -> str:
    """The compile target of a device as torch describes it."""
    amd = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
    return amd if amd.startswith("gfx") else f"sm_{properties.major}{properties.minor}"


def needs_torch() -> Any:
    """The torch module; raises `NoDevice` where it is not installed."""
    try:
        return import_whole("torch")
    except ImportError:
        raise NoDevice("measuring needs torch: pip install 'perfmodel[gpu]'") from None


def device_slug(name: str) -> str:
    """The slug of the spec with this name or alias; without one, the name in lower case with
    dashes."""
    slug = "-".join(name.lower().replace("_", " ").split())
    try:
        from perfmodel.hardware import catalogue

        path = catalogue.aliases().get(slug)
    except ImportError:  # a measuring machine without PyYAML: the alias is resolved elsewhere
        return slug
    return path.stem if path is not None else slug


def versions() -> dict[str, str]:
    """Versions of the packages used, and the revision of this package's checkout."""
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "triton": _version("triton"),
        "driver": "",
        "git_revision": revision(),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def revision() -> str:
    """The commit of this checkout, with -dirty where files differ; empty outside one."""
    root = Path(__file__).resolve().parents[3]
    return _run("git", "describe", "--always", "--dirty", "--exclude=*", folder=root)
