"""The device that Triton launches on."""

from __future__ import annotations

from functools import cache

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, load


@cache
def current() -> Device:
    """This machine's device, by the name that its driver reports.

    Raises `ProblemError` where there is none, `UnknownName` for one without a spec.
    """
    from perfmodel.evidence.measured.environment import device_slug, needs_torch

    torch = needs_torch()
    if not torch.cuda.is_available():
        raise ProblemError("there is no GPU here; name a device (device='h100-sxm')")
    return load(device_slug(torch.cuda.get_device_properties(torch.cuda.current_device()).name))
