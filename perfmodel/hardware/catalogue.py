"""The devices by name: shipped specs, and those of the user's folders and of other packages.

Folders are searched in order: PERFMODEL_HARDWARE_PATH, PERFMODEL_PATH, the shipped ones, then those
under the entry point `perfmodel.hardware`. A slug opens one file. Another spelling is looked up in
each file's slug, name and aliases, which are its first lines, so the rest is not decoded.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from perfmodel import plugins
from perfmodel.catalogue import Catalogue
from perfmodel.hardware import specfile
from perfmodel.hardware.device import Device

ENVIRONMENT = "PERFMODEL_HARDWARE_PATH"
SPELLINGS = ("slug", "name", "aliases")
"""The keys of a spec with its names."""


@lru_cache(maxsize=1)
def shipped() -> Path:
    """The folder of the shipped specs: in the installed package, or in the checkout."""
    package = Path(__file__).parents[1]
    installed = package / "hardware_specs"
    return installed if installed.is_dir() else package.with_name("hardware_specs")


def folders() -> list[Path]:
    """Folders of specs that are searched before those of other packages."""
    return [*plugins.folders("hardware", ENVIRONMENT), shipped()]


def of_packages() -> list[Path]:
    """Where specs of other packages are looked for, after those of `folders`."""
    return list(plugins.packages("hardware"))


DEVICES = Catalogue(
    "device",
    lambda path: specfile.read(Device, path),
    folders,
    of_packages,
    SPELLINGS,
)
"""The devices."""
load, names, aliases = DEVICES.load, DEVICES.names, DEVICES.aliases


def specs() -> list[Device]:
    """Every device whose spec can be used, sorted by slug."""
    return list(DEVICES.every())
