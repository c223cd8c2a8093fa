"""How an algorithm is mapped onto a memory hierarchy: one family of schedules a file."""

from perfmodel.schedules.schedule import Kernel, Loop, Schedule

__all__ = ["Kernel", "Loop", "Schedule"]
