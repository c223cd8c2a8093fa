"""Hardware specs: one YAML file a device, every number with its source.

from perfmodel.hardware import load
h100 = load("h100-sxm")              # slug, alias, or path of a spec file
h100.hbm_bytes_per_s                 # 3.352e12: plain SI floats
h100.levels()                        # memory levels from the core outwards, then the links
h100.scaled(hbm_bandwidth=2)         # a what-if copy
"""

from perfmodel.hardware.catalogue import aliases, load, names, specs
from perfmodel.hardware.device import Device
from perfmodel.hardware.levels import Level
from perfmodel.hardware.specfile import loads, validate_file
from perfmodel.hardware.system import System, SystemLevel

__all__ = [
    "Device",
    "Level",
    "System",
    "SystemLevel",
    "aliases",
    "load",
    "loads",
    "names",
    "specs",
    "validate_file",
]
