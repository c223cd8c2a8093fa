"""A file with what a measuring process is running now, for the supervisor that may have to kill it.

A kernel can hang or crash its process. The process therefore writes what it is about to run
(`beat`). The supervisor sees when the file was last written. After an abnormal end it marks the
running case as lost, with the reason (`mark_lost`). The next process reads that (`claim`) and
records a failure instead of running the case again. If the case was not marked (the machine went
away), it is run again.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from perfmodel.evidence.records.replacing import replacing

_NOW, _LOST = ".now.json", ".lost.json"


@dataclass(frozen=True)
class Lost:
    """What was lost with its process."""

    running: Mapping[str, str]
    """What was running."""
    reason: str
    """Why the process ended."""


class Pulse:
    """Writes the pulse of this process into `folder`; without a folder it writes nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def beat(self, running: Mapping[str, str]) -> None:
        """Record what runs from now on."""
        if self._folder is not None:
            _write(self._folder / _NOW, dict(running))

    def rest(self) -> None:
        """Record that nothing that could hang is running."""
        if self._folder is not None:
            (self._folder / _NOW).unlink(missing_ok=True)

    def claim(self) -> Lost | None:
        """What an earlier process lost, returned once; None if nothing."""
        if self._folder is None:
            return None
        path = self._folder / _LOST
        record = _read(path)
        path.unlink(missing_ok=True)
        if record is None or not isinstance(record.get("running"), dict):
            return None
        return Lost(record["running"], str(record.get("reason", "")))


def folder_of(results: Path) -> Path:
    """The temporary folder for the pulse of a run that writes into `results`; it is made.

    Nothing but results then lies among the results, at whatever moment the run is killed.
    """
    name = sha256(str(results.resolve()).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"perfmodel-pulse-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def seconds_since_beat(folder: Path) -> float | None:
    """Age of the current beat in seconds; None where nothing runs."""
    try:
        return max(time.time() - (folder / _NOW).stat().st_mtime, 0.0)
    except OSError:
        return None


def running(folder: Path) -> Mapping[str, str] | None:
    """The content of the last beat; None where nothing runs."""
    return _read(folder / _NOW)


def mark_lost(folder: Path, reason: str) -> bool:
    """Mark the current beat as lost; False if nothing was running."""
    beat = running(folder)
    if beat is None:
        return False
    _write(folder / _LOST, {"running": beat, "reason": reason})
    (folder / _NOW).unlink(missing_ok=True)
    return True


def forget(folder: Path) -> None:
    """Delete a beat that was not marked as lost; its case will run again."""
    (folder / _NOW).unlink(missing_ok=True)


def _write(path: Path, value: object) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(value), encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        record = json.loads(path.read_text(encoding="utf-8"))
        return record if isinstance(record, dict) else None
    return None
