"""Standard input, output and error, whatever they are connected to: a narrow encoding, nothing."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perfmodel.plaintext import LOOKALIKES

PIPE_CLOSED = 141
"""Exit code where the reader of standard output has left: 128 + SIGPIPE, as a shell has it."""


def occupy() -> None:
    """Open the descriptors 0 to 2 that are closed on the null device, so that no file gets them."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one


@contextmanager
def lenient() -> Iterator[None]:
    """Write ASCII look-alikes for what an output stream's encoding lacks: >= for ≥."""
    found = [one for one in (sys.stdout, sys.stderr) if isinstance(one, io.TextIOWrapper)]
    before = [(stream, stream.errors) for stream in found]
    for stream in found:
        stream.reconfigure(errors=LOOKALIKES)
    try:
        yield
    finally:
        for stream, errors in before:
            with suppress(OSError, ValueError):  # what could not be written has been told by now
                stream.reconfigure(errors=errors)


def flush() -> None:
    """Write what standard output holds back; raises `OSError` where that cannot be."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def mute() -> None:
    """Drop what standard output still holds, so that leaving does not try to write it again."""
    with suppress(AttributeError, OSError, ValueError):  # none, closed, or not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
