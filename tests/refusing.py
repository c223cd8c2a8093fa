"""What every bad input gets: one line that says what and which, exit code 2, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def refused(result: tuple[int, str, str], *words: str) -> str:
    """The line of a command that was refused, which has these words in it."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert err.startswith("perfmodel: ")
    assert err.count("\n") == 1, err
    for word in words:
        assert word in err, err
    return err.removeprefix("perfmodel: ").rstrip("\n")


def raised(kind: type[Exception], call: Callable[[], object], *words: str) -> str:
    """The line of the error that a call raises, which has these words in it."""
    with pytest.raises(kind) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    for word in words:
        assert word in line, line
    return line
