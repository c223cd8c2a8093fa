"""The build backend: setuptools, with source archives that are the same bytes for the same sources,
and with compiled code in the wheel where PERFMODEL_VARIANTS asks for it (`variants.py`).

setuptools heeds SOURCE_DATE_EPOCH for wheels only (reproducible-builds.org has what it means). Here
the source archive does too: every entry has that time and no owner, and so has the compression.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - all other hooks are setuptools' own

VARIANTS = "PERFMODEL_VARIANTS"
"""Environment variable: devices with code in the wheel, or `all`."""


def build_sdist(directory: str, settings: Any = None) -> str:
    """The name of the source archive that was built in `directory`."""
    name = build_meta.build_sdist(directory, settings)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None:
        path = Path(directory) / name
        path.write_bytes(dated(path.read_bytes(), int(epoch)))
    return name


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    """What a build needs besides setuptools: to record calls, what predicting them needs."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {"numpy", "pydantic", "PyYAML", "click"} if os.environ.get(VARIANTS) else set()
    return [each for each in project["dependencies"] if re.split(r"\W", each)[0] in needed]


def build_wheel(directory: str, settings: Any = None, metadata: Any = None) -> str:
    """The name of the wheel that was built in `directory`: for any machine, or, with compiled code,
    for any Python on machines like this one."""
    devices = os.environ.get(VARIANTS)
    if not devices:
        return build_meta.build_wheel(directory, settings, metadata)
    sys.path.insert(0, os.getcwd())
    import variants

    libraries = variants.write(Path("perfmodel/compiled"), devices)
    options = ["--plat-name", sysconfig.get_platform()]
    try:
        return build_meta.build_wheel(
            directory, {**(settings or {}), "--build-option": options}, metadata
        )
    finally:
        for path in libraries:
            path.unlink()


def dated(archive: bytes, seconds: int) -> bytes:
    """A .tar.gz whose entries all have that time (seconds since 1970) and no owner."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=seconds, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda entry: entry.name):
            entry.mtime, entry.pax_headers = seconds, {}
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() else 0o644
            new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
    return packed.getvalue()
