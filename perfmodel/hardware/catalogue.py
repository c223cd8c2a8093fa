"""The devices by name: shipped specs, and those of the user's folders and of other packages.

Folders are searched in order: PERFMODEL_HARDWARE_PATH, PERFMODEL_PATH, the shipped ones, then those
under the entry point `perfmodel.hardware`. A slug opens one file. Another spelling is looked up in
each file's slug, name and aliases, which are its first lines, so the rest is not decoded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from perfmodel import plugins, yamltable
from perfmodel.errors import SpecError, UnknownName, reason
from perfmodel.hardware import physics, specfile, yamlfile
from perfmodel.hardware.device import Device

ENVIRONMENT = "PERFMODEL_HARDWARE_PATH"
_HEAD = frozenset({"slug", "name", "aliases"})


def load(name_or_path: str | Path) -> Device:
    """The device with this slug, alias or spec file (a name with a slash or ending in .yaml).

    Raises `UnknownName`, with the nearest names, or `SpecError` for a spec that cannot be used.
    """
    text = str(name_or_path)
    if is_path(text):
        return _read(Path(text))
    return _device(located("device", text, folders(), of_packages))


def is_path(text: str) -> bool:
    """Whether a name is the path of a spec file: it has a slash or ends in .yaml."""
    return "/" in text or os.sep in text or text.endswith((".yaml", ".yml"))


def located(
    kind: str, name: str, where: list[Path], further: Callable[[], list[Path]] = list
) -> Path:
    """The file in the first of the folders that has this slug or alias.

    `further` gives slower folders, which are searched last. Raises `UnknownName` with the nearest
    names of that kind.
    """
    slug = normalise(name)
    path = _path(slug, where)
    if path is not None:
        return path
    rest = further()
    path = _path(slug, rest)
    if path is not None:
        return path
    places = [*where, *rest]
    slugs = listed(places)
    matches = get_close_matches(slug[:100], [*slugs, *_aliases(places)], n=3, cutoff=0.5)
    raise UnknownName(kind, name, matches or slugs)


def _path(slug: str, places: list[Path]) -> Path | None:
    """The file with that slug, else with that alias."""
    for folder in places:
        path = folder / f"{slug}.yaml"
        if _is_file(path):
            return path
    return _aliases(places).get(slug)


def names() -> list[str]:
    """Every slug, sorted; opens no file."""
    return listed([*folders(), *of_packages()])


def listed(where: list[Path]) -> list[str]:
    """Every slug of the files in folders, sorted; opens no file."""
    return sorted({path.stem for path in plugins.files(where)})


def specs() -> list[Device]:
    """Every device whose spec can be used, sorted by slug."""
    return list(plugins.readable(names(), load))


def aliases() -> dict[str, Path]:
    """Every spelling, normalised, with its file; the first folder wins."""
    return _aliases([*folders(), *of_packages()])


def _aliases(places: list[Path]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for folder in places:
        files = [path for path in plugins.files([folder]) if _is_file(path)]  # links to nowhere
        versions = tuple((path.name, path.stat().st_mtime_ns) for path in files)
        for name, spellings in _spellings(folder, versions).items():
            for spelling in spellings:
                paths.setdefault(spelling, folder / name)
    return paths


def folders() -> list[Path]:
    """Folders of specs that are searched before those of other packages."""
    return [*plugins.folders("hardware", ENVIRONMENT), shipped()]


@lru_cache(maxsize=1)
def shipped() -> Path:
    """The folder of the shipped specs: in the installed package, or in the checkout."""
    package = Path(__file__).parents[1]
    installed = package / "hardware_specs"
    return installed if installed.is_dir() else package.with_name("hardware_specs")


def normalise(name: str) -> str:
    """Lower case, with dashes for spaces and underscores: "H100 SXM5" becomes "h100-sxm5"."""
    return "-".join(name.lower().replace("_", " ").split())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is longer than names of files may be
        return False


def of_packages() -> list[Path]:
    """Where specs of other packages are looked for, after those of `folders`."""
    return list(plugins.packages("hardware"))


@lru_cache(maxsize=64)
def _spellings(folder: Path, versions: tuple[tuple[str, int], ...]) -> Mapping[str, Sequence[str]]:
    """The names that each file of a folder gives itself; a broken file has none (loading it says
    why)."""
    texts = {}
    for name, _ in versions:
        with suppress(SpecError):
            texts[name] = yamlfile.read(folder / name)
    return yamltable.kept(
        folder / "aliases",
        "".join(f"{name}\n{text}\n" for name, text in texts.items()),
        lambda: {name: _own_names(text) for name, text in texts.items()},
    )


def _own_names(text: str) -> list[str]:
    """The slug, the name and the aliases of a spec, normalised."""
    try:
        top = yamlfile.head(text, "", _HEAD)
    except SpecError:
        return []
    aliases = top.get("aliases")
    names = [top.get("slug"), top.get("name"), *(aliases if isinstance(aliases, list) else ())]
    return [normalise(name) for name in names if isinstance(name, str)]


def _device(path: Path) -> Device:
    device = _read(path)
    if device.slug != path.stem:
        raise SpecError(f"{path}:1: slug {device.slug!r} is not the file's name {path.stem!r}")
    return device


def _read(path: Path) -> Device:
    try:
        mtime = path.stat().st_mtime_ns
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read: {reason(error)}; check the path") from None
    return _read_cached(path, mtime)


@lru_cache(maxsize=256)
def _read_cached(path: Path, _mtime: int) -> Device:
    return specfile.read(Device, path, physics.check)
