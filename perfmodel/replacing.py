"""Writing a file as a whole: a reader sees the old contents or the new, never a part.

The contents go to a hidden file beside the target, `.<name>.<8 characters>.perfmodel`, which is
renamed at the end. Its writer holds a lock on it (flock), which the system releases when the
process ends, however it ends. That tells what a killed process left from what another one is
writing, in other containers too. The number of a process would not: each container counts its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perfmodel.errors import OutputError, reason

try:
    import fcntl
except ImportError:  # no such locks on this system: nothing is removed
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".perfmodel"


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file in the folder of `path`, renamed to `path` if the block succeeds.

    Removes what killed writers of `path` left. Raises `OutputError` if the folder
    or file cannot be written; no file is left then.
    """
    target = Path(path)
    check_target(target)
    try:
        descriptor, partial = _locked_file(target)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise OutputError(_refusal(target, error)) from None
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    except OSError as error:
        raise OutputError(_refusal(target, error)) from None
    finally:
        partial.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


def check_target(target: Path) -> None:
    """Raise `OutputError` where no file can be written at `target`: it is a folder, or in none.

    Removes what killed writers left.
    """
    try:
        if target.is_dir():
            raise OutputError(f"cannot write {target}: it is a folder; name a file in it")
        remove_abandoned(target)
    except (OSError, ValueError) as error:
        raise OutputError(_refusal(target, error)) from None


def _locked_file(target: Path) -> tuple[int | None, Path]:
    """A new temporary file, and the descriptor that holds its lock; None without such locks."""
    from tempfile import mkstemp

    while True:
        descriptor, name = mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=_SUFFIX)
        if fcntl is None:
            os.close(descriptor)  # Windows renames no open file
            return None, Path(name)
        with suppress(OSError):  # a file system without locks: others cannot lock the file either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # removed as abandoned before it was locked


def remove_abandoned(target: Path) -> None:
    """Remove the temporary files of `target` whose writers were killed."""
    if fcntl is None:
        return
    pattern = re.compile(re.escape(f".{target.name}.") + r"\w{8}" + re.escape(_SUFFIX))
    with os.scandir(target.parent) as entries:
        paths = [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    for path in paths:
        with suppress(OSError):  # locked by its writer, renamed by now, or not ours to remove
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refusal(target: Path, error: OSError | ValueError) -> str:
    return f"cannot write {target}: {reason(error)}; choose another path"
