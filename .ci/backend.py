"""The build backend: setuptools, with source archives that are the same bytes for the same sources.

setuptools heeds SOURCE_DATE_EPOCH for wheels only (reproducible-builds.org has what it means). Here
the source archive does too: every entry has that time and no owner, and so has the compression.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - all other hooks are setuptools' own


def build_sdist(directory: str, settings: Any = None) -> str:
    """The name of the source archive that was built in `directory`."""
    name = build_meta.build_sdist(directory, settings)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None:
        path = Path(directory) / name
        path.write_bytes(dated(path.read_bytes(), int(epoch)))
    return name


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
