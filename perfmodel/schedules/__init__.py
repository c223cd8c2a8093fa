"""How it is laid over a memory hierarchy: one family of schedules a file."""

from perfmodel.schedules.schedule import Kernel, Loop, Schedule

__all__ = ["Kernel", "Loop", "Schedule"]
