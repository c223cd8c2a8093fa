"""The binaries of the proof set and of the correctness checks, compiled by many processes at once.

    python -m perfmodel.measured.day.precompile DIR SHARE SHARES

A process takes every SHARES-th binary and compiles it as a launch would. The binary is stored in
Triton's own cache, where the later stages find it. Nothing is launched. The cache is also packed
into one file of the run's folder, for machines that lose it between two calls.
"""

from __future__ import annotations

import os
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.measured.day.supervisor import run_group
from perfmodel.proof.compiled.compilefacts import content, launch_key
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import BundledKernel, Descriptor, Launch, torch_type
from perfmodel.replacing import replacing

PACKED = "triton-cache.tar.gz"
_KEPT = (".cubin", ".hsaco", ".json", ".so")  # what a launch needs; the rest is for reading
_MOST_PACKED = 14 * 2**20  # bytes
Binary = tuple[BundledKernel, Any, Any, Launch]


def everything(command: Sequence[str], folder: Path, limit_s: float | None) -> str:
    """Compile with one process a core; returns one sentence about the result."""
    from threading import Thread

    begin = time.monotonic()
    unpack(folder / PACKED)
    shares = max(os.cpu_count() or 1, 1)
    codes: list[int | None] = [None] * shares

    def work(share: int) -> None:
        codes[share] = run_group([*command, str(share), str(shares)], limit_s)

    threads = [Thread(target=work, args=(share,)) for share in range(shares)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pack(folder / PACKED)
    timeouts = codes.count(None)
    note = f", {timeouts} stopped when their time was up" if timeouts else ""
    return f"{shares} processes, {time.monotonic() - begin:.0f} s{note}"


def binaries(problems: Iterator[tuple[BundledKernel, Any, Any]], target: str) -> list[Binary]:
    """The distinct binaries of (kernel, problem, config), without combinations that a kernel
    refuses."""
    by_key: dict[str, Binary] = {}
    for kernel, problem, config in problems:
        try:
            launches = kernel.launches(problem, config)
        except ProblemError:
            continue
        for launch in launches:
            key = launch_key(content(kernel, problem, config, launch, TARGETS[target]))
            by_key.setdefault(key, (kernel, problem, config, launch))
    return list(by_key.values())


def compile_binary(binary: Binary) -> None:
    """Compile one launch as its kernel's launcher would, without tensors and without a launch."""
    kernel, problem, config, launch = binary
    dtypes = {array.name: array.dtype for array in kernel.arrays(problem, config)}
    arguments = {name: _stand_in(value, dtypes) for name, value in launch.arguments.items()}
    launch.function.warmup(
        **arguments,
        **launch.constexprs,
        grid=launch.grid,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )


def _stand_in(value: Any, dtypes: dict[str, str]) -> Any:
    """A placeholder for an argument; only its type matters, since nothing is launched."""
    from triton.runtime.jit import MockTensor

    if isinstance(value, str):
        return MockTensor(torch_type(dtypes[value]))
    if isinstance(value, Descriptor):
        import torch

        base = torch.empty(0, dtype=torch_type(dtypes[value.array]), device="meta")
        return value.on(base)
    return value


# ---- Triton's cache ------------------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder of Triton's cache."""
    setting = os.environ.get("TRITON_CACHE_DIR")
    return Path(setting) if setting else Path.home() / ".triton" / "cache"


def pack(path: Path) -> None:
    """Pack the cache's binaries into one file, newest first, up to a size limit."""
    files = [item for item in cache_folder().rglob("*") if item.suffix in _KEPT]
    if not files:
        return
    with replacing(path) as partial, tarfile.open(partial, "w:gz") as archive:
        for item in sorted(files, key=lambda item: -item.stat().st_mtime):
            archive.add(item, item.relative_to(cache_folder()))
            if partial.stat().st_size > _MOST_PACKED:
                break


def unpack(path: Path) -> None:
    """Restore the files that `pack` packed; existing files are not overwritten."""
    if not path.exists():
        return
    target = cache_folder()
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path) as archive:
        for item in archive:
            if item.isfile() and not (target / item.name).exists():
                archive.extract(item, target, filter="data")


# ---- One process ---------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile one process's share of the binaries for this machine's GPU."""
    from perfmodel.measured.day import forecast
    from perfmodel.measured.day.gpu import Gpu
    from perfmodel.measured.day.stages import compiled_first

    folder, share, shares = arguments or sys.argv[1:]
    gpu = Gpu()
    plan = forecast.read(Path(folder) / forecast.NAME)
    jobs = binaries(compiled_first(gpu, plan), gpu.launcher().target)
    return compile_share(jobs, int(share), int(shares), compile_binary)


def compile_share(
    found: Sequence[Binary], share: int, shares: int, work: Callable[[Binary], None]
) -> int:
    """Compile every `shares`-th binary; a refused one is printed and the rest goes on."""
    if share == 0:
        print(f"  {len(found)} binaries", flush=True)
    for binary in found[share::shares]:
        try:
            work(binary)
        except Exception as error:  # fails again in a later stage, which records it
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            print(f"  not compiled: {binary[0].name} with {binary[2]}: {text}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PerfmodelError as error:
        print(f"  {error}", file=sys.stderr)
        sys.exit(2)
