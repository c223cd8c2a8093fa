"""Ctrl-C while an extension module is imported: it interrupts once the module is there.

While torch is imported its C++ code runs Python code, and an exception in that is one that it does
not catch: the process aborts (SIGABRT) where it should be interrupted.
"""

from __future__ import annotations

import signal
import threading
from importlib import import_module
from types import ModuleType


def import_whole(name: str) -> ModuleType:
    """The module of that name; a Ctrl-C while it is imported raises afterwards.

    Raises `ImportError` where it is not installed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return import_module(name)  # nothing raises here
    interrupts = 0

    def count(_number: int, _frame: object) -> None:
        nonlocal interrupts
        interrupts += 1

    signal.signal(signal.SIGINT, count)
    try:
        return import_module(name)
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
