"""Standard input, output and error in any state: closed, or with a narrow encoding."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perfmodel.plaintext import LOOKALIKES

PIPE_CLOSED = 141
"""Exit code where the reader of standard output has closed the pipe: 128 + SIGPIPE."""


def occupy() -> None:
    """Open closed descriptors 0 to 2 on the null device, so that no file takes their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # open() returns the lowest free descriptor: this one


@contextmanager
def lenient() -> Iterator[None]:
    """Write ASCII equivalents for characters that a stream's encoding lacks: >= for ≥."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    handlers = [(stream, stream.errors) for stream in streams]
    for stream in streams:
        stream.reconfigure(errors=LOOKALIKES)
    try:
        yield
    finally:
        for stream, errors in handlers:
            with suppress(OSError, ValueError):  # an unwritable output has been reported before
                stream.reconfigure(errors=errors)


def flush() -> None:
    """Write buffered standard output. Raises `OSError` where that fails."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def mute() -> None:
    """Discard buffered standard output, so that exit does not try to write it again."""
    with suppress(AttributeError, OSError, ValueError):  # none, closed, or not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
