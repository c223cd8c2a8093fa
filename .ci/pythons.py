"""Test the wheel under every Python that is here, outside the repository: `make pythons`.

The wheel is built once. For each Python of 3.11 to 3.14 it is installed with its `test` extra into
a new virtual environment in a folder of its own, and some tests run there against what was
installed; no torch. Pythons that are not here are named. Exits with 1 where a test failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = (
    "arithmetic", "charts", "classes", "cli", "cli_collective", "cli_hardware", "cli_infer",
    "cli_known", "cli_network", "cli_show", "constants", "damaged", "declaration",
    "explain", "graph", "hardware", "levels", "libraries", "ncu", "network_files",
    "network_presets", "plaintext", "records", "render", "report", "reuse",
    "serving", "sweep_cli", "sweep_store", "systems", "tables", "timing_terms", "triton", "units",
    "why", "yamltable",
)  # fmt: skip
"""Tests that read nothing of the repository but themselves and documents, over all that depends on
a Python: annotations, dataclasses, the command line, warnings, files, processes."""


def found(version: str) -> Path | None:
    """A Python of that version: on the path, or one that pyenv built."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shutil.which(f"python{version}")
    built = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    for path in (*([Path(named)] if named else []), *built):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        said = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if said.stdout.strip() == version:
            return path
    return None


def wheel(folder: Path) -> Path:
    """The wheel of this checkout, built from a copy of its source archive."""
    code = "import sys; sys.path.insert(0, '.ci'); import backend; backend.build_{}({!r})"
    for kind, source in (("sdist", ROOT), ("wheel", folder / "unpacked")):
        command = [sys.executable, "-W", "ignore", "-c", code.format(kind, str(folder))]
        subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
        if kind == "sdist":
            (archive,) = folder.glob("*.tar.gz")
            shutil.unpack_archive(archive, folder / "packed", filter="data")
            (folder / "packed" / archive.name.removesuffix(".tar.gz")).rename(folder / "unpacked")
    (made,) = folder.glob("*.whl")
    return made


def passed(python: Path, made: Path, folder: Path) -> bool:
    """Whether the tests pass under a Python, in a folder with tests and documents alone."""
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint")
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    own = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([own, *pip, ROOT / "constraints-cpu.txt", f"{made}[test]"], check=True)
    for name in ("tests", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    paths = [path for name in TESTS for path in folder.glob(f"tests/*/test_{name}.py")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [own, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *paths]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 0


def outcomes(wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each version with how it went."""
    with tempfile.TemporaryDirectory(prefix="perfmodel-") as name:
        build = Path(name) / "build"
        build.mkdir()
        made = wheel(build)
        for version in wanted:
            python = found(version)
            if python is None:
                yield version, "skipped: not found"
                continue
            print(f"Python {version}: {python}", flush=True)
            folder = Path(name) / version
            folder.mkdir()
            began = time.monotonic()
            said = "passed" if passed(python, made, folder) else "FAILED"
            yield version, f"{said} in {time.monotonic() - began:.0f} s"


def main() -> int:
    """Run the versions that are named, by default all."""
    every = list(outcomes(tuple(sys.argv[1:]) or VERSIONS))
    for version, said in every:
        print(f"Python {version}: {said}")
    return int(any(said.startswith("FAILED") for _, said in every))


if __name__ == "__main__":
    sys.exit(main())
