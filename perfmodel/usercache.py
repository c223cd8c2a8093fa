"""The user's cache folder. Its files can be made again, and may be deleted at any time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ENVIRONMENT = "PERFMODEL_CACHE"
"""Environment variable: the folder that holds the cache instead."""
_BY_PLATFORM = {
    "win32": ("LOCALAPPDATA", "AppData/Local"),
    "darwin": ("", "Library/Caches"),
}
_ELSEWHERE = ("XDG_CACHE_HOME", ".cache")  # XDG Base Directory Specification: absolute, or ignored


def folder(kind: str) -> Path:
    """The folder of a kind of cached files; it may not exist yet.

    Raises `OSError` where the user has no home.
    """
    override = os.environ.get(ENVIRONMENT)
    if override:
        return Path(override) / kind
    variable, tail = _BY_PLATFORM.get(sys.platform, _ELSEWHERE)
    base = os.environ.get(variable, "")
    try:
        return Path(base if os.path.isabs(base) else Path.home() / tail) / "perfmodel" / kind
    except RuntimeError as error:
        raise OSError(str(error)) from None
