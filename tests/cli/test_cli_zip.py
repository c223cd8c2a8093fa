"""`--zip` pairs the lists of a command: row i is the command with the i-th value of every list."""

from __future__ import annotations

import json

import pytest

INFER = ("infer", "llama-3-70b")
TRAIN = ("train", "llama-3.2-1b", "--seq", "512")
LISTS = [
    (*INFER, {"-d": "h100-sxm,mi300x,b200", "--tensor": "4,8,2"}),
    (*INFER, {"-d": "h100-sxm,b200,h100-sxm", "--tensor": "4,2,8", "--weights": "fp8"}),
    (*INFER, {"-d": "h200-sxm", "--tensor": "2,4", "--isl": "1k,2k", "--batch": "8,16"}),
    (*TRAIN, {"-s": "dgx-a100,dgx-h100", "--gpus": "8", "--tensor": "2,4", "--zero": "1,0"}),
    (*TRAIN, {"-d": "h100-sxm,h100-sxm", "--gpus": "4,8", "--recompute": "full,none"}),
]


def rows(output, *arguments):
    """The rows of a command, without the kernels that only one plan by itself has."""
    document = json.loads(output(*arguments, "-f", "json"))
    answers = document["steps" if arguments[0] == "train" else "loads"]
    return [{key: value for key, value in row.items() if key != "kernels"} for row in answers]


def flat(options):
    return [part for option in options.items() for part in option]


@pytest.mark.parametrize("command", LISTS, ids=lambda command: command[0])
def test_a_row_is_the_command_with_one_value_of_each_list(output, command):
    *plain, lists = command
    paired = rows(output, *plain, *flat(lists), "--zip")
    count = max(len(text.split(",")) for text in lists.values())
    assert len(paired) == count
    for i, row in enumerate(paired):
        own = {name: (text.split(",") * count)[i] for name, text in lists.items()}
        assert rows(output, *plain, *flat(own)) == [row]


def test_an_impossible_pair_is_named_beside_the_others(cli):
    code, out, err = cli(*TRAIN, "-d", "h100-sxm,b200", "--gpus", "8", "--tensor", "3,4", "--zip")
    assert (code, err) == (0, "")
    assert "left out: h100-sxm, tensor 3: " in out
