"""A shell completes the value of every option that takes a name."""

from __future__ import annotations

import click
import pytest

from perfmodel import operators
from perfmodel.cli import app

NAMES = {
    "NAME", "NAMES", "TYPE", "TYPES", "KIND", "KINDS", "NETWORK", "GRAPH", "FORMAT", "MODE",
    "KERNEL", "OPERATOR", "ALGORITHM",
}  # fmt: skip
"""What stands for a name in a help text."""
FREE = {
    "network import --name": "the user's own name",
    "show name": "goes by the kind before it, which the test of commands gives",
}


def options():
    """(words of the command, option) of every option and argument that takes a name."""
    found = []

    def walk(command, context):
        for name in getattr(command, "list_commands", lambda _: ())(context):
            below = command.get_command(context, name)
            walk(below, click.Context(below, parent=context, info_name=name))
        words = context.command_path.removeprefix("perfmodel").strip()
        for param in command.get_params(context):
            shown = getattr(param, "metavar", None)
            label = f"{words} {max(param.opts, key=len)}"
            if shown in NAMES and label not in FREE:
                found.append(pytest.param(param, context, id=label))

    walk(app, click.Context(app, info_name="perfmodel"))
    return found


OPTIONS = options()


def test_there_are_such_options_in_most_commands():
    commands = {item.id.split()[0] for item in OPTIONS}
    assert len(OPTIONS) > 100
    assert commands >= {"predict", "train", "infer", "offload", "compare", "profile", "explain"}


@pytest.mark.parametrize(("param", "context"), OPTIONS)
def test_names_are_offered_and_narrowed(param, context):
    offered = [item.value for item in param.shell_complete(context, "")]
    if param.name == "implementation" and not operators.load(context.info_name).library:
        assert not offered
        return
    wanted = offered[-1]
    assert wanted in [item.value for item in param.shell_complete(context, wanted[:2])]
    assert not param.shell_complete(context, "no-such-name-")


def test_a_list_goes_on_after_its_comma():
    (param, context) = next(item.values for item in OPTIONS if item.id == "train --device")
    offered = [item.value for item in param.shell_complete(context, "a100-sxm4-80gb,h10")]
    assert "a100-sxm4-80gb,h100-sxm" in offered
