"""What a measuring process is running now, in a file, for whoever has to stop it.

A kernel can hang, and can take its process with it. The process therefore writes what it is about
to run (`beat`). Whoever watches it sees when the file was last written, and after an abnormal end
marks what was running as lost, with the reason (`mark_lost`). The next process takes that over
(`claim`) and records it as a failure instead of running it again. Where nobody marked it (the whole
machine went away), it is simply run again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NOW, _LOST = ".now.json", ".lost.json"


@dataclass(frozen=True)
class Lost:
    """What was lost with its process."""

    running: Mapping[str, str]
    """What was running."""
    reason: str
    """Why the process ended."""


class Pulse:
    """The pulse of the processes that write into `folder`; without a folder nothing is written."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def beat(self, running: Mapping[str, str]) -> None:
        """Say what runs from now on."""
        if self._folder is not None:
            _write(self._folder / _NOW, dict(running))

    def rest(self) -> None:
        """Say that nothing that could hang runs now."""
        if self._folder is not None:
            (self._folder / _NOW).unlink(missing_ok=True)

    def claim(self) -> Lost | None:
        """What a former process lost, once; None where it lost nothing."""
        if self._folder is None:
            return None
        path = self._folder / _LOST
        found = _read(path)
        path.unlink(missing_ok=True)
        if found is None or not isinstance(found.get("running"), dict):
            return None
        return Lost(found["running"], str(found.get("reason", "")))


def seconds_since_beat(folder: Path) -> float | None:
    """How long the present beat is old; None where nothing runs."""
    try:
        return max(time.time() - (folder / _NOW).stat().st_mtime, 0.0)
    except OSError:
        return None


def running(folder: Path) -> Mapping[str, str] | None:
    """What the last beat said; None where nothing runs."""
    return _read(folder / _NOW)


def mark_lost(folder: Path, reason: str) -> bool:
    """Turn the present beat into something lost; False where nothing was running."""
    now = running(folder)
    if now is None:
        return False
    _write(folder / _LOST, {"running": now, "reason": reason})
    (folder / _NOW).unlink(missing_ok=True)
    return True


def forget(folder: Path) -> None:
    """Drop a beat that nobody marked as lost: what it names is run again."""
    (folder / _NOW).unlink(missing_ok=True)


def _write(path: Path, value: object) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else None
    return None
