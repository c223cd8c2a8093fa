"""C source → machine code, by the machine's own compiler, kept in the user's cache folder."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel import usercache

_OPTIONS = ("-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
            "-w", "-shared", "-fPIC")  # fmt: skip


@cache
def compiler() -> str | None:
    """Path of the C compiler: that of CC, or cc, gcc or clang; None where there is none."""
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def loaded(source: str, *, build: bool) -> Any:
    """The function `run` of a source: from the cache, or built where `build`; None where neither.

    Raises `OSError` where the compiler fails or the cache cannot be written.
    """
    path = usercache.folder("compiled") / f"{_key(source)}.so"
    if not path.exists():
        if not build or compiler() is None:
            return None
        _build(source, path)
    run = ctypes.CDLL(str(path)).run
    pointer = ctypes.c_void_p
    run.argtypes = [ctypes.c_long, pointer, pointer, ctypes.c_long, *[pointer] * 4]
    run.restype = None
    return run


def _key(source: str) -> str:
    """Names the code that this machine's processor gets for a source."""
    parts = (source, " ".join(_OPTIONS), platform.machine(), _processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _processor() -> str:
    """What the processor can do, since a cache folder may be shared by several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _build(source: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        code, library = Path(folder) / "variant.c", Path(folder) / "variant.so"
        code.write_text(source, encoding="utf-8")
        for extra in (("-DLIBMVEC", "-lmvec"), ()):
            command = [str(compiler()), *_OPTIONS, str(code), "-o", str(library), *extra, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                os.replace(library, path)
                return
    raise OSError(f"{compiler()} failed: {done.stderr.strip().splitlines()[-1:]}")
