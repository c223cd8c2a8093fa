"""FSDP: what a device keeps of a layer's whole weights after the forward pass (`reshard`).

ZeRO 3 gathers a layer's weights, W bytes in d shards, before its forward pass. Then each device
keeps 1/g of them, and groups of g devices gather them again for the backward pass (PyTorch,
`fully_shard`, reshard_after_forward):

    true     g = d      its own shard
    n        g = n      a shard of a smaller group, such as a node
    false    g = 1      all of them, which nobody has to gather again

In m micro-batches a device receives, and until a layer's backward pass it holds beside its shard,

    m·W·((d − 1)/d + (g − 1)/g)      and      W/g for g < d.

In a pipeline other micro-batches follow before that backward pass, so that weights which are kept
whole are gathered once a step, W·(d − 1)/d, and gradients are added up whole and scattered once
(torch.distributed.pipelining, stage.py; torchtitan's default there, reshard_after_forward_policy).
That exchanges what ZeRO 1 exchanges.
"""

from __future__ import annotations

from math import gcd

from perfmodel.errors import ProblemError

CHOICES = ("true", "false")
"""Values besides the devices of a group."""


def choice(value: str | bool | int) -> str:
    """A value of `reshard` as text, as PyTorch has it or in words. Raises `ProblemError` for
    another one."""
    text = str(value).lower()
    if text not in CHOICES and not (text.isdecimal() and int(text) > 1):
        raise ProblemError(
            f"reshard is {value}; give true, false, or the devices of a group, 2 or more"
        )
    return text


def group(text: str, devices: int) -> int:
    """Of so many devices with shards of a weight, those that gather it again together. Experts
    have fewer copies, of which a group has those among its own devices."""
    if text == "true":
        return devices
    return 1 if text == "false" else gcd(int(text), devices)
