"""A file with what a measuring process runs, line by line, for the supervisor that may kill it.

A kernel can hang or crash its process. The process therefore writes what it is about to run
(`beat`), and that nothing runs any more (`rest`). The supervisor sees when the file was last
written. After an abnormal end it marks the running case as lost, with the reason (`mark_lost`). The
next process reads that (`claim`) and records a failure instead of running the case again. If the
case was not marked (the machine went away), it is run again.

A line is a JSON object, appended with one write and synced; only the last one counts. It begins
with the end of the line before, so that a line that was cut short spoils no other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "day.jsonl"
_LONGEST = 2**16  # bytes from the end of the file that hold its last line


@dataclass(frozen=True)
class Lost:
    """What was lost with its process."""

    running: Mapping[str, str]
    """What was running."""
    reason: str
    """Why the process ended."""


class Pulse:
    """The file `day.jsonl` in `folder`; without a folder nothing is written."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / NAME

    def beat(self, running: Mapping[str, str]) -> None:
        """Record what runs from now on."""
        self._append({"running": dict(running)})

    def rest(self) -> None:
        """Record that nothing that could hang is running; what is marked as lost stays so."""
        if self.running() is not None:
            self._append({})

    def claim(self) -> Lost | None:
        """What an earlier process lost, returned once; None if nothing."""
        entry = self._last()
        if "reason" not in entry:
            return None
        self._append({})
        return Lost(entry["running"], str(entry["reason"]))

    def running(self) -> Mapping[str, str] | None:
        """What the last beat says; None where nothing runs."""
        entry = self._last()
        return None if "reason" in entry else entry.get("running")

    def silent_s(self) -> float:
        """Seconds since the last beat; 0 where nothing runs."""
        if self._path is None or self.running() is None:
            return 0.0
        return max(time.time() - self._path.stat().st_mtime, 0.0)

    def mark_lost(self, reason: str) -> bool:
        """Mark what runs as lost; False if nothing was running."""
        running = self.running()
        if running is None:
            return False
        self._append({"running": running, "reason": reason})
        return True

    def _append(self, entry: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(descriptor, f"\n{json.dumps(entry)}".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _last(self) -> dict[str, Any]:
        """The last whole line; empty where nothing runs."""
        if self._path is None or not self._path.exists():
            return {}
        with self._path.open("rb") as file:
            file.seek(-min(self._path.stat().st_size, _LONGEST), os.SEEK_END)
            lines = file.read().split(b"\n")
        for line in reversed(lines):
            try:
                entry = json.loads(line)
            except ValueError:  # cut short
                continue
            return entry if isinstance(entry, dict) else {}
        return {}
