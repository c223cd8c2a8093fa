"""What cannot be done is one line that says what and which, and nothing is written."""

from __future__ import annotations

import shlex

import pytest
from cases import tables
from folders import TESTS
from refusing import refused

COMMANDS = tables("refused_commands")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(cli, tmp_path, command):
    refused(
        cli(*shlex.split(command.replace("CONFIGS", str(TESTS / "configs")))), COMMANDS[command]
    )
    assert not list(tmp_path.iterdir())
