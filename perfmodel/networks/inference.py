"""Passes of inference as engines run them: captured in a graph, in 16 bits, logits where needed."""

from __future__ import annotations

from perfmodel.networks import stack
from perfmodel.networks.setting import Setting


def step(batch: int, context: int, *, ends: bool = True) -> Setting:
    """A decoding step of `batch` sequences of `context` tokens, the new one included; without
    `ends` the layers alone."""
    return _pass(batch, 1, context - 1, ends)


def prompt(batch: int, tokens: int, *, ends: bool = True) -> Setting:
    """A pass over `tokens` of each of `batch` prompts."""
    return _pass(batch, tokens, 0, ends)


def _pass(batch: int, seq: int, past: int, ends: bool) -> Setting:
    fused = stack.load("captured")
    return Setting(batch, seq, past, dtype="fp16", stack=fused, logits="last", ends=ends)
