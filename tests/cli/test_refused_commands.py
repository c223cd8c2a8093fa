"""What cannot be done is one line that says what and which, and nothing is written."""

from __future__ import annotations

import shlex

import pytest
from cases import tables

COMMANDS = tables("refused_commands")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(cli, tmp_path, command):
    code, out, err = cli(*shlex.split(command))
    assert (code, out) == (2, "")
    assert COMMANDS[command] in err
    assert err.startswith("perfmodel: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
