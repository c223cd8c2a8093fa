"""The link between a device and its host, as a level of the device's memory."""

from __future__ import annotations

from perfmodel.errors import ProblemError
from perfmodel.hardware import Device

_PINNED_SHARE = 0.8
"""Share of the documented rate that copies of pinned memory achieve: 24 to 26 of 31.5 GB/s on PCIe
4 x16, 12 to 13 of 15.8 on PCIe 3 (nvbandwidth and FlexGen's fit of 12.89 GiB/s on T4)."""


def host_bytes_per_s(device: Device, host: Device | None = None) -> float:
    """Achieved bytes a second of copies in one direction, at most the host's memory bandwidth.

    Raises `ProblemError` where the device's spec has no link to a host.
    """
    level = device.level("host")
    if level is None or level.bytes_per_s is None:
        raise ProblemError(
            f"the spec of {device.slug} has no link to a host; add links.host with its "
            "bandwidth_per_direction"
        )
    rate = level.measured_bytes_per_s or _PINNED_SHARE * level.bytes_per_s
    if host is None:
        return rate
    return min(rate, host.measured_hbm_bytes_per_s or host.hbm_bytes_per_s)
