"""Sizes that a message names work: the command with one of them in place runs."""

from __future__ import annotations

import re

import pytest

from perfmodel.errors import ProblemError, SizeError
from perfmodel.hardware import systems

_HINT = re.compile(r"([a-z- ]+) of ((?:\d+(?:, )?)+)")
_OPTIONS = {"devices": "--gpus"}
TRAIN = ("--gpus", "--tensor", "--pipeline", "--context", "--expert")
INFER = ("--tensor", "--pipeline", "--expert", "--data")
PLANS = [
    ("train", network, dict(zip(TRAIN, sizes, strict=True)) | more)
    for network in ("qwen2.5-7b", "mixtral-8x7b")
    for sizes, more in (
        ((8, 3, 1, 1, 1), {}), ((6, 3, 1, 1, 1), {}), ((24, 3, 1, 1, 1), {}),
        ((8, 1, 1, 3, 1), {}), ((8, 1, 5, 1, 1), {}), ((40, 1, 5, 1, 1), {}),
        ((8, 1, 1, 1, 16), {}), ((24, 1, 1, 1, 3), {}), ((48, 1, 1, 1, 6), {}),
        ((12, 2, 1, 1, 1), {"--global-batch": 8}), ((66_000, 6, 1, 1, 1), {}),
        ((5, 1, 5, 1, 1), {"--schedule": "dualpipe", "--chunks": 2, "--global-batch": 16}),
        ((4, 1, 4, 1, 1), {"--chunks": 2, "--global-batch": 6}),
    )
] + [
    ("infer", network, dict(zip(INFER, sizes, strict=True)) | {"--system": "dgx-h100"})
    for network in ("mixtral-8x7b", "gpt-oss-20b")
    for sizes in (
        (3, 1, 1, 1), (6, 1, 1, 1), (1, 100, 1, 1), (1, 1, 3, 1), (1, 1, 3, 3), (1, 1, 8, 4),
        (1, 1, 6, 6), (1, 1, 48, 48), (1, 1, 16, 16),
    )
]  # fmt: skip


def hints(message):
    """The options and sizes that a message names."""
    _, _, hint = message.rpartition("; ")
    for option, sizes in _HINT.findall(hint.replace(" or ", "; ")):
        for size in sizes.split(", "):
            yield option.strip(), int(size)


def run(cli, command, network, options):
    words = [str(word) for pair in options.items() for word in pair]
    code, _, err = cli(command, network, "-d", "h100-sxm", *words, "-f", "json")
    return code, err


@pytest.mark.parametrize(("command", "network", "options"), PLANS)
def test_a_size_that_a_message_names_works(cli, command, network, options):
    code, message = run(cli, command, network, options)
    if code == 0:
        return
    for name, size in hints(message):
        if name == "micro-batches":
            mended = {"--global-batch": size}
        else:
            mended = {_OPTIONS.get(name, f"--{name.replace(' ', '-')}"): size}
        code, err = run(cli, command, network, {**options, **mended})
        assert code == 0, (message, err)


def test_most_messages_name_a_size(cli):
    """The law above would hold for messages without one."""
    messages = [run(cli, *plan) for plan in PLANS[::3]]
    refused = [message for code, message in messages if code == 2]
    assert len(refused) > 10
    assert sum(bool(list(hints(message))) for message in refused) > 0.7 * len(refused)


@pytest.mark.parametrize("name", ["dgx-h100", "a40-pairs", "gb200-nvl72"])
@pytest.mark.parametrize("inside", [None, 3, 5, 9])
def test_ranks_that_a_message_names_have_a_route(name, inside):
    from perfmodel.collectives.route import route

    system = systems.load(name)
    for ranks in (*range(2, 60, 5), system.devices + 1):
        message = ""
        try:
            route(system, ranks, inside)
        except ProblemError as error:
            message = str(error)
        for option, size in hints(message):
            sizes = {"ranks": ranks, "ranks per node": inside} | {option: size}
            route(system, *sizes.values())


def test_an_error_of_sizes_survives_a_worker():
    import pickle

    error = SizeError("7 heads do not divide by tensor 2", {"tensor": (1, 7)})
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == "7 heads do not divide by tensor 2; tensor of 1, 7 would"
