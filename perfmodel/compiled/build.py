"""C source → machine code: what the package carries, or by the machine's own compiler, kept in the
user's cache folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel import usercache

OPTIONS = ("-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w", "-fPIC")
"""How a source is compiled, for any processor."""
LEVELS = {"x86_64": ("x86-64-v4", "x86-64-v3"), "aarch64": ("aarch64",), "arm64": ("arm64",)}
"""Kinds of processors that a package may carry code for, by machine, the fastest first."""
# What a processor of a kind has, by the names of /proc/cpuinfo.
_NEEDS = {
    "x86-64-v4": {"avx2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "fma", "f16c", "movbe"},
}
# The vector library of glibc, where there is one.
_VECTORS = ("-DLIBMVEC", "-Wl,-z,defs", "-lmvec")


@cache
def compiler() -> str | None:
    """Path of the C compiler: that of CC, or cc, gcc or clang; None where there is none."""
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def loaded(source: str, *, build: bool) -> Any:
    """The function `run` of a source: carried by the package, from the cache, or built where
    `build`; None where neither.

    Raises `OSError` where the compiler fails or the cache cannot be written.
    """
    run = getattr(carried(), function_name(source), None)
    if run is None:
        path = usercache.folder("compiled") / f"{_key(source)}.so"
        if not path.exists():
            if not build or compiler() is None:
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            compiled([source], path, "-march=native")
        run = getattr(ctypes.CDLL(str(path)), function_name(source))
    pointer = ctypes.c_void_p
    run.argtypes = [ctypes.c_long, pointer, pointer, ctypes.c_long, *[pointer] * 4]
    run.restype = None
    return run


@cache
def carried() -> Any:
    """The package's own library for this processor; None where it carries none."""
    words = set(_processor().split())
    for level in LEVELS.get(platform.machine(), ()):
        path = Path(__file__).with_name(library(level))
        if _NEEDS.get(level, set()) <= words and path.exists():
            return ctypes.CDLL(str(path))
    return None


def library(level: str) -> str:
    """File name of the library for a kind of processors."""
    return f"variants-{level}.so"


def function_name(source: str) -> str:
    """The name of a source's function in a library of many."""
    return f"run_{hashlib.sha256(source.encode()).hexdigest()[:32]}"


def _key(source: str) -> str:
    """Names the code that this machine's processor gets for a source."""
    parts = (source, " ".join(OPTIONS), platform.machine(), _processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _processor() -> str:
    """What the processor can do, since a cache folder may be shared by several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def compiled(sources: Sequence[str], path: Path, *more: str) -> None:
    """Compile sources into one library. Raises `OSError` where the compiler fails."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, ThreadPoolExecutor() as pool:
        code = [Path(folder) / f"{function_name(source)}.c" for source in sources]
        for each, source in zip(code, sources, strict=True):
            each.write_text(source, encoding="utf-8")
        for extra in (_VECTORS, ()):
            names = [f"-Drun={each.stem}" for each in code]
            objects = [str(each.with_suffix(".o")) for each in code]
            options = [*OPTIONS, *more, *extra[:1]]
            jobs = [[*options, name, "-c", str(each), "-o", object]
                    for name, each, object in zip(names, code, objects, strict=True)]  # fmt: skip
            target = Path(folder) / "library.so"
            joined = ["-shared", *objects, "-o", str(target), *extra[1:], "-lm"]
            done = [*pool.map(_ran, jobs)]
            done.append(_ran(joined))
            if not any(each.returncode for each in done):
                os.replace(target, path)
                return
    error = next(each.stderr for each in done if each.returncode)
    raise OSError(f"{compiler()} failed: {error.strip().splitlines()[-1:]}")


def _ran(options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(compiler()), *options], capture_output=True, text=True, check=False)
