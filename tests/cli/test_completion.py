"""A shell completes the value of every option that takes a name."""

from __future__ import annotations

import click
import pytest

from perfmodel.cli import app

NAMES = {
    "NAME", "NAMES", "TYPE", "TYPES", "KIND", "KINDS", "NETWORK", "GRAPH", "FORMAT", "MODE",
    "KERNEL", "OPERATOR", "ALGORITHM", "PASS", "WHAT", "HOW", "DEVICE",
}  # fmt: skip
"""What stands for a name in a help text."""
FREE = {"network import --name", "infer --name"}
"""The user's own names."""


def options(command, context):
    """(words of the command, option, context) of every option and argument that takes a name."""
    for name in getattr(command, "list_commands", lambda _: ())(context):
        below = command.get_command(context, name)
        yield from options(below, click.Context(below, parent=context, info_name=name))
    words = context.command_path.removeprefix("perfmodel").strip()
    for param in command.get_params(context):
        label = f"{words} {max(param.opts, key=len)}"
        if getattr(param, "metavar", None) in NAMES and label not in FREE:
            yield label, param, context


def offered(param, context, text):
    return [item.value for item in param.shell_complete(context, text)]


def test_every_option_that_takes_a_name_offers_names_and_narrows_them():
    labels = set()
    for label, param, context in options(app, click.Context(app, info_name="perfmodel")):
        labels.add(label.split()[0])
        names = offered(param, context, "")
        if not names:  # an operator without a library has no implementation
            assert param.name == "implementation", label
            continue
        assert names[-1] in offered(param, context, names[-1][:2]), label
        assert not offered(param, context, "no-such-name-"), label
    assert labels >= {"predict", "train", "infer", "offload", "compare", "profile", "explain"}
    assert len(labels) > 20


@pytest.mark.parametrize("command", ["train", "predict gemm", "whatif attention"])
def test_a_list_goes_on_after_its_comma(command):
    context, group = click.Context(app, info_name="perfmodel"), app
    for word in command.split():
        group = group.get_command(context, word)
        context = click.Context(group, parent=context, info_name=word)
    param = next(param for param in group.get_params(context) if "--device" in param.opts)
    assert "a100-sxm4-80gb,h100-sxm" in offered(param, context, "a100-sxm4-80gb,h10")
    assert "h100-sxm,h100-sxm" not in offered(param, context, "h100-sxm,h10")
